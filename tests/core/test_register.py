"""A system of a user's own, registered from outside the package: the example of the book's page, as printed there."""

import dataclasses
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import SPAQL, TileQ
from spaql.compiling import private_folder
from spaql.policies import export_c
from spaql.systems import REGISTRY, check_twin, compiled_world, register, space_of, system_of
from tests.conftest import Opaque

PAGE = Path(__file__).parents[2] / "book" / "own_system.md"
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


def run(folder, code):
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def variant(folder, name, *edits):
    """The first example as a module of this process, with edits and environments of its own."""
    text = (folder / "tank.py").read_text(encoding="utf-8")
    for old, new in (*edits, ('gym.register("Tank-v0"', f'gym.register("{name}-v0"')):
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_its_constants_and_names_are_used(tank):
    env = tank.TankEnv(outflow=0.2)
    assert compiled_world(env, space_of(env)).model.constants == tank.Tank(0.2, 0.5)
    assert system_of(env).name == "Tank"
    policy = SPAQL("Tank-v0", xi=1).policy
    assert policy.variables.observed == ("level",)
    assert set(policy.table().columns[:2]) == {"level_low", "level_high"}


def test_the_twin_is_checked_as_printed(tank, capsys):
    exec(EXAMPLES[1], {})
    printed = capsys.readouterr().out
    assert printed == "100 episodes, the same bits\n"
    assert f"```text\n{printed}```" in PAGE.read_text(encoding="utf-8")


NOISE = "import rain\nfrom spaql.systems.twins import check_twin, trace\n"
NOISE += "try: print(check_twin('Rain-v0'))\nexcept ValueError as error: print(error)\n"
NOISE += "from spaql.compiling import machine_code\nfrom spaql.systems import REGISTRY\n"
NOISE += "print(len(machine_code(trace, rain.Rain, REGISTRY[rain.Rain].functions).stats.cache_hits))"


def test_noise_in_the_state_is_the_same_and_an_edit_in_an_imported_module_compiles_again(folder, tank):
    import rain  # noqa: F401

    assert check_twin("Rain-v0") == 100
    assert run(folder, NOISE) == "100\n1\n"  # of machine code that is kept
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
    edits = (
        ("gym.spaces.Discrete(3)", "gym.spaces.Box(0.0, 2.0, (1,))"),
        ("0.1 * float(action)", "0.1 * float(action[0])"),
        ("        choices=choices,\n", ""),
    )
    variant(folder, "Continuous", *edits)
    with pytest.raises(ValueError, match="in the environment"):
        check_twin("Continuous-v0")


def test_choices_that_do_not_fit_the_actions_are_refused_before_training(monkeypatch):
    env = gym.make("CartPole-v0")
    system = system_of(env)

    def agent_with(choices):
        monkeypatch.setitem(REGISTRY, system.constants, dataclasses.replace(system, choices=choices))
        return SPAQL(env, xi=1)

    with pytest.raises(ValueError, match="choices of CartPole must be 2 numbers"):
        agent_with(lambda env: (-10.0, 0.0, 10.0))
    tree = agent_with(None).policy.tree()
    assert "out  the number of the action, 0 to 1" in export_c(tree)
    assert " N" not in export_c(tree)


def test_starts_of_another_number_of_episodes_are_refused(folder, tank):
    variant(folder, "odd", ("size=(episodes, 1)", "size=(1, 1)"))
    with pytest.raises(ValueError, match="draw_starts of Tank"):
        check_twin("odd-v0", steps=200)


@pytest.mark.long  # which compiles two loops
def test_the_example_of_its_use_runs_as_printed_and_to_the_same_bits_interpreted(folder, tank):
    compiled, interpreted = (TileQ(env, seed=3) for env in ("Tank-v0", Opaque(gym.make("Tank-v0"))))
    assert np.array_equal(compiled.learn(5).history, interpreted.learn(5).history)
    printed = run(folder, EXAMPLES[2])
    assert f"```text\n{printed.rstrip()}\n```" in PAGE.read_text(encoding="utf-8")


def test_an_edit_is_seen_where_the_constants_stand_in_another_module(folder, tank):
    kind = re.search(r"class Tank\(NamedTuple\):\n(?:    .*\n)+", EXAMPLES[0])[0]
    folders = []  # of machine code
    for name, reward in (("first", "abs"), ("same", "abs"), ("other", "2 * abs")):
        (folder / f"of_{name}.py").write_text(f"from typing import NamedTuple\n\n\n{kind}", encoding="utf-8")
        edits = (kind, f"from of_{name} import Tank\n"), ("-abs(state[0] - 0.5), F", f"-{reward}(state[0] - 0.5), F")
        plant = variant(folder, name, *edits)
        folders.append(private_folder("tank", *REGISTRY[plant.Tank].functions))
    assert folders[0] == folders[1] != folders[2]


def test_systems_do_not_share_a_class_of_constants(tank):
    class Other(tank.TankEnv):
        """Another environment."""

    with pytest.raises(ValueError, match="of its own: Tank"):
        register(dataclasses.replace(REGISTRY[tank.Tank], originals=(Other,)))
    with pytest.raises(ValueError, match="of its own: Tank"):
        register(dataclasses.replace(REGISTRY[tank.Tank], step=lambda constants, state, action: (0.0, False)))
    assert register(REGISTRY[tank.Tank]).constants is tank.Tank
