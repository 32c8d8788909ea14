"""Saved agents: across processes, damaged, rewritten by others; and agents copied, pickled and shared by threads."""

import copy
import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import AQL, SPAQL, SPAQLTS, Random, archive
from spaql.saving import FORMAT, VERSION

CASES = {
    "AQL": (AQL, "CartPole-v0", {"xi": 4}),
    "SPAQL": (SPAQL, "spaql/PendulumDiscrete-v1", {"xi": 4}),
    "SPAQLTS": (SPAQLTS, "Pendulum-v1", {"xi": 4, "rules": "released"}),
    "Random": (Random, "CartPole-v0", {}),
    "interpreted": (SPAQL, "Drift-v0", {"xi": 1, "horizon": 20}),
}


def trained(case, iterations=40):
    kind, env_id, parameters = CASES[case]
    return kind(env_id, seed=3, **parameters).learn(iterations, 2)


ROOT = str(Path(__file__).parents[2])
RESUME = """
import sys, numpy as np, spaql
sys.path.insert(0, sys.argv[1])
import tests.drift
for name in sys.argv[2:]:
    kind = getattr(spaql, "SPAQL" if name == "interpreted" else name)
    agent = kind.load(f"{name}.npz").learn(8, 2)
    np.save(f"{name}.npy", agent.history)
"""


@pytest.mark.slow
def test_an_agent_loaded_in_a_new_process_goes_on_to_the_same_bits(tmp_path):
    """In this process the loops have been compiled already, so that a wrong type would not be noticed here."""
    agents = {name: trained(name) for name in CASES}
    for name, agent in agents.items():
        agent.save(tmp_path / f"{name}.npz")
    done = subprocess.run([sys.executable, "-c", RESUME, ROOT, *CASES], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, agent in agents.items():
        theirs = np.load(tmp_path / f"{name}.npy")
        assert np.array_equal(agent.learn(8, 2).history, theirs), name


# ---------------------------------------------------------------------------------------------------------------------
# Files that others wrote


def rewrite(path, header, arrays):
    """Write an archive with a right checksum, whatever is in it."""
    archive.write(path, {key: value for key, value in header.items() if key != "checksum"}, arrays)


def damaged(rng, arrays):
    """Change one number of one array: to an extreme, to a neighbour's, or by one bit."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    name = rng.choice([name for name, array in arrays.items() if array.size])
    array = arrays[name]
    field = array[rng.choice(array.dtype.names)] if array.dtype.names else array
    flat = field.reshape(-1) if field.flags.c_contiguous else field
    at = rng.integers(len(flat))
    old = flat[at].copy()
    if np.issubdtype(field.dtype, np.integer):
        limits = np.iinfo(field.dtype)
        flat[at] = rng.choice([limits.min, limits.max, -2, -1, 0, 1, old + 1, old - 1, flat[rng.integers(len(flat))]])
    else:
        flat[at] = rng.choice([np.nan, np.inf, -np.inf, -1e300, 0.0, -old, old / 2, flat[rng.integers(len(flat))]])
    return arrays, f"{name}[{at}]: {old} -> {flat[at]}"


FUZZ = """
import faulthandler, json, sys
from pathlib import Path
import numpy as np
import spaql
faulthandler.enable()
outcome = {}
for path in sorted(Path(".").glob("*.npz")):
    kind = getattr(spaql, path.stem.split("-")[0])
    try:
        agent = kind.load(path)
    except ValueError as error:
        outcome[path.name] = str(error)
        continue
    agent.evaluate(3, seed=0)
    agent.predict(agent.env.observation_space.sample())
    agent.policy[0].tree() if kind is spaql.AQL else agent.policy.tree()
    agent.learn(3, 1)
    outcome[path.name] = "accepted"
print(json.dumps(outcome))
"""


REWRITTEN = {"AQL": 80, "SPAQL": 80, "SPAQLTS": 80}


@pytest.mark.faults("rewriting", sum(REWRITTEN.values()))
@pytest.mark.slow
def test_no_rewritten_archive_crashes_hangs_or_is_accepted_with_broken_structure(tmp_path):
    """Some hundred files with one number changed and the checksum put right, as an ill-disposed author would."""
    rng = np.random.default_rng(0)
    changes = {}
    for case, files in REWRITTEN.items():
        trained(case, 30).save(tmp_path / "agent")
        header, arrays = archive.read(tmp_path / "agent", FORMAT, VERSION)
        for i in range(files):
            changed, what = damaged(rng, arrays)
            changes[f"{case}-{i:03d}.npz"] = what
            rewrite(tmp_path / f"{case}-{i:03d}.npz", header, changed)
    (tmp_path / "agent").unlink()
    done = subprocess.run([sys.executable, "-c", FUZZ], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    outcome = json.loads(done.stdout)
    assert len(outcome) == len(changes)
    # What may be changed without breaking anything is a number that learning could have given, or no change at all.
    free = ("history", "status", "_balls")
    for name, found in outcome.items():
        if found == "accepted":
            before, after = map(float, changes[name].split(": ")[1].split(" -> "))
            assert changes[name].split("[")[0].endswith(free) or before == after, (name, changes[name])
    refused = sum(found != "accepted" for found in outcome.values())
    assert refused > 100


@pytest.mark.faults("damage")
def test_a_file_holds_records_without_the_room_that_memory_leaves_between_them(tmp_path):
    """So that files do not depend on what is fastest in memory: those of earlier versions have this layout, too."""
    agent = trained("SPAQL")
    agent.save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz") as file:
        kept = file["best_cells"]
    fields = ("children", "best", "own", "first", "parent", "depth")
    assert kept.dtype == np.dtype([(name, np.int32) for name in fields])
    loaded = SPAQL.load(tmp_path / "agent.npz")._best.cells
    assert loaded.dtype == agent._best.cells.dtype != kept.dtype
    assert all(np.array_equal(loaded[name], kept[name]) for name in fields)


def test_a_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "agent.npz"
    agent = trained("SPAQL")
    agent.save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    arrays["best_balls"]["q"][0] += 1e-9
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    np.savez_compressed(path, **packed)
    with pytest.raises(ValueError, match="checksum"):
        SPAQL.load(path)


@pytest.mark.faults("damage")
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "agent.npz"
    trained("SPAQL").save(path)
    monkeypatch.setattr(archive, "LARGEST", 1000)
    with pytest.raises(ValueError, match="would unpack to"):
        SPAQL.load(path)


@pytest.mark.faults("damage")
def test_a_file_imports_nothing(tmp_path):
    """Gymnasium imports the module that an id of the form module:Id names; a file must not be able to ask for that."""
    path = tmp_path / "agent.npz"
    agent = trained("AQL")
    agent.save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    rewrite(path, header | {"env_id": "evil:CartPole-v0"}, arrays)
    code = f"from spaql import AQL; AQL.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "imported" not in done.stderr
    assert "which is not registered here" in done.stderr
    assert AQL.load(path, gym.make("CartPole-v0")).arms == agent.arms


@pytest.mark.skipif(os.name == "nt", reason="modes, links and devices are POSIX's")
def test_a_saved_file_has_the_mode_of_the_umask_follows_links_and_never_replaces_a_device(tmp_path):
    agent = trained("Random")
    before = os.umask(0o027)
    try:
        agent.save(tmp_path / "agent.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "agent.npz").stat().st_mode) == 0o640
    (tmp_path / "link.npz").symlink_to(tmp_path / "agent.npz")
    agent.learn(1, 1).save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert len(Random.load(tmp_path / "agent.npz").history) == 41
    for wrong in (tmp_path, "/dev/null"):
        with pytest.raises(ValueError, match="not a file"):
            agent.save(wrong)
    assert zipfile.is_zipfile(tmp_path / "agent.npz")


# ---------------------------------------------------------------------------------------------------------------------
# Copies, other processes and threads


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("case", ["AQL", "SPAQLTS", "interpreted"])
def test_a_copy_is_independent_and_goes_on_to_the_same_bits(case, make):
    agent = trained(case, 10)
    other, before = make(agent), agent.history
    history = other.learn(5, 2).history
    assert np.array_equal(agent.history, before)
    assert np.array_equal(agent.learn(5, 2).history, history)


def learn_on(agent):
    return agent.learn(3, 2).history


def test_agents_run_in_other_processes():
    agents = [trained(case, 5) for case in ("SPAQLTS", "interpreted")]
    with ProcessPoolExecutor(2) as pool:
        theirs = list(pool.map(learn_on, agents))
    for agent, history in zip(agents, theirs, strict=True):
        assert np.array_equal(learn_on(agent), history)


@pytest.mark.faults("races")
@pytest.mark.parametrize("case", ["SPAQL", "AQL", "interpreted"])
def test_evaluations_in_threads_give_what_they_give_alone(case):
    agent = trained(case, 10)
    episodes = 3 if case == "interpreted" else 400
    alone = [agent.evaluate(episodes, seed=seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda seed: agent.evaluate(episodes, seed=seed), range(6)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.faults("races")
@pytest.mark.parametrize("case", ["SPAQL", "AQL"])
def test_an_evaluation_does_not_disturb_learning_beside_it(case):
    agent, undisturbed = trained(case, 5), trained(case, 5)
    worker = threading.Thread(target=agent.learn, args=(400, 20))
    worker.start()
    while worker.is_alive():
        assert np.all(np.isfinite(agent.evaluate(20, seed=0)))
    worker.join()
    assert np.array_equal(agent.history, undisturbed.learn(400, 20).history)


@pytest.mark.slow
@pytest.mark.faults("races")
def test_a_second_learn_on_the_same_agent_is_refused_and_a_save_is_of_the_last_full_iteration(tmp_path):
    agent = trained("SPAQL", 5)
    worker = threading.Thread(target=agent.learn, args=(2000, 20))
    worker.start()
    try:
        while agent._backup is None and worker.is_alive():
            pass
        with pytest.raises(RuntimeError, match="is learning already"):
            agent.learn(1)
        with pytest.raises(RuntimeError, match="learning"):
            copy.copy(agent)
        agent.save(tmp_path / "agent.npz")
    finally:
        worker.join()
    saved = SPAQL.load(tmp_path / "agent.npz")
    done = len(saved.history)
    assert 5 <= done <= len(agent.history) == 2005
    assert np.array_equal(saved.history, agent.history[:done])
