"""Faults of some kinds, drawn at random: Ctrl-C at any instruction, and files that others have rewritten."""

import contextlib
import copy
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import spaql
from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, TileQ, archive
from spaql.saving import FORMAT, VERSION

TRACED = (str(Path(spaql.__file__).parent), contextlib.__file__)


def with_interrupt(call, agent, at):
    """Call a function of an agent with Ctrl-C before instruction `at`; return whether it came out, and how many."""
    seen = 0

    def trace(frame, event, argument):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(TRACED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == at:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(agent)
    except KeyboardInterrupt:
        return True, seen
    finally:
        sys.settrace(before)
    return False, seen


def test_ctrl_c_at_any_instruction_comes_out_and_nothing_is_lost(tmp_path, faults):
    rng, number = faults
    path = tmp_path / "agent.npz"
    for make in (lambda: SPAQL("Drift-v0", xi=1, horizon=5, seed=3), lambda: SPAQL("CartPole-v0", xi=4, seed=3)):
        first, whole = make().learn(2, 1), make().learn(2, 1).learn(3, 1)
        expected = first.evaluate(2, seed=0)
        calls = {
            "learn": lambda agent: agent.learn(3, 1),
            "evaluate": lambda agent: agent.evaluate(2, seed=1),
            "save": lambda agent: agent.save(path),
        }
        for name, call in calls.items():
            length = with_interrupt(call, copy.copy(first), at=0)[1]
            for at in rng.integers(1, length + 1, number).tolist():
                agent = copy.copy(first)
                came, _ = with_interrupt(call, agent, at)
                assert came, (name, at)
                assert np.array_equal(agent.evaluate(2, seed=0), expected) or name == "learn", (name, at)
                if missing := 5 - len(agent.history):
                    agent.learn(missing, 1)
                assert np.array_equal(agent.history, whole.history), (name, at)
                assert SPAQL.load(path).arms == first.arms if path.exists() else name != "save", (name, at)
        assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]
        path.unlink()


# ---------------------------------------------------------------------------------------------------------------------
# Files that others have rewritten, with a checksum that matches

STRANGE = (10**9, -1, 0, 1e300, float("nan"), None, "x", [], [8, 8], {}, True, [[0.0, 1.0]])


def rewrite(path, header, arrays):
    """Write an archive with a right checksum, whatever is in it."""
    archive.write(path, {key: value for key, value in header.items() if key != "checksum"}, arrays)


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
    name = rng.choice(sorted(into.keys() - {"format", "version", "checksum"}))
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
        policy = agent.policy[0] if kind is spaql.AQL else agent.policy
        policy.values(np.zeros((1, 4))) if kind is spaql.TileQ else policy.tree()
        try:
            agent.learn(3, 1)
            outcome[path.name] = "accepted"
        except OverflowError:  # with a ξ of 1e300
            outcome[path.name] = "accepted"
    print(path.name, f"{time.perf_counter() - begin:.1f} s", outcome[path.name], file=sys.stderr, flush=True)
print(json.dumps(outcome))
"""
# What may be changed without breaking anything: numbers that learning could have given.
FREE = ("history", "status", "_balls", "memory_x", "memory_y", "memory_reward", "memory_action", "memory_end",
        "memory_extremes", "trainee_weights")  # fmt: skip
# Of SPAQL-R's cells too, where any cut may have been made.
FREE_CELLS = ("_q", "_visits", "_axis", "_border", "_seen", "_nodes")
AGENTS = {
    "AQL": lambda: AQL("CartPole-v0", xi=4, seed=3).learn(30, 2),
    "SPAQL": lambda: SPAQL("Pendulum-v1", xi=4, seed=3).learn(30, 2),
    "SPAQLTS": lambda: SPAQLTS("CartPole-v0", xi=4, seed=3, rules="released").learn(30, 2),
    "SPAQLR": lambda: SPAQLR("CartPole-v0", seed=3, visits=20).learn(30),
    "TileQ": lambda: TileQ("CartPole-v0", seed=3, tilings=4).learn(30),
}


def test_a_rewritten_file_is_refused_or_harmless_and_never_crashes_or_hangs(tmp_path, faults):
    rng, number = faults
    changes = {}
    for name, make in AGENTS.items():
        make().save(tmp_path / "agent")
        header, arrays = archive.read(tmp_path / "agent", FORMAT, VERSION)
        for i in range(number):
            rewritten = tmp_path / f"{name}-{i:03d}.npz"
            if rng.random() < 0.5:
                changed, changes[rewritten.name] = with_strange_number(rng, arrays)
                rewrite(rewritten, header, changed)
            else:
                changed, changes[rewritten.name] = with_strange_header(rng, header)
                rewrite(rewritten, changed, arrays)
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (changes, done.stderr[-3000:])
    outcome = json.loads(done.stdout)
    assert outcome.keys() == changes.keys()
    for name, found in outcome.items():
        if found == "accepted" and not changes[name].startswith("header"):
            before, after = map(float, changes[name].split(": ")[1].split(" -> "))
            free = FREE + FREE_CELLS if name.startswith("SPAQLR") else FREE
            assert changes[name].split("[")[0].endswith(free) or before == after, (name, changes[name])
