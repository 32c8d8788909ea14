"""SPAQL-R as it is compared: with its defaults, without one of its changes at a time, and with one more at a time."""

from typing import Any

CHECKPOINT = 1000  # samples between two looks at the policy
SPACING = 1.1  # between looks at agents of the paper's, if that is more: the samples so far times this

REMOVED: dict[str, dict[str, Any]] = {  # one change is taken back
    "SPAQL-R, no replay": {"replays": 0},
    "SPAQL-R, one step": {"steps": 1},
    "SPAQL-R, no tiles": {"tilings": 0},
    "SPAQL-R, halved cells": {"visits": None},
    "SPAQL-R, falling rate": {"alpha": None},
    "SPAQL-R, no angles": {"angles": ()},  # on Pendulum; CartPole has none
    "SPAQL-R, no discount": {"discount": 1.0},
    "SPAQL-R, no end": {"terminal": False},
    "SPAQL-R, five actions": {"actions": 5},  # on Pendulum; CartPole has two
    "SPAQL-R, first Q = H": {"initial": 200.0},
}

# From SPAQL's learning and its cells, with SPAQL-R's actions and exploration, to SPAQL-R: each rung takes the next of
# these back from the one before.  The last rung but one is "SPAQL-R, no tiles".
SPAQLS: dict[str, Any] = {
    "terminal": False,
    "discount": 1.0,
    "initial": 200.0,
    "alpha": None,
    "visits": None,
    "angles": (),
    "steps": 1,
    "replays": 0,
    "tilings": 0,
}
LADDER: dict[str, dict[str, Any]] = {
    f"SPAQL-R, rung {rung + 1}": dict(list(SPAQLS.items())[rung:]) for rung in range(len(SPAQLS) - 1)
}

REPAIRED: dict[str, dict[str, Any]] = {"SPAQL-R": {}} | REMOVED | LADDER
