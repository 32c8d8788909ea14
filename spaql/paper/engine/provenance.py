"""Where numbers come from: versions of the numbers and the packages, commit, machine, and what its sine returns."""

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from spaql.compiling import cached_jit
from spaql.paper import ROOT
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.systems.arithmetic import power, power32

# Versions of the numbers that the code computes.  They are raised by hand when numbers are meant to change, and nothing
# else makes a stored row stale; the regression digests (tests/test_digests.py) tell when numbers change that were not
# meant to.
NUMERICS = {"spaql": 1, "repaired": 6, "tiles": 7, "tree": 3, "trpo": 1, "textbook": 1, "sarsa": 3}
ORIGIN = ("numerics", "platform", "date", "commit", "origin")  # columns of a row that say where it comes from


def results() -> Path:
    """Return the folder of the published results."""
    return ROOT / "results"


def own_results() -> Path:
    """Return the folder in which runs with other parameters are kept."""
    return ROOT / "_build" / "runs"


def numerics(algorithm: str) -> int:
    """Return the version of the numbers that this code computes for an algorithm."""
    return NUMERICS[ALGORITHMS[algorithm].family]


def origin_of(algorithm: str) -> dict:
    """Return the columns that say where a row that this process computes comes from."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    packages = json.dumps({"versions": versions(), "machine": machine})
    key = platform_key(ALGORITHMS[algorithm].family)
    return dict(zip(ORIGIN, (numerics(algorithm), key, date, commit(), packages), strict=True))


@functools.cache
def platform_key(family: str = "spaql") -> str:
    """Return a key of this machine, the same where machine code can be expected to compute the same bits.

    It is a hash of what sin, cos, exp, pow and powf return as machine code.  For networks it also names the build of
    torch, what torch uses of the processor, and the architecture.
    """
    if family != "trpo":
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
    scales = (1.0, 10.0, 1e3, 1e6, 1e12, 1e22)
    points = [(2.0 * (i * golden % 1.0) - 1.0) * scale for scale in scales for i in range(1, 65)]
    found = np.array([elementary(x, math.fmod(x, 700.0), 2.0) for x in points])
    return hashlib.sha256(found.tobytes()).hexdigest()[:12]


@cached_jit
def elementary(x, small, two):
    """Return what the elementary functions of the kernels give at one point: vector code might give something else.

    `small` is below 700 in size, so that its exponential is finite.
    """
    powers = power(x, two), power(abs(small), 0.3), np.float64(power32(np.float32(small), np.float32(two)))
    return math.sin(x), math.cos(x), math.exp(small), *powers


@functools.cache
def commit() -> str:
    """Return the commit of the code that runs, "with changes" if files of the package differ from it."""

    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--", "spaql")
        return git("rev-parse", "HEAD") + (" with changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute numbers."""
    found = {"python": platform.python_version()}
    for name in ("spaql", "numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
