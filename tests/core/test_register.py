"""A system of a user's own, registered from outside the package: the example of the book's page, as printed there."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import SPAQL, TileQ
from spaql.compiling import PACKAGE
from spaql.policies import export_c
from spaql.systems import REGISTRY, compiled_world, register, space_of, system_of
from tests.conftest import Opaque

PAGE = Path(__file__).parents[2] / "book" / "own_system.md"
MACHINE_CODE = PACKAGE / "__pycache__"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tank")
    (folder / "tank.py").write_text(EXAMPLES[0], encoding="utf-8")
    (folder / "rain.py").write_text(EXAMPLES[3], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tank(folder):
    sys.path.insert(0, str(folder))
    try:
        import tank

        yield tank
    finally:
        sys.path.remove(str(folder))


def run(folder, code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_learns_the_same_bits_compiled_and_interpreted(tank):
    compiled = TileQ("Tank-v0", seed=3, horizon=100)
    interpreted = TileQ(Opaque(gym.make("Tank-v0")), seed=3, horizon=100)
    assert compiled.compiled
    assert not interpreted.compiled
    assert np.array_equal(compiled.learn(5).history, interpreted.learn(5).history)


def test_its_constants_and_names_are_used(tank):
    env = tank.TankEnv(outflow=0.2)
    assert compiled_world(env, space_of(env)).model.constants == tank.Tank(0.2, 0.5)
    assert system_of(env).name == "Tank"
    policy = SPAQL("Tank-v0", xi=1).policy
    assert policy.variables.observed == ("level",)
    assert set(policy.table().columns[:2]) == {"level_low", "level_high"}


CHECK = "import tank\nfrom spaql.systems.twins import check_twin, trace\n"
CHECK += "try: print(check_twin('Tank-v0'))\nexcept ValueError as error: print(error)\n"


def test_the_twin_is_checked_as_printed(folder, tank):
    printed = run(folder, EXAMPLES[1])
    assert printed == "100 episodes, the same bits\n"
    assert f"```text\n{printed}```" in PAGE.read_text(encoding="utf-8")


NOISE = "import rain\nfrom spaql.systems.twins import check_twin, trace\n"
NOISE += "try: print(check_twin('Rain-v0'))\nexcept ValueError as error: print(error)\n"
NOISE += "from spaql.compiling import machine_code\nfrom spaql.systems import REGISTRY\n"
NOISE += "print(len(machine_code(trace, rain.Rain, REGISTRY[rain.Rain].functions).stats.cache_hits))"


def test_noise_in_the_state_is_the_same_and_an_edit_in_an_imported_module_compiles_again(folder, tank):
    assert re.fullmatch(r"100\n[01]\n", run(folder, NOISE))  # an earlier run of this test may have kept the code
    assert run(folder, NOISE) == "100\n1\n"
    text = (folder / "tank.py").read_text(encoding="utf-8")
    changed = folder / "imported"
    changed.mkdir()
    shutil.copy(folder / "rain.py", changed)
    # A change of the kernel alone: were old machine code used, no difference would be found.
    other = text.replace("return -abs(state[0] - 0.5), False", "return -2.0, False")
    assert other != text
    (changed / "tank.py").write_text(other, encoding="utf-8")
    assert re.fullmatch(r"the reward of step 1: .*\n\d\n", run(changed, NOISE))


def test_a_twin_must_round_continuous_actions_as_the_environment_gets_them(folder, tank):
    text = (folder / "tank.py").read_text(encoding="utf-8")
    for old, new in (
        ("gym.spaces.Discrete(3)", "gym.spaces.Box(0.0, 2.0, (1,))"),
        ("0.1 * float(action)", "0.1 * float(action[0])"),
        ("        choices=choices,\n", ""),
    ):
        assert old in text
        text = text.replace(old, new)
    continuous = folder / "continuous"
    continuous.mkdir()
    (continuous / "tank.py").write_text(text, encoding="utf-8")
    assert "in the environment" in run(continuous, CHECK)
    rounded = text.replace("0.1 * action[0]", "0.1 * np.float64(np.float32(action[0]))")
    (continuous / "tank.py").write_text(rounded, encoding="utf-8")
    assert run(continuous, CHECK) == "100\n"


@pytest.fixture
def with_choices(monkeypatch):
    """Return an environment whose system has other choices for a test."""

    def change(env_id, choices):
        env = gym.make(env_id)
        system = system_of(env)
        told = None if choices is None else lambda env: choices
        monkeypatch.setitem(REGISTRY, system.constants, dataclasses.replace(system, choices=told))
        return env

    return change


def test_choices_that_do_not_fit_the_actions_are_refused_before_training(with_choices):
    with pytest.raises(ValueError, match="choices of CartPole must be 2 numbers"):
        SPAQL(with_choices("CartPole-v0", (-10.0, 0.0, 10.0)), xi=1)
    tree = SPAQL(with_choices("CartPole-v0", None), xi=1).policy.tree()
    assert "out  the number of the action, 0 to 1" in export_c(tree)
    assert " N" not in export_c(tree)


def test_the_example_of_its_use_runs_as_printed(folder, tank):
    printed = run(folder, EXAMPLES[2])
    assert printed.startswith("True ")
    assert "level" in printed
    assert re.search(r"int policy\(double level\)", printed)


def test_an_edit_is_seen_where_the_constants_stand_in_another_module(folder, tank):
    split = folder / "split"
    split.mkdir()
    text = (folder / "tank.py").read_text(encoding="utf-8")
    kind = re.search(r"class Tank\(NamedTuple\):\n(?:    .*\n)+", text)[0]
    (split / "kinds.py").write_text(f"from typing import NamedTuple\n\n\n{kind}", encoding="utf-8")
    plant = text.replace(kind, "from kinds import Tank\n")
    code = "import tank\nfrom spaql.compiling import private_folder\nfrom spaql.systems import REGISTRY\n"
    code += "print(private_folder('tank', *REGISTRY[tank.Tank].functions))"
    folders = []  # of machine code
    for text in (plant, plant.replace("abs(state[0] - 0.5), False", "2 * abs(state[0] - 0.5), False")):
        (split / "tank.py").write_text(text, encoding="utf-8")
        folders.append(run(split, code))
    assert folders[1] != folders[0]


def test_systems_do_not_share_a_class_of_constants(tank):
    class Other(tank.TankEnv):
        """Another environment."""

    with pytest.raises(ValueError, match="of its own: Tank"):
        register(dataclasses.replace(REGISTRY[tank.Tank], originals=(Other,)))
    with pytest.raises(ValueError, match="of its own: Tank"):
        register(dataclasses.replace(REGISTRY[tank.Tank], step=lambda constants, state, action: (0.0, False)))
    assert register(REGISTRY[tank.Tank]).constants is tank.Tank
