"""Many agents at a time: the same problem, other seeds, and other parameters."""

import inspect
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from spaql.checks import check_integer, check_seed, load
from spaql.policies.interval import worst_mean
from spaql.progress import progress

LISTS = ("angles", "bounds", "callback", "reference", "slopes")  # parameters that are lists themselves


def train_many(
    agent: Callable[..., Any],
    env: str | Callable[[], gym.Env],
    *,
    learn: Mapping[str, Any],
    agents: int = 20,
    seed: int = 0,
    episodes: int = 1000,
    workers: int | None = None,
    save: str | Path | None = None,
    progress_bar: bool = True,
    **parameters: Any,
) -> Any:
    """Train many agents in parallel, and return what each of them earns on fresh episodes, one row per agent.

    Compiled systems use threads, other environments processes.  The numbers do not depend on how many there are.
    Columns: the parameters tried, `mean`, `worst 5 %`, `worst`, `all samples` (rollouts counted), `agent`.

    Parameters
    ----------
    agent
        A class, as `SPAQLTS`, or a function of an environment, `seed=` and parameters that returns an agent.
    env
        An id, or a function that makes an environment: every agent has its own.
    learn
        What `agent.learn` takes, as `{"samples": 20_000}`.
    agents
        How many for each combination of parameters.  Agent k of every combination has the same seed, so that
        combinations can be compared in pairs.
    seed
        Seeds everything.
    episodes
        Fresh episodes on which each agent is evaluated after learning, the same for all.
    workers
        How many agents learn at a time; one per core if not given.
    save
        A folder for the agents.  The column `file` says where each is; otherwise the column `agent` has the agents.
    progress_bar
        Show how many are done, on standard error.
    **parameters
        The agents' parameters.  Each value of a list is tried, here and in `learn`, and several lists are combined.
        (`angles`, `bounds`, `reference` and `slopes` are lists themselves, of which nothing is tried.)

    Examples
    --------
    >>> frame = train_many(TileQ, "Pendulum-v1", learn={"samples": 20_000}, agents=10, discount=[0.98, 0.995])
    >>> frame.groupby("discount")[["mean", "worst 5 %", "worst"]].mean()
    >>> best = frame.loc[frame["mean"].idxmax(), "agent"]
    """
    joblib, pandas = load("joblib"), load("pandas")
    if not callable(agent):
        raise TypeError(f"agent must be a class, as TileQ, or a function that returns an agent, not {agent!r}")
    if isinstance(env, gym.Env):
        raise TypeError("every agent needs an environment of its own: give an id, or a function that makes one")
    if not isinstance(learn, Mapping):
        raise TypeError(f'learn must be what `agent.learn` takes, as {{"samples": 20_000}}, not {learn!r}')
    if learn.get("callback") is not None:
        raise ValueError("agents that learn at the same time cannot share a callback: give none")
    agents, episodes = check_integer("agents", agents), check_integer("episodes", episodes)
    workers = -1 if workers is None else check_integer("workers", workers)
    fresh, *seeds = check_seed(seed).spawn(agents + 1)
    folder = None if save is None else Path(save)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob("*.npz")):
            raise FileExistsError(f"there are agents in {folder} already: give another folder")

    for one in combinations(parameters):  # wrong ones are refused before any is trained
        first = agent(env() if callable(env) else env, seed=seed, **parameters | one)
    for how in combinations(learn):
        asked = inspect.signature(first.learn).bind(**{**learn, **how}).arguments
        first._checked(*(asked.get(name) for name in ("iterations", "evaluations", "samples", "callback")))
    # Processes do not know what this one has registered.
    spec = gym.registry.get(env.rpartition(":")[2]) if isinstance(env, str) and not first.compiled else None
    rows: list[dict[str, Any]] = []
    jobs = []
    for one, how, number in itertools.product(combinations(parameters), combinations(learn), range(agents)):
        file = None if folder is None else folder / f"{len(rows)}.npz"
        given = seeds[number], parameters | one, {**learn, **how}
        jobs.append(joblib.delayed(train_one)(agent, env, spec, *given, episodes, fresh, file))
        rows.append({**one, **how, "number": number})

    if not first.compiled:  # processes that are still there know modules as they were
        joblib.externals.loky.get_reusable_executor().shutdown()
    parallel = joblib.Parallel(workers, "threading" if first.compiled else "loky", return_as="generator")
    with progress(len(jobs), "agents", shown=progress_bar) as bar:
        for row, found in zip(rows, parallel(jobs), strict=True):
            row |= found
            bar.update()
    return pandas.DataFrame(rows)


def combinations(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all combinations of the values of those parameters that are swept."""
    lists = {name: values for name, values in given.items() if isinstance(values, list) and name not in LISTS}
    if empty := [name for name, values in lists.items() if not values]:
        raise ValueError(f"{empty[0]} is an empty list: give the values to try")
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def train_one(agent, env, spec, seed, parameters, learn, episodes, fresh, file):
    """Train and evaluate one agent; return what its row holds."""
    if spec is not None:
        gym.registry[spec.id] = spec
    made = agent(env() if callable(env) else env, seed=seed, **parameters).learn(**learn)
    returns = made.evaluate(episodes, fresh)
    found = {"mean": returns.mean(), "worst 5 %": worst_mean(returns), "worst": returns.min()}
    found["all samples"] = int((made.history.steps + made.history.evaluation_steps).sum())
    if file is None:
        return found | {"agent": made}
    made.save(file)
    return found | {"file": str(file)}
