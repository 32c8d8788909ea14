"""What a record comes to: the numbers of one agent by name, which are the columns of the table of agents."""

import functools

import numpy as np

from spaql.paper.runs.algorithms import ALGORITHMS, by_samples
from spaql.paper.runs.job import Record
from spaql.systems import make_env, system_of

BATCH, EARLY = 200, 200  # samples in a batch of the paper's comparison, and batches up to which SPAQL leads in it
BUDGET = 400_000  # samples each algorithm trains on, as the paper counts them
EQUAL = 100_000  # samples at which all are compared on other systems, everything counted

FALLEN, HELD = 20, 200  # steps after which, as the paper says, a pole has fallen, or was held to the end
CONTROLLED = -500.0  # a pendulum that earns this stands for most of an episode
NEAR_UP, NEAR_POLE = 0.5, 0.1  # rad from upright: a pendulum that stands, a pole that is kept, as the paper says

COUNTS = ("arms", "steps", "evaluation_steps", "samples", "rows")  # whole numbers

ENDS = ("rewards", "arms", "evaluations", "fresh", "fresh_std", "fresh_deterministic", "fresh_deterministic_std")
SPENT = ("steps", "evaluation_steps", "samples", "rows")
CURVES = ("early", "late", "early_all", "equal_all", "budget_all", "progress", "rise_late")
EPISODES = ("held", "fallen", "controlled", "steady", "stands", "kept")
OUTCOMES = (*ENDS, *SPENT, *CURVES, *EPISODES)


def outcome(record: Record) -> dict[str, float]:
    """Return the numbers of an agent by name; NaN where its record does not tell.

    At the end of training: `rewards` as the paper reports it (the best so far for SPAQL and SPAQL-TS), `arms`, and
    `evaluations`, the mean of the last rollouts.  On fresh episodes: mean `fresh` and its `fresh_std`, and of a network
    without its noise `fresh_deterministic` and `fresh_deterministic_std`.  Samples: `steps` of training,
    `evaluation_steps` of rollouts, `samples` that the algorithm needed in all, in so many `rows` of its history.

    Of the learning curve: its means over the first 200 batches (`early`) and over its last quarter (`late`); over 200,
    500 and 2,000 batches if every sample is counted that the algorithm needs (`early_all`, `equal_all`, `budget_all`);
    its rise from the first quarter to the last (`progress`), and the share of its rise in the second half
    (`rise_late`).  Of fresh episodes: the shares that are `held`, `fallen` and `controlled`.  Of a recorded one: for
    how many of its last steps it stays upright (`steady`), whether for the last quarter (`stands`), and the share of
    its steps near upright (`kept`).
    """
    if record.row is not None:
        return dict(record.row)
    found: dict[str, float] = dict.fromkeys(OUTCOMES, np.nan)
    history, last = record.history, record.history[-1]
    found |= {name: last[name].item() for name in ("rewards", "arms", "evaluations")}
    found |= dict(zip(ENDS[3:], map(float, record.fresh), strict=False))
    found |= {name: int(history[name].sum()) for name in ("steps", "evaluation_steps")}
    found |= {"samples": int(samples_taken(record)[-1]), "rows": len(history)}
    if not record.job.brief:
        found |= dict(zip(CURVES, of_curve(record), strict=True))
    if record.rewards.size:
        found |= dict(zip(EPISODES, of_episodes(record), strict=True))
    return found


def samples_taken(record: Record, rollouts: bool = True) -> np.ndarray:
    """Return how many samples an agent had taken after each row of its history: all that it needed.

    SPAQL and SPAQL-TS need their rollouts, which choose the agent they keep (`rollouts=False` leaves them out, as the
    paper does); AQL's and the others' only report.
    """
    spent = record.history["steps"].astype(np.int64)
    if rollouts and ALGORITHMS[record.job.algorithm].chooses:
        spent = spent + record.history["evaluation_steps"]
    return np.cumsum(spent)


def samples_behind(record: Record, rollouts: bool = True) -> np.ndarray:
    """Return how many samples the policy behind each row of an agent's history had been given.

    TRPO's rewards are those of the episodes that it learns from, which its policy played before the update.
    """
    if ALGORITHMS[record.job.algorithm].before:
        return before_update(record.history["steps"])
    return samples_taken(record, rollouts)


def before_update(steps: np.ndarray) -> np.ndarray:
    """Return how many samples were taken before each iteration began."""
    return np.cumsum(steps) - steps


def batches(record: Record) -> np.ndarray:
    """Return after how many batches of 200 samples the policies behind an agent's rewards were there.

    The paper counts an iteration of its algorithms as one batch, even where the pole falls sooner.
    """
    if ALGORITHMS[record.job.algorithm].before:
        return samples_behind(record) / BATCH
    return np.arange(1, len(record.history) + 1)


def of_curve(record: Record) -> tuple[float, ...]:
    """Return the numbers of a learning curve, in the order of `CURVES`."""
    rewards, at = record.history["rewards"], batches(record)
    early, late = rewards[(at > 0) & (at <= EARLY)], rewards[at > 0.75 * at[-1]]
    if by_samples(record.job):  # whose rows are no batches
        early = late = rewards[:0]
    quarter = max(1, len(rewards) // 4)
    rise = rewards[-1] - rewards[0]
    return (
        *(float(part.mean()) if part.size else np.nan for part in (early, late)),
        *(mean_of_everything(record, count) for count in (EARLY, EQUAL // BATCH, BUDGET // BATCH)),
        float(rewards[-quarter:].mean() - rewards[:quarter].mean()),
        float((rewards[-1] - rewards[len(rewards) // 2 - 1]) / rise) if rise else 0.0,
    )


def mean_of_everything(record: Record, count: int) -> float:
    """Return the mean reward over so many batches, all samples counted that the algorithm needs.

    At every 20th batch it is the reward of the newest policy that its samples suffice for; before the first, that of
    the first.
    """
    at = np.searchsorted(samples_behind(record), np.arange(20, count + 1, 20) * BATCH, side="right") - 1
    return float(record.history["rewards"][np.maximum(at, 0)].mean())


def of_episodes(record: Record) -> tuple[float, ...]:
    """Return the numbers of fresh episodes and of the recorded one, in the order of `EPISODES`."""
    earned, tilted = record.rewards, tilt(record)
    shares = [float(np.mean(share)) for share in (earned >= HELD, earned <= FALLEN, earned >= CONTROLLED)]
    if tilted is None:
        return (*shares, np.nan, np.nan, np.nan)
    outside = np.flatnonzero(~(tilted <= NEAR_UP))
    steady = len(tilted) - (outside[-1] + 1 if outside.size else 0)
    return (*shares, float(steady), float(steady >= HELD / 4), float(np.mean(tilted <= NEAR_POLE)))


def tilt(record: Record) -> np.ndarray | None:
    """Return how far the most telling variable of a recorded episode is from zero, on its shortest way round.

    Only registered systems say which that is.
    """
    if not record.episode or (known := telling(record.job.system)) is None:
        return None
    place, period = known
    values = record.episode["states"][:, place]
    return np.abs((values + period / 2) % period - period / 2 if period else values)


@functools.cache
def telling(env_id: str) -> tuple[int, float] | None:
    """Return the place in the state of an environment's most telling variable, and the period of that."""
    system = system_of(make_env(env_id))
    if system is None:
        return None
    place = system.telling[0]
    return place, system.state[place].period
