"""How fast it is, as ratios within one run: the table of `make bench`."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from spaql import SPAQL, SPAQLR
from spaql.agent import Agent
from spaql.compiling import either
from spaql.paper.runs.algorithms import make_agent
from spaql.paper.runs.provenance import default_store, provenance, repository
from spaql.paper.runs.runner import run
from spaql.paper.studies import BOTH, LONG_N, LONG_SYSTEMS, LONG_XI, make_jobs
from spaql.policies.play import world_of
from spaql.progress import progress
from spaql.systems import REGISTRY, episode_limit, make_env, reset, room, space_of, step

BOUNDS = {"AQL": 4.0, "SPAQL": 2.0, "SPAQL-TS": 2.0}  # of a step, in steps of random rollouts

MEGABYTES = {("AQL", "Pendulum-v1"): 60}  # of a forest, at most
GYMNASIUM = {("SPAQL", "Pendulum-v1"): 60}  # steps in the time of one of Gymnasium's, at least

Row = tuple[str, str, str, bool]  # what was measured, the figure, the bound, and whether it holds
Result = TypeVar("Result")


def at_most(what: str, figure: float, bound: float, unit: str = "×", digits: int = 2) -> Row:
    """Return the row of a figure that shall not be above a bound."""
    return what, f"{figure:.{digits}f}{unit}", f"≤ {bound:g}{unit}", figure <= bound


def at_least(what: str, figure: float, bound: float) -> Row:
    """Return the row of a ratio that shall not be below a bound."""
    return what, f"{figure:.2f}×", f"≥ {bound:g}×", figure >= bound


@either
def random_rollouts(world, starts, limit, rng):
    """Play rollouts of uniformly drawn actions; return the number of steps and the sum of rewards."""
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(len(world.space.action_half))
    steps, total = 0, 0.0
    for i in range(len(starts)):
        reset(world, state, starts[i], x)
        for _ in range(limit):
            for j in range(action.size):
                if world.space.actions:
                    action[j] = float(int(world.space.actions * rng.random()))
                else:
                    action[j] = 2.0 * rng.random() - 1.0
            reward, over = step(world, state, action, x)
            total += reward
            steps += 1
            if over:
                break
    return steps, total


def seconds(function: Callable[[], Result]) -> tuple[float, Result]:
    """Return the wall time a call took, and its result."""
    before = time.perf_counter()
    result = function()
    return time.perf_counter() - before, result


def random_step(env_id: str, total: int = 4_000_000) -> float:
    """Return the seconds a step of random rollouts takes on the compiled system."""
    env = make_env(env_id)
    world, limit, rng = world_of(env, space_of(env)), episode_limit(env), np.random.default_rng(0)
    first = world.draw(rng, 100)
    taken, _ = world.call(random_rollouts, first, limit, rng)
    starts = world.draw(rng, total * len(first) // taken)
    wall, (steps, _) = seconds(lambda: world.call(random_rollouts, starts, limit, rng))
    return wall / steps


def gymnasium_step(env: str | gym.Env, total: int = 20_000) -> float:
    """Return the seconds Gymnasium's own step takes, without its wrappers, resets or a policy."""
    env = make_env(env).unwrapped
    env.reset(seed=0)
    action = env.action_space.sample()
    return seconds(lambda: [env.step(action) for _ in range(total)])[0] / total


def learning_step(agent: Agent, iterations: int, evaluations: int) -> float:
    """Return the seconds an environment step of learning takes, training and evaluation together."""
    done = len(agent.history)
    wall, _ = seconds(lambda: agent.learn(iterations, evaluations))
    history = agent.history[done:]
    return wall / (history["steps"].sum() + history["evaluation_steps"].sum())


class Cheap(gym.Env):
    """An environment that costs next to nothing: what a step of learning on it takes is the package's own share."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float64)
    action_space = gym.spaces.Discrete(3)
    seen = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 4))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place = 0
        return self.seen[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.place = (self.place + 1) % len(self.seen)
        return self.seen[self.place], 0.0, False, False, {}


def interpreted_share() -> float:
    """Return the seconds that a step of learning takes beside the environment, where that is not compiled."""
    agent = SPAQL(Cheap(), xi=1, seed=0, horizon=200).learn(1, 2)
    return learning_step(agent, 5, 20) - gymnasium_step(Cheap())


def second_start() -> float:
    """Return the seconds from the start of a process to the end of its first Pendulum iteration, with a warm cache."""
    script = "from spaql import SPAQL; SPAQL('Pendulum-v1', xi=4, seed=0).learn(1)"
    command = [sys.executable, "-c", script]
    subprocess.run(command, check=True)
    return seconds(lambda: subprocess.run(command, check=True))[0]


def parallel_speed() -> float:
    """Return how much faster two threads compute some agents than one."""
    jobs = make_jobs(["SPAQL"], ["Pendulum-v1", "CartPole-v0"], [4], agents=10, iterations=300, evaluations=20)
    run(jobs[:1] + jobs[-1:], store=None, progress_bar=False)
    one, two = (seconds(partial(run, jobs, workers=count, store=None, progress_bar=False))[0] for count in (1, 2))
    return one / two


def trpo_speed(env_id: str, iterations: int = 4) -> tuple[float, float, dict[str, float]]:
    """Return TRPO's samples a second on the compiled environments and on SB3's, and where the time of the first goes.

    Both train the same number of environments with the same settings.
    """
    from stable_baselines3.common.env_util import make_vec_env

    from spaql.paper.runs.network_settings import settings_of
    from spaql.paper.runs.sb3 import CompiledVecEnv, make_model

    settings = settings_of("TRPO", env_id)
    samples = iterations * settings["n_envs"] * settings["n_steps"]
    pace, spent = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of CartPole-v0
        theirs = make_vec_env(env_id, settings["n_envs"], seed=0)
    for env in (theirs, CompiledVecEnv(env_id, settings["n_envs"], 0)):
        agent = make_model(env, "TRPO", env_id, seed=0)
        agent.learn(settings["n_envs"] * settings["n_steps"])  # warm
        spent = {"environments": 0.0, "updates": 0.0}
        clocked(env, "step_wait", spent, "environments")
        clocked(agent, "train", spent, "updates")
        wall, _ = seconds(partial(agent.learn, samples))
        pace.append(samples / wall)
    shares = {name: part / wall for name, part in spent.items()}
    return pace[1], pace[0], shares | {"policy and bookkeeping": 1.0 - sum(shares.values())}


def clocked(owner: object, method: str, spent: dict[str, float], name: str) -> None:
    """Let every call of a method add its wall time to `spent`."""
    original = getattr(owner, method)

    def timed(*arguments: Any) -> Any:
        wall, result = seconds(lambda: original(*arguments))
        spent[name] += wall
        return result

    setattr(owner, method, timed)


def further_systems() -> list[str]:
    """Return the first id of each of the package's systems that the paper's long runs do not have.

    Systems with a few steps an episode are left out: there the clock would measure how episodes begin.
    """
    ours = (system for system in REGISTRY.values() if system.describe.__module__.startswith("spaql.systems."))
    systems = (system for system in ours if not set(system.titles) & set(LONG_SYSTEMS))
    ids = [next(iter(system.titles)) for system in systems if system.titles]
    return [env_id for env_id in ids if (episode_limit(make_env(env_id)) or 0) >= 100]


def learning_rows(name: str, env_id: str, xi: float, iterations: int, evaluations: int, base: float) -> Iterator[Row]:
    """Measure an algorithm on a system, against a step of random rollouts that takes `base` seconds."""
    make_agent(name, env_id, xi, seed=0).learn(2, 2)  # so that nothing compiles while the clock runs
    agent = make_agent(name, env_id, xi, seed=0)
    pace = learning_step(agent, iterations, evaluations)
    what = f"{name} on {env_id}: a step, against a step of random rollouts ({base * 1e9:.0f} ns)"
    yield at_most(what, pace / base, BOUNDS[name])
    if (most := MEGABYTES.get((name, env_id))) is not None:
        megabytes = sum(array.nbytes for array in agent._trainee[:-1]) / 1e6
        yield at_most(f"{name} on {env_id}: memory of {agent.arms:,} arms", megabytes, most, " MB", 0)
    if (least := GYMNASIUM.get((name, env_id))) is not None:
        what = f"{name} on {env_id}: steps in the time of one of Gymnasium's alone"
        yield at_least(what, gymnasium_step(env_id) / pace, least)


def sampling_step(agent: SPAQLR, samples: int) -> float:
    """Return the seconds that a sample of SPAQL-R takes, with what it learns from it and from its memory."""
    return seconds(lambda: agent.learn(samples=samples))[0] / samples


def repaired_rows(env_id: str, base: float, samples: int = 10_000) -> Iterator[Row]:
    """Measure SPAQL-R: what an update from memory costs, and whether a sample costs more when many have been taken."""
    SPAQLR(env_id, seed=0).learn(samples=500)  # so that nothing compiles while the clock runs
    agent, plain = SPAQLR(env_id, seed=0), SPAQLR(env_id, seed=0, replays=0)
    early, bare = sampling_step(agent, samples), sampling_step(plain, samples)
    update = (early - bare) / agent.parameters["replays"] / base
    what = f"SPAQL-R on {env_id}: an update from memory, against a step of random rollouts ({base * 1e9:.0f} ns)"
    yield at_most(what, update, 10, digits=1)
    agent.learn(samples=8 * samples)
    what = f"SPAQL-R on {env_id}: a sample after {9 * samples:,} others, against one of the first {samples:,}"
    yield at_most(what, sampling_step(agent, samples) / early, 3)


def rows(iterations: int = 2000) -> Iterator[Row]:
    """Measure, row by row."""
    for env_id in BOTH:
        base, evaluations = random_step(env_id), LONG_N[env_id]
        for name, xi in LONG_XI[env_id].items():
            yield from learning_rows(name, env_id, xi, iterations, evaluations, base)
        yield from repaired_rows(env_id, base)
    for env_id in further_systems():
        yield from learning_rows("SPAQL", env_id, 1.0, iterations, 20, random_step(env_id))
    early = late = 0.0
    for seed in range(5):
        agent = SPAQL("Pendulum-v1", xi=4, seed=seed).learn(50)
        early += learning_step(agent, 100, 20)
        agent.learn(iterations - 200)
        late += learning_step(agent, 100, 20)
    yield at_most(f"SPAQL on Pendulum-v1: a step at iteration {iterations} against 100", late / early, 1.5)
    if (os.cpu_count() or 1) > 1:
        yield at_least("20 SPAQL agents: two workers against one", parallel_speed(), 1.8)
    own = gymnasium_step("CartPole-v1")
    what = f"any other environment: a step beside it, against a step of Gymnasium's CartPole ({own * 1e6:.0f} µs)"
    yield at_most(what, interpreted_share() / own, 8, digits=1)
    what = "second start of a process, to the end of one Pendulum iteration"
    yield at_most(what, second_start(), 3, " s", 1)
    if importlib.util.find_spec("sb3_contrib") is not None:
        for env_id in BOTH:
            ours, theirs, shares = trpo_speed(env_id)
            went = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
            what = f"TRPO on {env_id}, {ours:,.0f} samples/s ({went}): against SB3's own environments"
            yield at_least(what, ours / theirs, 1.5)


def markdown(measured: Iterable[Sequence[Any]]) -> str:
    """Return the table of what was measured."""
    lines = ["| what | measured | bound | verdict |", "|---|---|---|---|"]
    for what, figure, bound, holds in measured:
        lines.append(f"| {what} | {figure} | {bound} | {'holds' if holds else 'misses'} |")
    return "\n".join(lines)


def print_bench(record: bool = False) -> None:
    """Measure with a progress bar and print the table; if told to, keep it where the book finds it."""
    if record and repository() is None:
        raise NotADirectoryError("the table is kept with the repository's results: call this in the repository")
    measured = []
    with progress(0, "bench", unit="row") as bar:
        for row in rows():
            measured.append([*row[:3], bool(row[3])])
            bar.update()
    source = provenance()
    if record:
        path = default_store() / "bench.json"
        path.parent.mkdir(exist_ok=True)
        kept = json.dumps({"rows": measured, "provenance": source}, indent=1, ensure_ascii=False)
        path.write_text(kept + "\n", encoding="utf-8")
    print(f"One core of {source['machine']}, warm cache; ratios are within this run.\n\n{markdown(measured)}")
