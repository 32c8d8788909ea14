"""Where numbers come from: versions, commit and machine."""

import contextlib
import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from spaql.paper.runs.job import Job

TRPO = ("TRPO", "TRPO tuned")  # the algorithms of spaql.trpo, which is not imported unless needed

# Versions of the numbers that the code computes.  They are raised by hand when numbers are meant to change, and nothing
# else makes a stored record stale; the canaries tell when numbers change that were not meant to.
NUMERICS = {"spaql": 1, "trpo": 1, "policies": 1}


def repository() -> Path | None:
    """Return the repository this package runs from, or None if it is installed elsewhere."""
    root = Path(__file__).parents[3]
    return root if (root / "results").is_dir() and (root / "notebooks").is_dir() else None


def default_store() -> Path:
    """Return the folder of the stored results: the repository's, or one in the current folder."""
    return (repository() or Path()) / "results"


def numerics(job: Job) -> int:
    """Return the version of the numbers that this code computes for a job."""
    return NUMERICS["trpo" if job.algorithm in TRPO else "spaql"]


@functools.cache
def provenance() -> dict:
    """Return where the numbers of this process come from: versions, commit, machine in words."""
    packages = ("spaql", "numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")
    root = Path(__file__).parents[3]
    try:
        options = {"cwd": root, "capture_output": True, "text": True, "check": True}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **options).stdout.strip()
        changes = subprocess.run(["git", "status", "--porcelain", "--", "spaql"], **options).stdout.strip()
        commit += " with changes" if changes else ""
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    versions = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "versions": {"python": platform.python_version()} | versions,
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    }
