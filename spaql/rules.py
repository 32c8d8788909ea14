"""What may differ from run to run: the text's and the released program's rules, and a learner's parameters."""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

RANDOM, AQL, SPAQL, SPAQL_TS, SPAQL_R, TILE_Q = range(6)


class Rules(NamedTuple):
    """Variants of the algorithms; the defaults follow the paper's text.

    In these six rules the authors' released program differs from the text or fills a gap in it.

    Parameters
    ----------
    first_observation
        "mapped" to the standard space like any other, or "raw": an episode's first observation is not mapped.
    distance
        The norm in the weight of SPAQL-TS: "infinity", or "euclidean".
    heating
        The temperature rises after every iteration without improvement ("always"), or only once the number of arms has
        changed, and only while it is below 10 ("changed").
    reset
        To the best agent after more than two splits without improvement ("splits"), or by the program's state machine
        ("machine"), which waits for the number of arms to change twice.
    normalisation
        Boltzmann exploration divides by the greatest Q ("max"), or by the greatest absolute Q ("absolute").
    ties
        Which of equal balls wins the argmax: a choice drawn once for each ball ("random"; the text does not say), or
        the "last" child.

    Examples
    --------
    >>> Rules(ties="last")  # the text, but of equal balls the last wins
    """

    first_observation: Literal["mapped", "raw"] = "mapped"
    distance: Literal["infinity", "euclidean"] = "infinity"
    heating: Literal["always", "changed"] = "always"
    reset: Literal["splits", "machine"] = "splits"
    normalisation: Literal["max", "absolute"] = "max"
    ties: Literal["random", "last"] = "random"


CHOICES = {name: get_args(kind) for name, kind in Rules.__annotations__.items()}  # of every rule, the text's first
RULES = {"paper": Rules(), "released": Rules("raw", "euclidean", "changed", "machine", "absolute", "last")}


def check_rules(rules: Any) -> Rules:
    """Return the rules of a name, or the rules themselves if they are sound."""
    if isinstance(rules, str) and rules in RULES:
        return RULES[rules]
    if not isinstance(rules, Rules):
        raise ValueError(f"rules must be {' or '.join(map(repr, RULES))} or a Rules, not {rules!r}")
    for name, choice in rules._asdict().items():
        if choice not in CHOICES[name]:
            raise ValueError(f"rule {name} must be {' or '.join(map(repr, CHOICES[name]))}, not {choice!r}")
    return rules


class Learner(NamedTuple):
    """The parameters of an algorithm, in the form compiled code takes; the symbols are the paper's."""

    algorithm: int
    discrete: bool  # actions are a list, not an interval
    H: int
    limit: int  # the environment's own limit on the steps of an episode, at most H
    reference: tuple[float, ...]  # x_ref in the standard space
    discount: float
    euclidean: bool
    heat_if_changed: bool
    reset_machine: bool
    absolute: bool
    random_ties: bool
    xi: float = 0.0
    tau_min: float = 0.01
    d: float = 1.0
    lam: float = 1.0


STATUS = np.dtype(
    [
        ("iteration", np.int64),  # iterations done; -1 during the first evaluation of SPAQL
        ("episode", np.int64),  # within the iteration: 0 is the training episode, then come the N rollouts
        ("total", np.float64),  # reward of this iteration's rollouts so far
        ("steps", np.int64),  # of this iteration's training episode
        ("evaluation_steps", np.int64),
        ("tau", np.float64),
        ("u", np.float64),
        ("best", np.float64),  # mean reward of the best agent
        ("seen", np.int64),  # for reset="machine": the trainee's arms when they first differed from the best agent's
    ],
    align=True,
)

HISTORY = np.dtype(
    [
        ("rewards", np.float64),  # as the paper's curves: the best mean so far (SPAQL, SPAQL-TS) or this one's (AQL)
        ("arms", np.int64),  # of the agent kept
        ("evaluations", np.float64),  # mean reward of this iteration's N rollouts
        ("trainee_arms", np.int64),  # of the agent those rollouts evaluated
        ("tau", np.float64),  # temperature it was trained at
        ("steps", np.int64),  # environment steps in training
        ("evaluation_steps", np.int64),  # in the rollouts; the first entry includes the evaluation before it
    ],
    align=True,
)

# Plain Python, too, reads the fields of an `np.record` as attributes.
STATUS, HISTORY = np.dtype((np.record, STATUS)), np.dtype((np.record, HISTORY))
