"""How fast it is: seven ratios within one run, which hold on any machine (`make bench`)."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from spaql import SPAQL, Random
from spaql.agent import Agent
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.paper.engine.run import run
from spaql.paper.engine.study import LONG_N, LONG_XI, make_jobs
from spaql.systems import make_env

PENDULUM, CARTPOLE = "Pendulum-v1", "CartPole-v0"
ITERATIONS = 2000


def measure() -> Iterator[tuple[str, str, str]]:
    """Yield what was measured, the ratio, and the bound that we aim at."""
    random = {system: step_of(Random(system, seed=0), 2000, 20) for system in (PENDULUM, CARTPOLE)}
    for system, name, most in ((CARTPOLE, "SPAQL-TS", 2), (PENDULUM, "AQL", 4), (PENDULUM, "SPAQL", 2)):
        agent = ALGORITHMS[name].agent(system, xi=LONG_XI[system][name], seed=0)
        pace = step_of(agent, ITERATIONS, LONG_N[system])  # that of the last, SPAQL, is needed below
        what = f"{name}, {system}: a step, against one of a random policy ({random[system] * 1e9:.0f} ns)"
        yield what, f"{pace / random[system]:.2f}", f"at most {most}"
    what = f"SPAQL, {PENDULUM}: its steps in the time of one of Gymnasium's"
    yield what, f"{gymnasium_step() / pace:.0f}", "at least 60"
    agent = SPAQL(PENDULUM, xi=4, seed=0).learn(50)
    early = step_of(agent, 100, 20)
    late = step_of(agent.learn(ITERATIONS - 200), 100, 20)
    yield f"SPAQL, {PENDULUM}: a step at iteration {ITERATIONS}, against 100", f"{late / early:.2f}", "at most 1.5"
    jobs = make_jobs("SPAQL", PENDULUM, 4, agents=10, iterations=1000, evaluations=20)
    run(jobs[:1], stored=False, progress_bar=False)
    one, two = (seconds(partial(run, jobs, workers=n, stored=False, progress_bar=False)) for n in (1, 2))
    yield "10 agents of SPAQL: two workers, against one", f"{one / two:.2f}", "at least 1.8 on two free cores"
    train = "from spaql import SPAQL; SPAQL('Pendulum-v1', xi=4, seed=0).learn(1)"
    python_start(train)
    bare, warm = map(python_start, ("import gymnasium, numba", train))
    yield "a second start up to the first iteration, against imports", f"{warm / bare:.2f}", "at most 3"


def seconds(call: Callable[[], Any]) -> float:
    """Return the wall time of a call."""
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def step_of(agent: Agent, iterations: int, evaluations: int) -> float:
    """Return the seconds that an environment step of learning takes, rollouts included, once all is compiled."""
    agent.learn(2, 2)
    done = len(agent.history)
    wall = seconds(lambda: agent.learn(iterations, evaluations))
    history = agent.history[done:]
    return wall / (history["steps"].sum() + history["evaluation_steps"].sum())


def gymnasium_step(total: int = 20_000) -> float:
    """Return the seconds that a step of Gymnasium's own Pendulum takes, without its wrappers."""
    env = make_env(PENDULUM).unwrapped
    env.reset(seed=0)
    action = env.action_space.sample()
    return seconds(lambda: [env.step(action) for _ in range(total)]) / total


def python_start(script: str) -> float:
    """Return the wall time of a new process."""
    return seconds(lambda: subprocess.run([sys.executable, "-c", script], check=True))
