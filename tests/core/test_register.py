"""A system of a user's own, registered from outside the package: the example of the book's page, as printed there."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from spaql import SPAQL, SPAQLTS
from spaql.systems import compiled_world, space_of, system_of
from tests.conftest import Opaque

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "book" / "own_system.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tank")
    (folder / "tank.py").write_text("\n\n".join(EXAMPLES[:2]), encoding="utf-8")
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


@pytest.mark.parametrize("algorithm", [SPAQL, SPAQLTS])
def test_it_learns_the_same_bits_compiled_and_interpreted(tank, algorithm):
    parameters = {"xi": 1.0, "horizon": 100, "seed": 3} | ({"reference": [0.5]} if algorithm is SPAQLTS else {})
    compiled = algorithm("Tank-v0", **parameters)
    interpreted = algorithm(Opaque(gym.make("Tank-v0")), **parameters)
    assert compiled.compiled
    assert not interpreted.compiled
    assert np.array_equal(compiled.learn(30, 3).history, interpreted.learn(30, 3).history)
    assert compiled.arms > 10


def test_it_is_a_hundred_times_faster(tank):
    def seconds_per_step(agent, iterations):
        agent.learn(2, 2)
        before = time.perf_counter()
        agent.learn(iterations, 5)
        return (time.perf_counter() - before) / (iterations * 6 * 100)

    compiled = seconds_per_step(SPAQL("Tank-v0", xi=1, horizon=100, seed=0), 500)
    interpreted = seconds_per_step(SPAQL(Opaque(gym.make("Tank-v0")), xi=1, horizon=100, seed=0), 20)
    assert interpreted / compiled >= 100


def test_its_constants_and_names_are_used(tank):
    env = tank.TankEnv(outflow=0.2)
    assert compiled_world(env, space_of(env)).model.constants == tank.Tank(0.2, 0.5)
    assert system_of(env).name == "Tank"
    policy = SPAQL("Tank-v0", xi=1, seed=0).learn(5, 1).policy
    assert policy.variables.observed == ("level",)
    assert set(policy.table().columns[:2]) == {"level_low", "level_high"}


USE = "import tank; from spaql import SPAQL; a = SPAQL('Tank-v0', xi=1, seed=0).learn(5, 1); "
HITS = (
    "from spaql.compiling import machine_code; from spaql.loop import advance; "
    "print(len(machine_code(advance, tank.Tank).stats.cache_hits))"
)


def test_the_next_process_loads_the_machine_code_and_a_change_compiles_again(folder, tank):
    first = run(folder, USE + "print(a.history.rewards[-1])")
    assert int(run(folder, USE + HITS)) == 1
    text = (folder / "tank.py").read_text(encoding="utf-8")
    changed = folder / "changed"
    changed.mkdir()
    # A change of the kernel alone: were old machine code used, the numbers would be the same.
    other = text.replace("return -abs(state[0] - 0.5), False", "return -2.0, False")
    (changed / "tank.py").write_text(other, encoding="utf-8")
    assert int(run(changed, USE + HITS)) == 0
    assert run(changed, USE + "print(a.history.rewards[-1])") != first


def test_the_twin_is_checked_as_printed(folder, tank):
    assert run(folder, EXAMPLES[2]) == "100 episodes, the same bits\n"


def test_a_twin_that_differs_in_a_bit_is_found(folder, tank):
    text = (folder / "tank.py").read_text(encoding="utf-8")
    kernel = "state[0] = min(1.0, max(0.0, level + (inflow - outflow) * tank.dt))"
    assert kernel in text
    wrong = folder / "wrong"
    wrong.mkdir()
    other = kernel.replace("(inflow - outflow) * tank.dt", "inflow * tank.dt - outflow * tank.dt")
    (wrong / "tank.py").write_text(text.replace(kernel, other), encoding="utf-8")
    code = "import tank\nfrom spaql.systems.twins import check_twin\n"
    code += "try: check_twin('Tank-v0')\nexcept ValueError as error: print(error)"
    said = run(wrong, code)
    assert re.fullmatch(r"the (reward of|observation after) step \d+: .* in the environment, .* in its twin\n", said)


def test_the_pages_last_example_runs_as_printed(folder, tank):
    printed = run(folder, EXAMPLES[3])
    assert printed.startswith("True ")
    assert "level" in printed
    assert re.search(r"int policy\(double level\)", printed)
