"""Files that others have rewritten at random."""

import copy
import json
import subprocess
import sys

import numpy as np

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, files

STRANGE = (10**9, -1, 0, 1e300, float("nan"), None, "x", [], [8, 8], {}, True, [[0.0, 1.0]])


def with_strange_number(rng, arrays):
    """Change one number of one array: to an extreme, to a neighbour's, or to one beside it."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    name = rng.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name]
    field = array[rng.choice(array.dtype.names)] if array.dtype.names else array
    flat = field.reshape(-1) if field.flags.c_contiguous else field
    at = rng.integers(len(flat))
    old = flat[at].copy()
    if np.issubdtype(field.dtype, np.integer):
        limits = np.iinfo(field.dtype)
        near = [int(old) + 1, int(old) - 1] if limits.min < old < limits.max else []
        flat[at] = rng.choice([limits.min, limits.max, -1, 0, 1, *near, flat[rng.integers(len(flat))]])
    else:
        flat[at] = rng.choice([np.nan, np.inf, -np.inf, -1e300, 0.0, -old, old / 2, flat[rng.integers(len(flat))]])
    return arrays, f"{name}[{at}]: {old} -> {flat[at]}"


def with_strange_header(rng, header):
    """Leave out one thing that the header says, or say something else, there or in its parameters."""
    header = copy.deepcopy(header)
    into = header["parameters"] if rng.random() < 0.6 else header
    name = rng.choice(sorted(into.keys() - {"format", "version"}))
    if rng.random() < 0.2:
        del into[name]
        return header, f"header without {name}"
    into[name] = STRANGE[rng.integers(len(STRANGE))]
    return header, f"header {name}: {into[name]}"


LOAD = """
import faulthandler, json, sys, time
from pathlib import Path
import numpy as np
import spaql
faulthandler.enable()
outcome = {}
for path in sorted(Path(".").glob("*.npz")):
    kind = getattr(spaql, path.stem.split("-")[0])
    begin = time.perf_counter()
    try:
        agent = kind.load(path)
    except ValueError as error:
        outcome[path.name] = f"refused: {error}"
    else:
        agent.evaluate(3, seed=0)
        agent.predict(agent.env.observation_space.sample())
        (agent.policy[0] if kind is spaql.AQL else agent.policy).table()
        try:
            agent.learn(3, 1)
            outcome[path.name] = "accepted"
        except OverflowError:  # with a ξ of 1e300
            outcome[path.name] = "accepted"
    print(path.name, f"{time.perf_counter() - begin:.1f} s", outcome[path.name], file=sys.stderr, flush=True)
print(json.dumps(outcome))
"""
AGENTS = {
    "AQL": lambda: AQL("CartPole-v0", xi=4, seed=3).learn(30, 2),
    "SPAQL": lambda: SPAQL("Pendulum-v1", xi=4, seed=3).learn(30, 2),
    "SPAQLTS": lambda: SPAQLTS("CartPole-v0", xi=4, seed=3, rules="released").learn(30, 2),
    "SPAQLR": lambda: SPAQLR("CartPole-v0", seed=3, visits=20).learn(30),
}


def test_a_rewritten_file_is_refused_or_harmless_and_never_crashes_or_hangs(tmp_path, faults):
    rng, number = faults
    changes = {}
    for name, make in AGENTS.items():
        make().save(tmp_path / "agent")
        header, arrays = files.read(tmp_path / "agent", name)
        for i in range(number):
            rewritten = tmp_path / f"{name}-{i:03d}.npz"
            if rng.random() < 0.5:
                changed, changes[rewritten.name] = with_strange_number(rng, arrays)
                files.write(rewritten, header, changed)
            else:
                changed, changes[rewritten.name] = with_strange_header(rng, header)
                files.write(rewritten, changed, arrays)
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (changes, done.stderr[-3000:])
    outcome = json.loads(done.stdout)
    assert outcome.keys() == changes.keys()
