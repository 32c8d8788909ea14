"""Saved agents: across processes, damaged, rewritten by others; and agents copied, pickled and shared by threads."""

import copy
import io
import json
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random, archive
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


def test_a_flipped_bit_is_noticed_and_a_missing_checksum_too(tmp_path):
    path = tmp_path / "agent.npz"
    agent = trained("SPAQL")
    agent.save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    arrays["best_balls"]["q"][0] += 1e-9
    for kept in (header, {name: said for name, said in header.items() if name != "checksum"}):
        packed = arrays | {"header": np.frombuffer(json.dumps(kept).encode(), np.uint8)}
        np.savez_compressed(path, **packed)
        with pytest.raises(ValueError, match="checksum"):
            SPAQL.load(path)


def test_nothing_is_unpacked_that_is_too_long_or_not_expected(tmp_path):
    path = tmp_path / "agent.npz"
    agent = trained("SPAQL")
    entries = {
        "unknown.npy": (b"no array at all", "'unknown', which is not expected"),
        "memory_x.npy": (bytes(70_000_000), "would unpack to"),  # of 70 kB in the file
        "memory_y.npy": (npy_header((10**12,)) + bytes(80), "not as long as it says"),
        "history.npy": (npy_header((0,)), "two arrays of one name"),
    }
    for name, (content, message) in entries.items():
        agent.save(path)
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
            warnings.simplefilter("ignore")  # of the second array of one name
            file.writestr(name, content)
        with pytest.raises(ValueError, match=message):
            SPAQL.load(path)


def npy_header(shape):
    """The beginning of a file of one array."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


STRANGE = [  # a number that learning does not give, in a history of 40 rows
    *(("AQL", "rewards", 3, np.nan), ("AQL", "arms", 3, -1), ("AQL", "steps", 3, 201), ("AQL", "tau", 3, -1.0)),
    *(("AQL", "evaluation_steps", 3, -1), ("AQL", "rewards", 3, 0.0)),
    *(("SPAQL", "evaluations", 3, np.inf), ("SPAQL", "rewards", 39, 0.0), ("SPAQL", "arms", 39, 2)),
    ("SPAQL", "trainee_arms", 3, 0),
]


def test_a_history_that_no_learning_gives_is_refused(tmp_path):
    path, agents = tmp_path / "agent.npz", {case: trained(case) for case in ("AQL", "SPAQL")}
    for case, field, row, strange in [*STRANGE, ("AQL", None, 0, 39), ("SPAQL", None, 0, 38)]:
        agents[case].save(path)
        header, arrays = archive.read(path, FORMAT, VERSION)
        if field is None:  # two rows change places
            arrays["history"][[row, strange]] = arrays["history"][[strange, row]]
        else:
            arrays["history"][field][row] = strange
        rewrite(path, header, arrays)
        with pytest.raises(ValueError, match="its history"):
            type(agents[case]).load(path)


def test_a_header_is_checked_as_the_constructor_checks(tmp_path):
    path = tmp_path / "agent.npz"
    agent = SPAQLR("CartPole-v0", seed=0)
    agent.save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    for name in ("algorithm", "env_id", "parameters", "streams"):
        rewrite(path, {key: said for key, said in header.items() if key != name}, arrays)
        with pytest.raises(ValueError, match=f"agent.npz .* does not say {name}"):
            SPAQLR.load(path)
    for wrong in ({"angles": [[0, 0]]}, {"replays": 10**9}, {"steps": 10**9}, {"horizon": 10**9}):
        with pytest.raises(ValueError, match=next(iter(wrong))) as refused:
            SPAQLR("CartPole-v0", **wrong)
        rewrite(path, header | {"parameters": header["parameters"] | wrong}, arrays)
        with pytest.raises(ValueError, match=re.escape(str(refused.value))):
            SPAQLR.load(path)


def test_an_environment_whose_package_is_missing_is_named_and_ones_own_will_do(tmp_path):
    path, agent = tmp_path / "agent.npz", trained("AQL", 2)
    agent.save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    gym.register("Missing-v0", entry_point="no_such_package:Env")
    try:
        rewrite(path, header | {"env_id": "Missing-v0"}, arrays)
        with pytest.raises(ValueError, match=r"agent.npz .*'Missing-v0'.*no_such_package.*load\(path, env=...\)"):
            AQL.load(path)
        assert AQL.load(path, gym.make("CartPole-v0")).arms == agent.arms
    finally:
        del gym.registry["Missing-v0"]


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


@pytest.mark.parametrize("case", ["SPAQL", "AQL", "interpreted"])
def test_evaluations_in_threads_give_what_they_give_alone(case):
    agent = trained(case, 10)
    episodes = 3 if case == "interpreted" else 400
    alone = [agent.evaluate(episodes, seed=seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda seed: agent.evaluate(episodes, seed=seed), range(6)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("case", ["SPAQL", "AQL"])
def test_an_evaluation_does_not_disturb_learning_beside_it(case):
    agent, undisturbed = trained(case, 5), trained(case, 5)
    worker = threading.Thread(target=agent.learn, args=(400, 20))
    worker.start()
    while worker.is_alive():
        assert np.all(np.isfinite(agent.evaluate(20, seed=0)))
    worker.join()
    assert np.array_equal(agent.history, undisturbed.learn(400, 20).history)


def test_beside_learning_nothing_but_reading_is_allowed(tmp_path):
    agent = trained("SPAQL", 5)
    worker = threading.Thread(target=agent.learn, args=(2000, 20))
    worker.start()
    try:
        while agent._backup is None and worker.is_alive():
            pass
        for disturb in (lambda: agent.learn(1), lambda: copy.copy(agent), lambda: agent.save(tmp_path / "agent.npz")):
            with pytest.raises(RuntimeError, match="thread"):
                disturb()
        agent.predict(agent.env.observation_space.low)
    finally:
        worker.join()
    assert len(agent.history) == 2005
    assert not list(tmp_path.iterdir())
