import ast
import json
import math
import os
import secrets
import shutil
import signal
from pathlib import Path

import gymnasium as gym
import hypothesis
import numpy as np
import pytest

import tests.drift  # noqa: F401  (an environment that no system describes)
import tests.tanks  # noqa: F401  (a registered one with two actuators)
from spaql import SPAQLR, TileQ, partition


def numpy_uses_libm():
    x = np.random.default_rng(0).uniform(-30, 30, 10_000)
    return all(np.sin(v) == math.sin(v) and np.cos(v) == math.cos(v) for v in x)


# Gymnasium computes with NumPy's sines, the compiled systems with the C library's.  The pinned NumPy has none of its
# own, not for AVX-512 either, and takes the C library's; with another NumPy the last bits may differ.
same_sines = pytest.mark.skipif(
    not numpy_uses_libm(), reason="this NumPy's sines are not the C library's to the last bit"
)


posix = pytest.mark.skipif(os.name == "nt", reason="this system has no SIGKILL")


def split(p, ball, *how):
    """Split a ball where there is room for it; return the partition with that room."""
    p = partition.with_room(p, 1)
    partition.split(p, ball, *how)
    return p


hypothesis.settings.register_profile("patient", deadline=None)  # a slow machine is no failure
hypothesis.settings.load_profile("patient")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# .ci/run installs a browser and says that there must be one.
in_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("NEED_BROWSER"), reason="there is no Chromium (or Chrome) on this machine"
)


# First the files that compile what others need, too: TileQ and SPAQL-R, and the paper's algorithms for environments of
# four and of two numbers, one in each process.  Then the longest, so that none runs on alone at the end.
FIRST = ("test_digests", "test_agent", "test_loop", "test_claims", "test_book", "test_systems")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))


@pytest.fixture
def faults():
    """A random generator and how many faults to draw from it: a few others each time, hundreds in `make test-all`.

    The seed is printed, so that pytest shows it with a failure; SPAQL_SEED sets it.
    """
    seed = int(os.environ.get("SPAQL_SEED") or secrets.randbits(32))
    print(f"SPAQL_SEED={seed}")
    return np.random.default_rng(seed), int(os.environ.get("SPAQL_FAULTS") or 5)


@pytest.fixture(scope="session")
def browser():
    """One browser for all pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def from_notebook(name):
    """The functions that a notebook defines, without running anything else of it."""
    text = (Path(__file__).parents[1] / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    code = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    kinds = ast.Import, ast.ImportFrom, ast.FunctionDef
    parts = [node for node in ast.parse(code).body if isinstance(node, kinds)]
    exec(compile(ast.Module(parts, []), name, "exec"), found := {})
    return found


HOME = {TileQ: "Pendulum-v1", SPAQLR: "CartPole-v0"}  # which the book has compiled; on others they play interpreted


class Opaque(gym.Wrapper):
    """A wrapper of a user's own: nothing compiled can know what is inside."""


@pytest.fixture(autouse=True, scope="session")
def interrupts():
    """Let Ctrl-C be what it usually is, also where the tests were started in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def opaque():
    def make(env_id):
        from spaql.systems import make_env

        return Opaque(make_env(env_id))

    return make
