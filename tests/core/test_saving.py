"""Saved agents: across processes, damaged, rewritten by others; and agents copied, pickled and shared by threads."""

import copy
import functools
import pickle
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import AQL, SPAQL, SPAQLTS, Random, files
from spaql.policies import evaluate as evaluate_policy

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


# Files that others wrote


def saved(tmp_path, case="SPAQL"):
    """The path of a saved agent, its header and its arrays."""
    path = tmp_path / "agent.npz"
    trained(case, 5).save(path)
    return path, *files.read(path, CASES[case][0].__name__)


def test_a_flipped_bit_is_noticed(tmp_path):
    path, *_ = saved(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        SPAQL.load(path)


def test_nothing_is_unpacked_that_is_too_long(tmp_path):
    path, *_ = saved(tmp_path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("memory_x.npy", bytes(70_000_000))  # of 70 kB in the file
    with pytest.raises(ValueError, match="would unpack to"):
        SPAQL.load(path)


def test_a_header_of_megabytes_is_not_read(tmp_path):
    path, *_ = saved(tmp_path)
    entropy = np.frombuffer(b'{"seed": ' + b"0, " * 10**6 + b"}", np.uint8)
    with np.load(path) as file:
        np.savez_compressed(path, **dict(file) | {"header": entropy})
    with pytest.raises(ValueError, match="its header has more than"):
        SPAQL.load(path)


@pytest.mark.parametrize("name", ["agent", "environment", "prediction"])
@pytest.mark.parametrize(
    "stream", [{"bit_generator": "MT19937", "state": {"key": [0] * 624, "pos": -9}}, {"state": 3}, [8]]
)
def test_only_sound_streams_are_taken_from_a_file(tmp_path, name, stream):
    path, header, arrays = saved(tmp_path, "interpreted")
    files.write(path, header | {"streams": header["streams"] | {name: stream}}, arrays)
    with pytest.raises(ValueError, match=r"agent.npz is not a sound saved agent"):
        SPAQL.load(path)


def test_a_file_imports_nothing_and_says_what_it_lacks(tmp_path):
    """Gymnasium imports the module that an id of the form module:Id names; a file must not be able to ask for that."""
    path, header, arrays = saved(tmp_path, "AQL")
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    files.write(path, header | {"env_id": "evil:CartPole-v0"}, arrays)
    code = f"from spaql import AQL; AQL.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "imported" not in done.stderr
    assert "which is not registered here" in done.stderr
    assert len(AQL.load(path, gym.make("CartPole-v0")).history) == 5
    for name in ("algorithm", "env_id", "parameters", "streams"):
        files.write(path, {key: said for key, said in header.items() if key != name}, arrays)
        with pytest.raises(ValueError, match=name):
            AQL.load(path)
    files.write(path, header, {name: array for name, array in arrays.items() if name != "trainee_low"})
    with pytest.raises(ValueError, match="another version of spaql.*trainee_low"):
        AQL.load(path)


def test_a_forest_without_some_of_its_trees_is_refused(tmp_path):
    path, header, arrays = saved(tmp_path, "AQL")
    one = AQL("CartPole-v0", xi=4, horizon=1, seed=0)._trainee.arrays("trainee")
    files.write(path, header, arrays | one)
    with pytest.raises(ValueError, match="does not hold together"):
        AQL.load(path)


def test_a_kept_partition_that_the_other_cannot_come_back_to_is_refused(tmp_path):
    path, header, arrays = saved(tmp_path, "SPAQL")
    files.write(path, header, arrays | trained("SPAQL", 200)._best.arrays("best"))
    with pytest.raises(ValueError, match="no learning gives"):
        SPAQL.load(path)


def test_a_file_never_replaces_a_folder_and_leaves_nothing_behind(tmp_path):
    agent = trained("Random", 1)
    with pytest.raises(ValueError, match="not a file"):
        agent.save(tmp_path)
    agent.save(tmp_path / "agent.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]


# Copies, other processes and threads


@pytest.mark.parametrize("make", [copy.copy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("case", ["AQL", "SPAQLTS", "interpreted"])
def test_a_copy_is_independent_and_goes_on_to_the_same_bits(case, make):
    agent = trained(case, 10)
    other, before = make(agent), agent.history
    history = other.learn(5, 2).history
    assert np.array_equal(agent.history, before)
    assert np.array_equal(agent.learn(5, 2).history, history)


def test_what_plays_beside_learning_in_the_same_environment_is_refused():
    agent, refused = trained("interpreted", 1), []
    other = type(agent)(agent.env, seed=1, **agent.parameters)
    plays = agent.evaluate, functools.partial(evaluate_policy, agent.policy, agent.env), other.learn

    def evaluate():
        for play in plays:
            with pytest.raises(RuntimeError, match="another thread") as error:
                play(5)
            refused.append(error)

    def callback(agent):
        agent.evaluate(5, seed=0)  # a callback may: learning waits for it
        worker = threading.Thread(target=evaluate)
        worker.start()
        worker.join()

    agent.learn(2, 1, callback=callback)
    assert len(refused) == 6
    other.learn(1, 1)


def test_a_second_learn_on_the_same_agent_is_refused():
    agent = trained("SPAQL", 5)
    worker = threading.Thread(target=agent.learn, args=(500, 20))
    worker.start()
    try:
        while agent._backup is None and worker.is_alive():
            pass
        with pytest.raises(RuntimeError):
            agent.learn(1)
    finally:
        worker.join()
    assert len(agent.history) == 505
