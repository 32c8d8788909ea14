"""The search for the settings of the textbook's algorithms and of SPAQL-R: of each one set for all systems.

Settings of each algorithm are drawn at random from the lists below, as many as `TRIALS` says (20 at first; more, and
the second round, came after first results).  Lists were widened after comparisons: Sarsa(λ)'s, because its share of
random actions did not decay; then those of tiles and grid, because actions could share less of an update than
SPAQL-R's.  SPAQL-R was searched anew when its advantages were put on tiles, with the numbers of its prototype and of
tiles as a start.  Each trial trains `AGENTS` agents on every tuning system.  Its score is the mean of (return - worst)
/ (best - worst), cut to [0, 1], over systems and checkpoints.  The best `AGAIN` by score, and at last also the best
`AGAIN` by the last checkpoint alone, are tried again on another seed with `MORE` agents.  The highest score of these is
chosen, the first of equals; of Sarsa(λ) and of tiles the one that ends best is a second rival, the slower one.
Settings chosen by hand (`PROTOTYPES`) follow the random ones.  Fitted Q iteration, which takes a minute and more, is
tried with fewer settings and samples, and once.

What SPAQL-R is, besides its settings, was decided before, by the score above with six to twelve agents and other seeds,
at last the second round's.  The cells alone, with slopes in the place of tiles, had 0.78; when all actions of a cell
shared four fifths of an update, 0.88; with the value on tiles 0.92 to 0.93, and on a forest of adaptive trees 0.83;
with advantages on tiles, too, 0.95 to 0.96.  There it made no difference whether all cells were cut, or those where the
tiles disagree.

`python -m spaql.paper.baselines.search` searches, and keeps every trial; it goes on where it was interrupted.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spaql import SPAQLR
from spaql.paper.baselines.compute import BASELINES
from spaql.paper.runs import provenance
from spaql.systems import make_env, system_of


class Relative(NamedTuple):
    """A system on which settings are tried: one that is compared, with other constants."""

    system: str
    worst: float  # about the worst and the best return
    best: float
    sizes: Mapping[str, float] = {}  # mass and length, in multiples of the system's
    attributes: Mapping[str, float] = {}  # of the environment

    def make(self) -> gym.Env:
        """Return the environment."""
        env = make_env(self.system)
        for name, number in self.attributes.items():
            setattr(env.unwrapped, name, number)
        if (system := system_of(env)) is not None and system.vary is not None:
            system.vary(env, **self.sizes)
        return env


RELATIVES = {  # MountainCarContinuous has none: what is earned there is earned by settings that had not seen it
    "pendulum": Relative("Pendulum-v1", -1230.0, -140.0, {"mass": 0.8, "length": 1.2}),
    "cart_pole": Relative("CartPole-v1", 20.0, 500.0, {"length": 1.4}),
    "mountain_car": Relative("MountainCar-v0", -200.0, -100.0, attributes={"gravity": 0.0027}),  # 0.0025
    "acrobot": Relative("Acrobot-v1", -500.0, -70.0, {"mass": 1.2}),
}
CHECKPOINTS = (5_000, 10_000, 20_000, 40_000, 100_000)  # samples
ALL, LAST = slice(None), slice(-1, None)
MOST = {"Fitted Q": 20_000}  # of them, where it is not all
EPISODES = 20  # at each of them
SEED = 4040  # no table's
AGENTS, AGAIN, MORE = 2, 4, 12

REPLAYED: dict[str, tuple] = {
    "alpha": (0.05, 0.1, 0.2, 0.4),
    "epsilon": (0.05, 0.1),
    "decay": (2000.0, 5000.0),
    "replays": (8, 16, 32),
    "steps": (5, 20, 50),
    "actions": (2, 3),
}
GAMMAS = (0.98, 0.99, 0.995)
TILED = {"common": (0.0, 0.5, 0.8, 0.9), "tilings": (8, 16), "bins": (6, 8, 10), "gamma": GAMMAS} | REPLAYED
LISTS: dict[str, dict[str, tuple]] = {
    "SPAQL-R": {
        "beta": (0.01, 0.02, 0.05, 0.1),
        "visits": (10, 20, 30, 50),
        "tilings": (8, 16, 32),
        "bins": (6, 8, 10),
        "discount": GAMMAS,
    }
    | REPLAYED,
    "Sarsa(λ)": {
        "tilings": (8, 16, 32),
        "bins": (4, 6, 8, 10),
        "alpha": (0.1, 0.2, 0.3, 0.5, 0.8),
        "lam": (0.5, 0.8, 0.9, 0.95),
        "gamma": (0.99, 1.0),
        "epsilon": (0.0, 0.01, 0.05, 0.1),
        "actions": (2, 3),
    },
    "Tiles, replayed": TILED,
    "Grid, replayed": TILED | {"tilings": (1,), "bins": (8, 12, 16, 20)},
    "Fitted Q": {
        "trees": (10, 20),
        "least": (2, 5, 10),
        "sweeps": (5, 10, 20),
        "gamma": GAMMAS,
        "epsilon": (0.1, 0.3),
        "decay": (5000.0, 20000.0),
        "actions": (2, 3),
    },
}
NEAR_ONE = (0.8, 0.9, 0.95, 0.98)
WIDER = {  # drawn from as often, after the lists above
    "Tiles, replayed": [TILED | {"common": NEAR_ONE, "tilings": (16, 32)}],
    "Grid, replayed": [LISTS["Grid, replayed"] | {"common": NEAR_ONE}],
    "Sarsa(λ)": [
        LISTS["Sarsa(λ)"]
        | {"tilings": (8, 16, 32, 64), "alpha": (0.1, 0.2, 0.3, 0.5, 0.8, 1.0), "decay": (0.0, 2000.0, 5000.0)},
        LISTS["Sarsa(λ)"]
        | {"tilings": (16, 32, 64), "alpha": (0.3, 0.5, 0.8, 1.0), "gamma": (0.99, 0.995, 1.0), "lam": (0.8, 0.9, 0.95)}
        | {"epsilon": (0.0, 0.01, 0.05), "decay": (500.0, 1000.0, 2000.0)},
    ],
}
PROTOTYPES = {
    "SPAQL-R": [
        {"alpha": 0.2, "beta": beta, "tilings": tilings, "bins": 8, "discount": 0.995, "epsilon": 0.1, "decay": 2000.0,
         "replays": 16, "visits": visits, "steps": 50, "actions": 2}
        for beta in (0.02, 0.05) for visits in (10, 20) for tilings in (16, 32)
    ],
    "Sarsa(λ)": [
        {"tilings": 32, "bins": 8, "alpha": 0.8, "lam": lam, "gamma": 0.995, "epsilon": 0.01, "decay": 1000.0,
         "actions": 2}
        for lam in (0.9, 0.95)
    ],
    "Tiles, replayed": [
        {"alpha": 0.2, "common": 0.8, "tilings": 16, "bins": 8, "gamma": 0.99, "epsilon": 0.05, "decay": 5000.0,
         "replays": 8, "steps": 5, "actions": 2},
        *(
            {"alpha": 0.2, "common": common, "tilings": tilings, "bins": 8, "gamma": 0.995, "epsilon": 0.1,
             "decay": 2000.0, "replays": 16, "steps": 50, "actions": 2}
            for common in (0.9, 0.95, 0.98, 0.99) for tilings in (16, 32)
        ),
    ],
}  # fmt: skip
TRIALS = {"SPAQL-R": 96, "Sarsa(λ)": 48, "Tiles, replayed": 48, "Grid, replayed": 48, "Fitted Q": 12}


def draw_settings(algorithm: str) -> list[dict[str, Any]]:
    """Return the settings that are tried, no two of them equal."""
    rng = np.random.default_rng([SEED, len(algorithm)])
    found: list[dict[str, Any]] = []
    for many, lists in enumerate([LISTS[algorithm], *WIDER.get(algorithm, [])], 1):
        while len(found) < many * TRIALS[algorithm]:
            one = {name: options[rng.integers(len(options))] for name, options in lists.items()}
            if one not in found:
                found.append(one)
    return found + PROTOTYPES.get(algorithm, [])


def try_settings(
    algorithm: str, settings: dict[str, Any], agents: int = AGENTS, seed: int = SEED
) -> dict[str, list[float]]:
    """Return what agents with these settings earn at each checkpoint, by the name of the tuning system."""
    returns = {}
    for name, relative in RELATIVES.items():
        each = []
        for agent in range(agents):
            kind = SPAQLR if algorithm == "SPAQL-R" else BASELINES[algorithm][0]
            learner = kind(relative.make(), seed=np.random.SeedSequence([seed, agent]), **settings)
            means, taken = [], 0
            for samples in (count for count in CHECKPOINTS if count <= MOST.get(algorithm, np.inf)):
                learner.learn(samples=samples - taken)
                taken = samples
                means.append(learner.evaluate(EPISODES, np.random.SeedSequence([seed, agent, samples])).mean())
            each.append(means)
        returns[name] = np.mean(each, axis=0).round(2).tolist()
    return returns


def score(returns: dict[str, list[float]], counted: slice = ALL) -> float:
    """Return the score of a trial from its returns by the name of the system, one for each checkpoint."""
    shares = [
        np.clip((np.array(returns[name][counted]) - relative.worst) / (relative.best - relative.worst), 0.0, 1.0).mean()
        for name, relative in RELATIVES.items()
    ]
    return float(np.mean(shares))


def chosen(trials: list[dict[str, Any]], algorithm: str, counted: slice = ALL) -> dict[str, Any]:
    """Return the settings that the rule chooses among the trials of an algorithm, by some of the checkpoints."""
    own = [trial for trial in trials if trial["algorithm"] == algorithm]
    last = "again" if any("again" in trial for trial in own) else "returns"
    return max((trial for trial in own if last in trial), key=lambda trial: score(trial[last], counted))["settings"]


def load_trials() -> list[dict[str, Any]]:
    """Return the stored trials, none if there are none yet."""
    path = provenance.default_store() / "textbook" / "search.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def search() -> None:
    """Try what has not been tried yet."""
    trials = load_trials()
    for algorithm in LISTS:
        for settings in draw_settings(algorithm):
            if not any(trial["algorithm"] == algorithm and trial["settings"] == settings for trial in trials):
                returns = try_settings(algorithm, settings)
                trials.append({"algorithm": algorithm, "settings": settings, "returns": returns})
                write_trials(trials)
        own = [trial for trial in trials if trial["algorithm"] == algorithm]
        again = 0 if algorithm in MOST else AGAIN
        for counted in (ALL, LAST):
            for trial in sorted(own, key=lambda trial: -score(trial["returns"], counted))[:again]:
                if "again" not in trial:
                    trial["again"] = try_settings(algorithm, trial["settings"], MORE, SEED + 1)
                    write_trials(trials)
        print(algorithm, chosen(trials, algorithm), flush=True)


def write_trials(trials: list[dict[str, Any]]) -> None:
    """Write every trial so far."""
    path = provenance.default_store() / "textbook" / "search.json"
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(trial, ensure_ascii=False) for trial in trials)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    search()
