"""SPAQL-R as it is compared: with its defaults, as a fixed grid, and with one of its repairs taken back at a time."""

from typing import Any

CHECKPOINT = 1000  # samples between two looks at the policy

REPAIRED: dict[str, dict[str, Any]] = {
    "SPAQL-R": {},
}
