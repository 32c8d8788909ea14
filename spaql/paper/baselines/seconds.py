"""Seconds until a level is reached, on one core: what a user waits for, and the environment's share of it.

`python -m spaql.paper.baselines.seconds [ALGORITHM ...]` measures, and keeps what it found in results/seconds.json.
An agent trains until its policy's mean over fresh episodes is 90 % of the way from Random to the limit, or it has had
its samples.  The clock is the processor's time of a single thread, so that other programs do not count; it stands
still while the policy is evaluated, and begins when everything is compiled.
"""

import json
import sys
import time
from typing import Any

import numpy as np

from spaql.paper.baselines.compute import BASELINES
from spaql.paper.baselines.linear import RandomLinear
from spaql.paper.baselines.search import MOST
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import TEXTBOOK, untrained
from spaql.paper.runs.job import Job, seeds
from spaql.paper.runs.network_settings import SB3_SAMPLES as SAMPLES
from spaql.paper.runs.repaired_settings import CHECKPOINT

LEVELS = {"Pendulum-v1": -250.0, "CartPole-v1": 452.0, "MountainCar-v0": -108.0, "Acrobot-v1": -109.0}
AGENTS, EPISODES, SEED = 3, 100, 5050


def learner_of(job: Job) -> Any:
    """Return SPAQL-R or a baseline before it learns."""
    if job.algorithm == "SPAQL-R":
        return untrained(job)
    made, settings = BASELINES[job.algorithm]
    return made(job.system, seeds(job)[0], **settings)


def measure_ours(agent: Any, level: float, most: int) -> tuple[int, float, bool]:
    """Return the samples and seconds until what `learner_of` returns reaches a level, and whether it does."""
    seconds = 0.0
    for taken in range(CHECKPOINT, most + 1, CHECKPOINT):
        before = time.process_time()
        agent.learn(samples=CHECKPOINT)
        seconds += time.process_time() - before
        if agent.evaluate(EPISODES, seed=taken).mean() >= level:
            return taken, seconds, True
    return most, seconds, False


def measure_network(job: Job, level: float, most: int) -> tuple[int, float, bool]:
    """Measure an agent of Stable-Baselines3, which is stopped as soon as the level is reached."""
    from spaql.paper.runs import sb3

    class Clock(sb3.Checkpoints):
        looking = 0.0

        def _on_step(self) -> bool:
            before = time.process_time()
            super()._on_step()
            self.looking += time.process_time() - before
            return not self.means or self.means[-1] < level

    agent, looks = sb3.untrained(job), Clock(job, np.arange(job.iterations))
    before = time.process_time()
    agent.learn(most, callback=looks)
    seconds = time.process_time() - before - looks.looking
    reached = bool(looks.means and looks.means[-1] >= level)
    return (looks.samples[-1] if reached else most), seconds, reached


def environment_seconds(system: str, samples: int = 100_000) -> float:
    """Return the seconds that so many samples of a compiled system take with a policy that does next to nothing."""
    player = RandomLinear(system, 0)
    player.learn(CHECKPOINT)  # compiled
    before = time.process_time()
    player.learn(samples)
    return time.process_time() - before


def measure(algorithm: str, system: str) -> list[dict[str, Any]]:
    """Return one row per agent."""
    network = (algorithm, system) in SAMPLES
    most = SAMPLES[algorithm, system] if network else MOST.get(algorithm, 100_000)
    rows = []
    for agent in range(-1, AGENTS):  # the first one compiles, and does not count
        job = Job(algorithm, system, 0.0, most // CHECKPOINT, EPISODES, SEED, max(agent, 0))
        if network and agent < 0:
            continue
        until = LEVELS[system], most if agent >= 0 else 2 * CHECKPOINT
        found = measure_network(job, *until) if network else measure_ours(learner_of(job), *until)
        samples, seconds, reached = found
        if agent >= 0:
            rows.append({"algorithm": algorithm, "system": system, "agent": agent, "samples": samples}
                        | {"seconds": round(seconds, 4), "reached": reached})  # fmt: skip
    return rows


def main(names: list[str]) -> None:
    """Measure some algorithms, or all, on every system, in place of what was measured of them before."""
    path = provenance.default_store() / "seconds.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"agents": []}
    names = names or ["SPAQL-R", *(name for name in TEXTBOOK if name != "By hand"), "PPO", "DQN", "SAC"]
    found["environment"] = {system: round(environment_seconds(system), 4) for system in LEVELS}
    for algorithm in names:
        for system in LEVELS:
            if algorithm in ("PPO", "DQN", "SAC") and (algorithm, system) not in SAMPLES:
                continue
            kept = [row for row in found["agents"] if (row["algorithm"], row["system"]) != (algorithm, system)]
            found["agents"] = kept + measure(algorithm, system)
            lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found["agents"])
            around = json.dumps({"environment": found["environment"], "origin": provenance.provenance()["machine"]})
            path.write_text(f'{around[:-1]}, "agents": [\n{lines}\n]}}\n', encoding="utf-8")
            print(algorithm, system, found["agents"][-AGENTS:], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
