"""The log of `spaql verify --record`: which code gave the stored numbers again, on which machine, and when.

results/attestations.jsonl has one JSON object per line; lines are added and never changed.
"""

import datetime
import json
from pathlib import Path
from typing import Any

from spaql.paper.runs import provenance
from spaql.paper.runs.errors import Damaged


def load_attestations(store: Path) -> list[dict[str, Any]]:
    """Return all attestations, the oldest first."""
    path = Path(store) / "attestations.jsonl"
    if not path.is_file():
        return []
    try:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        sound = all(isinstance(entry["families"], dict) and isinstance(entry["numerics"], dict) for entry in found)
    except (ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise Damaged(
            f"{path} is no log of attestations: take it from the repository again (git checkout -- {path.name})"
        )
    return found


def attest(store: Path, families: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Add what was found of each family of algorithms to the log, and return the entry."""
    source = provenance.provenance()
    entry = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": source["commit"],
        "numerics": {family: provenance.NUMERICS[family] for family in families},
        "versions": source["versions"],
        "machine": source["machine"],
        "families": families,
    }
    with (Path(store) / "attestations.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    return entry


def bits_expected(store: Path, family: str, platform: str) -> bool:
    """Return whether machines with this key have given the stored bits of a family, at this version of the numbers."""
    return any(
        found["platform"] == platform and found["same_bits"] == found["sampled"] > 0
        for entry in load_attestations(store)
        if entry["numerics"].get(family) == provenance.NUMERICS[family]
        if (found := entry["families"].get(family)) is not None
    )
