"""Tables and sentences of the book: frames in, something a notebook and the book can both show out."""

import spaql.paper.needed  # noqa: F401
from spaql.paper.labels import between, number, spread
from spaql.paper.tables import audit, learned, readings
from spaql.paper.tables.download import curves_frame, download, episodes_frame, nodes_frame, sizes_frame
from spaql.paper.tables.results import (
    baseline_table,
    results_table,
    scale_note,
    solved_table,
    tests_table,
    xi_table,
)
from spaql.paper.tables.table import Folded, Table

__all__ = [
    "Folded",
    "Table",
    "audit",
    "baseline_table",
    "between",
    "curves_frame",
    "download",
    "episodes_frame",
    "learned",
    "nodes_frame",
    "number",
    "readings",
    "results_table",
    "scale_note",
    "sizes_frame",
    "solved_table",
    "spread",
    "tests_table",
    "xi_table",
]
