"""SPAQL-R as it is compared: with its defaults, without one of its repairs at a time, and with one more at a time."""

from typing import Any

CHECKPOINT = 1000  # samples between two looks at the policy
SPACING = 1.1  # between looks at agents of the paper's, if that is more: the samples so far times this

REMOVED: dict[str, dict[str, Any]] = {  # one repair is taken back
    "SPAQL-R, no replay": {"replays": 0},
    "SPAQL-R, fixed grid 3": {"depths": (3, 3)},
    "SPAQL-R, fixed grid 4": {"depths": (4, 4)},
    "SPAQL-R, no discount": {"discount": 1.0},
    "SPAQL-R, no end": {"terminal": False},
    "SPAQL-R, five actions": {"actions": 5},  # on Pendulum; CartPole has two
    "SPAQL-R, one step": {"steps": 1},
    "SPAQL-R, first Q = H": {"initial": 200.0},
}

# From SPAQL's target, on SPAQL-R's partition and with its exploration, to SPAQL-R's: each rung has one repair more than
# the one before.  The next rung is "SPAQL-R, no replay", and the last SPAQL-R itself.
LADDER: dict[str, dict[str, Any]] = {
    "SPAQL-R, rung 1": {"replays": 0, "steps": 1, "initial": 200.0, "discount": 1.0, "terminal": False},
    "SPAQL-R, rung 2": {"replays": 0, "steps": 1, "initial": 200.0, "discount": 1.0},
    "SPAQL-R, rung 3": {"replays": 0, "steps": 1, "initial": 200.0},
    "SPAQL-R, rung 4": {"replays": 0, "steps": 1},
}

REPAIRED: dict[str, dict[str, Any]] = {"SPAQL-R": {}} | REMOVED | LADDER
