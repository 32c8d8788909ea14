"""The three algorithms against a naive implementation of each, to the last bit of what they learnt."""

from collections import Counter
from functools import cache

import pytest

from spaql import AQL, SPAQL, SPAQLTS, Rules
from tests.conftest import same_sines

from .naive import Naive

pytestmark = same_sines

AGENTS = {"AQL": AQL, "SPAQL": SPAQL, "SPAQL-TS": SPAQLTS}
RELEASED = Rules("raw", "euclidean", "changed", "machine", "absolute", "last")
RULES = {"paper": Rules(), "released": RELEASED} | {
    name: Rules()._replace(**{name: getattr(RELEASED, name)}) for name in Rules._fields
}
UNUSED = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}
# With a short horizon Q falls below zero soon; CartPole's episodes are short by themselves.
SYSTEMS = {
    "Pendulum-v1": {"xi": 4.0, "horizon": 25},
    "spaql/PendulumDiscrete-v1": {"xi": 0.4, "horizon": 25},
    "CartPole-v0": {"xi": 20.0, "horizon": 200},
}
SETTINGS = {  # iterations, and parameters that are not the usual ones
    "usual": (12, {}),
    "short": (50, {"horizon": 4}),  # episodes in which often no ball splits
    "short and hot": (40, {"horizon": 10, "tau_min": 3.0, "u": 1.9, "d": 0.6}),  # the temperature passes 10
    "narrow": (8, {"lam": 0.5}),
    "beyond the environment's limit": (2, {"horizon": 250}),
    "from zero": (12, {"initial": 0.0}),
    "discounted": (12, {"discount": 0.9, "initial": 7.5}),
}
N, SEED = 2, 3
CASES = [(a, s, r, "usual") for a in AGENTS for s in SYSTEMS for r in RULES if r not in UNUSED[a]]
CASES += [(a, s, "paper", setting) for a in AGENTS for s in SYSTEMS for setting in ("from zero", "discounted")]
CASES += [("AQL", "Pendulum-v1", r, "short") for r in ("paper", "first_observation")]
CASES += [
    (a, s, r, "short and hot") for a in ("SPAQL", "SPAQL-TS") for s in SYSTEMS for r in ("paper", "released", "heating")
]
CASES += [("SPAQL-TS", s, r, "narrow") for s in SYSTEMS for r in ("paper", "distance")]
CASES += [(a, "Pendulum-v1", "paper", "beyond the environment's limit") for a in AGENTS]


@cache
def naive_run(algorithm, system, rules, setting):
    iterations, parameters = SETTINGS[setting]
    parameters = SYSTEMS[system] | parameters
    return Naive(algorithm, system, rules=RULES[rules], seed=SEED, **parameters).learn(iterations, N)


def real_run(algorithm, system, rules, setting):
    iterations, parameters = SETTINGS[setting]
    parameters = SYSTEMS[system] | parameters
    return AGENTS[algorithm](system, rules=RULES[rules], seed=SEED, **parameters).learn(iterations, N)


def naive_balls(partitions):
    """List the unsplit balls: time step, centre and radius of the states, bounds of the actions, Q and visits."""
    return sorted(
        (h, b.centre, b.radius, b.low, b.high, b.q, b.visits)
        for h, partition in enumerate(partitions)
        for b in partition.leaves()
    )


def real_balls(p, roots):
    """List the same of the package's partition: all that is known here about its inside."""
    found = []

    def walk(root, cell, centre, radius):
        ball = p.cells["first"][cell]
        while ball >= 0:
            low, high, q, visits = p.low[ball, 0], p.high[ball, 0], p.balls["q"][ball], p.balls["visits"][ball]
            found.append((root, centre, radius, float(low), float(high), float(q), int(visits)))
            ball = p.balls["next"][ball]
        children = p.cells["children"][cell]
        if children >= 0:
            for half in range(2 ** len(centre)):
                shifts = (radius / 2 if half >> i & 1 else -radius / 2 for i in range(len(centre)))
                walk(root, children + half, tuple(map(sum, zip(centre, shifts, strict=True))), radius / 2)

    for root in range(roots):
        walk(root, root, (0.0,) * len(p.axes), 1.0)
    return sorted(found)


def quick(case):
    """Whether a case is tried each time: every algorithm on every system, with the text's and the program's rules."""
    return case[2] in ("paper", "released") and case[3] == "usual"


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=", ".join(c), marks=[] if quick(c) else pytest.mark.long) for c in CASES]
)
def test_the_agents_equal_the_naive_ones(case):
    naive, real = naive_run(*case), real_run(*case)
    assert list(real.history.dtype.names) == list(naive.history[0])
    for name in real.history.dtype.names:
        assert real.history[name].tolist() == [row[name] for row in naive.history], name
    roots = len(naive.best)
    assert real_balls(real._best, roots) == naive_balls(naive.best)
    assert real_balls(real._trainee, roots) == naive_balls(naive.trainee)


@pytest.mark.long
def test_everything_happens_in_some_case():
    """What never happens would be compared in vain."""
    happened = {a: sum((naive_run(*case).events for case in CASES if case[0] == a), Counter()) for a in AGENTS}
    assert set(happened["AQL"]) == {"split"}
    for algorithm in ("SPAQL", "SPAQL-TS"):
        assert set(happened[algorithm]) == {
            *("split", "negative maximum", "improved", "as good", "improved with an old number seen"),
            *("heated", "no split to heat for", "too hot to heat", "reset"),
        }


@pytest.mark.long
@pytest.mark.parametrize("algorithm", AGENTS)
def test_every_rule_makes_a_difference_in_some_case(algorithm):
    def learned(*case):
        naive = naive_run(*case)
        return naive.history, naive_balls(naive.best), naive_balls(naive.trainee)

    different = {
        rules
        for name, system, rules, setting in CASES
        if name == algorithm and learned(name, system, rules, setting) != learned(name, system, "paper", setting)
    }
    assert different == RULES.keys() - UNUSED[algorithm] - {"paper"}
