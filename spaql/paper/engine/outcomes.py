"""Summary numbers of a run: what is stored of each agent beside its parameters."""

from collections.abc import Mapping

import numpy as np

from spaql.paper.engine.algorithms import ALGORITHMS, Trained
from spaql.paper.engine.job import Job
from spaql.systems import make_env, system_of

BATCH, EARLY = 200, 200  # samples in a batch of the paper's comparison, and batches up to which SPAQL leads in it
BUDGET = 400_000  # samples each algorithm trains on, as the paper counts them

FALLEN, HELD = 20, 200  # steps after which, as the paper says, a pole has fallen, or was held to the end
LONGER_STEPS = (500, 2000)  # to which a pole may go on standing
CONTROLLED = -500.0  # a pendulum that earns this stands for most of an episode
NEAR_UP, NEAR_POLE = 0.5, 0.1  # rad from upright: a pendulum that stands, a pole that is kept, as the paper says

CURVES = ("rewards", "evaluations", "arms", "steps", "evaluation_steps")  # columns of the history that may be stored
UNUSED = ("late", "progress", "rise_late")  # numbers that older files have

Curves = np.ndarray | Mapping[str, np.ndarray]  # a history, or some of its columns


def outcome(job: Job, trained: Trained) -> dict[str, float]:
    """Return the numbers of an agent by name; those that its run does not tell are missing.

    At the end of training: `rewards` as the paper reports it (the best so far for SPAQL and SPAQL-TS), `arms`, and
    `evaluations`, the mean of the last rollouts.  On fresh episodes: mean `fresh` and its `fresh_std`, and of a network
    without its noise `fresh_deterministic` and `fresh_deterministic_std`.  Samples: `steps` of training,
    `evaluation_steps` of rollouts, `samples` that the algorithm needed in all.

    Of the learning curve: its mean over the first 200 batches (`early`), and over 200 and 2,000 batches if every sample
    is counted that the algorithm needs (`early_all`, `budget_all`).  Of fresh episodes: the shares that are `held`,
    `fallen` and `controlled`.  Of the recorded one: for how many of its last steps it stays upright (`steady`), whether
    for the last quarter (`stands`), and the share near upright (`kept`).  Of longer episodes: of those that hold the
    pole for 200 steps, the shares that go on to 500 and to 2,000.
    """
    history = trained.history
    found = {name: history[name][-1].item() for name in ("rewards", "arms", "evaluations")}
    for name, returns in (("fresh", trained.fresh), ("fresh_deterministic", trained.quiet)):
        if returns.size:
            found |= {name: float(returns.mean()), f"{name}_std": float(returns.std())}
    found |= {name: int(history[name].sum()) for name in ("steps", "evaluation_steps")}
    found["samples"] = int(samples_taken(job, history)[-1])
    found |= of_curve(job, history)
    if not ALGORITHMS[job.algorithm].by_samples:
        found |= of_episodes(job, trained) | of_longer(trained.longer)
    return {name: value for name, value in found.items() if value == value}


def samples_taken(job: Job, history: Curves, rollouts: bool = True) -> np.ndarray:
    """Return how many samples an agent had taken after each row of its history: all that it needed.

    SPAQL and SPAQL-TS need their rollouts, which choose the agent they keep (`rollouts=False` leaves them out, as the
    paper does); AQL's and the others' only report.
    """
    spent = history["steps"].astype(np.int64)
    if rollouts and ALGORITHMS[job.algorithm].chooses:
        spent = spent + history["evaluation_steps"]
    return np.cumsum(spent)


def samples_behind(job: Job, history: Curves, rollouts: bool = True) -> np.ndarray:
    """Return how many samples the policy behind each row of an agent's history had been given.

    TRPO's rewards are those of the episodes that it learns from, which its policy played before the update.
    """
    if ALGORITHMS[job.algorithm].before:
        return np.cumsum(history["steps"]) - history["steps"]
    return samples_taken(job, history, rollouts)


def batches(job: Job, history: Curves) -> np.ndarray:
    """Return after how many batches of 200 samples the policies behind an agent's rewards were there.

    The paper counts an iteration of its algorithms as one batch, even where the pole falls sooner.
    """
    if ALGORITHMS[job.algorithm].before:
        return samples_behind(job, history) / BATCH
    return np.arange(1, len(history["rewards"]) + 1)


def of_curve(job: Job, history: np.ndarray) -> dict[str, float]:
    """Return the numbers of a learning curve."""
    rewards, at = history["rewards"], batches(job, history)
    # The rows of algorithms that count samples are no batches.
    early = rewards[(at > 0) & (at <= EARLY) & (not ALGORITHMS[job.algorithm].by_samples)]
    return {
        "early": float(early.mean()) if early.size else np.nan,
        "early_all": mean_on_the_way(job, history, EARLY),
        "budget_all": mean_on_the_way(job, history, BUDGET // BATCH),
    }


def mean_on_the_way(job: Job, history: Curves, count: int, rollouts: bool = True) -> float:
    """Return the mean reward over so many batches, all samples counted that the algorithm needs, or those of training.

    At every 20th batch it is the reward of the newest policy that its samples suffice for; before the first, that of
    the first.
    """
    at = np.searchsorted(samples_behind(job, history, rollouts), np.arange(20, count + 1, 20) * BATCH, side="right") - 1
    return float(history["rewards"][np.maximum(at, 0)].mean())


def of_episodes(job: Job, trained: Trained) -> dict[str, float]:
    """Return the numbers of fresh episodes and of the recorded one."""
    earned = trained.fresh.astype(np.float32)
    shares = {"held": earned >= HELD, "fallen": earned <= FALLEN, "controlled": earned >= CONTROLLED}
    found = {name: float(np.mean(share)) for name, share in shares.items()}
    system = system_of(make_env(job.system))
    if not trained.episode or system is None:
        return found
    place = system.telling[0]
    values, period = trained.episode["states"][:, place], system.state[place].period
    tilted = np.abs((values + period / 2) % period - period / 2 if period else values)
    outside = np.flatnonzero(~(tilted <= NEAR_UP))
    steady = len(tilted) - (outside[-1] + 1 if outside.size else 0)
    found |= {"steady": float(steady), "stands": float(steady >= HELD / 4)}
    return found | {"kept": float(np.mean(tilted <= NEAR_POLE))}


def of_longer(returns: np.ndarray) -> dict[str, float]:
    """Return the shares of the episodes that reach the paper's last step which go on, if there are any."""
    held = returns[returns >= HELD]
    return {f"reach_{length}": float(np.mean(held >= length)) for length in LONGER_STEPS} if held.size else {}
