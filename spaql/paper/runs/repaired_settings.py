"""SPAQL-R as it is compared: with its defaults, as a fixed grid, and with one of its repairs taken back at a time."""

from typing import Any

CHECKPOINT = 1000  # samples between two looks at the policy

REPAIRED: dict[str, dict[str, Any]] = {
    "SPAQL-R": {},
    "SPAQL-R, no replay": {"replays": 0},
    "SPAQL-R, fixed grid 3": {"depths": (3, 3)},
    "SPAQL-R, no discount": {"discount": 1.0},
    "SPAQL-R, no end": {"terminal": False},
    "SPAQL-R, five actions": {"actions": 5},  # on Pendulum; CartPole has two
    "SPAQL-R, one step": {"steps": 1},
    "SPAQL-R, first Q = H": {"initial": 200.0},
    "SPAQL-R, fixed grid 4": {"depths": (4, 4)},
}
