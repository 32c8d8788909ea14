"""Where numbers come from: versions, commit, machine, and what its elementary functions return."""

import contextlib
import functools
import hashlib
import importlib.metadata
import math
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from spaql.compiling import entry
from spaql.paper.runs.algorithms import ALGORITHMS
from spaql.paper.runs.job import Job
from spaql.systems.arithmetic import power, power32

TRPO = ("TRPO", "TRPO tuned")
SB3 = ("SAC", "DQN", "PPO")

# Versions of the numbers that the code computes.  They are raised by hand when numbers are meant to change, and nothing
# else makes a stored record stale; the canaries tell when numbers change that were not meant to.
NUMERICS = {"spaql": 1, "repaired": 5, "trpo": 1, "policies": 1, "textbook": 1, "sarsa": 3, "replayed": 4, "fitted": 2}


def repository() -> Path | None:
    """Return the repository this package runs from, or the one that the current folder is in, or None."""
    parts = ("results", "notebooks", "spaql")
    for root in (Path(__file__).parents[3], Path.cwd(), *Path.cwd().parents):
        if all((root / part).is_dir() for part in parts):
            return root
    return None


def default_store() -> Path:
    """Return the folder of the stored results: the repository's, or one in the current folder."""
    return (repository() or Path()) / "results"


def own_store() -> Path:
    """Return the folder in which runs with other parameters than the published ones are kept.

    The environment variable SPAQL_RUNS names another one than _build/runs.
    """
    return Path(os.environ.get("SPAQL_RUNS", (repository() or Path()) / "_build" / "runs")) / "results"


def family(job: Job) -> str:
    """Return which of the versions of the numbers is a job's."""
    return ALGORITHMS[job.algorithm].family


def numerics(job: Job) -> int:
    """Return the version of the numbers that this code computes for a job."""
    return NUMERICS[family(job)]


def origin_of(job: Job) -> dict[str, Any]:
    """Return where a record that this process computes comes from."""
    return {"numerics": numerics(job), "platform": platform_key(family(job))} | provenance()


def platform_key(of: str = "spaql") -> str:
    """Return a key of this machine, which is the same where machine code can be expected to compute the same bits.

    It is a hash of what sin, cos, exp, pow and powf return as machine code: an architecture's name would say too little
    (C libraries differ) and too much (most numbers are the same on others).  For TRPO (`of="trpo"`) it also names the
    build of torch, what torch uses of the processor, and the architecture; for fitted Q iteration (`of="fitted"`)
    scikit-learn's version and the architecture.
    """
    if of == "fitted":
        return f"{elementary_key()}, scikit-learn {importlib.metadata.version('scikit-learn')}, {platform.machine()}"
    if of != "trpo":
        return elementary_key()
    try:
        import torch
    except ImportError:  # as where a network is stored that was trained elsewhere
        return f"{elementary_key()}, no torch"
    used = torch.backends.cpu.get_cpu_capability()
    return f"{elementary_key()}, torch {torch.__version__}, {used}, {platform.machine()}"


@functools.cache
def elementary_key() -> str:
    """Return a short hash of what the elementary functions return on fixed points, small and large."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples, modulo 1, spread evenly
    points = [
        (2.0 * (i * golden % 1.0) - 1.0) * scale for scale in (1.0, 10.0, 1e3, 1e6, 1e12, 1e22) for i in range(1, 65)
    ]
    found = np.array([elementary(x, math.fmod(x, 700.0), 2.0) for x in points])
    return hashlib.sha256(found.tobytes()).hexdigest()[:12]


@entry
def elementary(x, small, two):
    """Return what the elementary functions of the kernels give at one point: vector code might give something else.

    `small` is below 700 in size, so that its exponential is finite.
    """
    return (
        math.sin(x),
        math.cos(x),
        math.exp(small),
        power(x, two),
        power(abs(small), 0.3),
        np.float64(power32(np.float32(small), np.float32(two))),
    )


def git(*arguments: str) -> str:
    """Return what git says of the folder that this package runs from."""
    root = Path(__file__).parents[3]
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def provenance() -> dict[str, Any]:
    """Return where the numbers of this process come from: versions, commit, machine in words."""
    packages = ("spaql", "numpy", "numba", "gymnasium", "scikit-learn", "torch", "stable-baselines3", "sb3-contrib")
    try:
        commit = git("rev-parse", "HEAD")
        commit += " with changes" if git("status", "--porcelain", "--", "spaql") else ""
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
