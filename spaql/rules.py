"""What may differ from run to run: the text's and the released program's rules, and a learner's parameters."""

from typing import Any, NamedTuple

import numpy as np

RANDOM, AQL, SPAQL, SPAQL_TS, SPAQL_R, TILE_Q = range(6)
LEARNED, VISITS, FIXED = range(3)  # where estimates come from


class Rules(NamedTuple):
    """What can be done otherwise than in the paper's text, which gives the defaults.

    The first six are what the authors' released program does differently.  The others are controls: each takes one part
    of the algorithm away, or puts right what the text leaves out, to find out what that part is worth.

    Parameters
    ----------
    first_observation
        "mapped" to the standard space like any other, or "raw": an episode's first observation is not mapped.
    distance
        The norm in the weight of SPAQL-TS: "infinity", or "euclidean".
    heating
        The temperature rises after every iteration without improvement ("always"), or only once the number of arms has
        changed, and only below 10 ("changed").
    reset
        To the best agent after more than two splits without improvement ("splits"), or by the program's state machine
        ("machine"), which waits for the number of arms to change twice; or "never", a control: the best agent is kept
        for the end, and another one learns on.
    normalisation
        Boltzmann exploration divides by the greatest Q ("max"), or by the greatest |Q| ("absolute").
    ties
        Which of equal balls wins the argmax: a choice drawn once for each ball ("random"; the text does not say), or
        the "last" child.
    reward
        "counted", or "deleted": every update learns from a reward of zero, and only the rollouts see the real ones.
    estimate
        Q is "learned"; or a function of the "visits" alone, H + ξ/√n, without reward, value and learning rate; or
        "fixed": drawn between 0 and H when a ball is made, and never updated.
    kept
        SPAQL and SPAQL-TS keep the "best" agent and return to it; or the "last": each iteration's agent replaces the
        one before, whatever it earned, and the temperature rises when it earned less than that one.  (AQL and Random
        always keep the last.)
    partition
        Balls split by their "visits"; or, for SPAQL and SPAQL-TS, every iteration's agent is "random": a new partition
        with as many splits, of balls drawn at random, and estimates drawn as if they were fixed.
    termination
        A state in which the episode has ended has a value like any other ("ignored"), or "zero".  Where only time is
        up, the value is never zero.
    cap
        A value is at most H ("horizon"), or at most the number of steps that are "left".

    Examples
    --------
    >>> Rules(ties="last")  # the text, but of equal balls the last wins
    >>> RULES["released"]._replace(reset="splits")  # the program, but the text's reset rule
    """

    first_observation: str = "mapped"
    distance: str = "infinity"
    heating: str = "always"
    reset: str = "splits"
    normalisation: str = "max"
    ties: str = "random"
    reward: str = "counted"
    estimate: str = "learned"
    kept: str = "best"
    partition: str = "visits"
    termination: str = "ignored"
    cap: str = "horizon"


CHOICES: dict[str, tuple[str, ...]] = {  # of every rule, the text's first
    "first_observation": ("mapped", "raw"),
    "distance": ("infinity", "euclidean"),
    "heating": ("always", "changed"),
    "reset": ("splits", "machine", "never"),
    "normalisation": ("max", "absolute"),
    "ties": ("random", "last"),
    "reward": ("counted", "deleted"),
    "estimate": ("learned", "visits", "fixed"),
    "kept": ("best", "last"),
    "partition": ("visits", "random"),
    "termination": ("ignored", "zero"),
    "cap": ("horizon", "left"),
}

RELEASED = Rules("raw", "euclidean", "changed", "machine", "absolute", "last")

RULES = {"paper": Rules(), "released": RELEASED}

# The rules that the released program follows otherwise than the text, and the controls, which it shares with the text.
DIFFERENCES = tuple(name for name, choice in RELEASED._asdict().items() if choice != CHOICES[name][0])
CONTROLLED = tuple(name for name in Rules._fields if name not in DIFFERENCES)


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
    xi: float
    tau_min: float
    d: float
    lam: float
    reference: tuple[float, ...]  # x_ref in the standard space
    discount: float
    euclidean: bool
    heat_if_changed: bool
    reset_machine: bool
    never_reset: bool
    absolute: bool
    random_ties: bool
    no_reward: bool
    estimate: int
    keep_last: bool
    random_partition: bool | None  # None, not False: see `updates.redrawn`
    zero_at_end: bool
    shrinking_cap: bool


def evaluates_first(learner: Learner) -> bool:
    """Return whether a learner is of the two algorithms that know what theirs earns before they learn."""
    return learner.algorithm in (SPAQL, SPAQL_TS)


def keeps_best(learner: Learner) -> bool:
    """Return whether the agent kept is the best so far, not the last."""
    return evaluates_first(learner) and not learner.keep_last


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
COLUMNS = HISTORY.names or ()
