"""Tables and sentences of the other systems: frames of `spaql.paper.audit.generality` and records in, Markdown out."""

import pandas as pd

from spaql.paper.tables.table import Table, badge
from spaql.systems import title

# ---------------------------------------------------------------------------------------------------------------------
# What they earn


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts


def generality_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the verdict on each conclusion on each system, with a dagger where it was said of that system."""
    rows = []
    for _, cells in frame.groupby("id", sort=False):
        row = {"conclusion": cells.statement.iloc[0]}
        rows.append(
            row | {title(cell.system): badge(cell.verdict) + (" †" if cell.said else "") for cell in cells.itertuples()}
        )
    return Table(pd.DataFrame(rows), caption, name, words=True)


# ---------------------------------------------------------------------------------------------------------------------
# Trees


# ---------------------------------------------------------------------------------------------------------------------
# What was found
