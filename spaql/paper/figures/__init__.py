"""One function per figure, one theme for all: data in, a matplotlib figure out.

What shows statistics is drawn with seaborn, what shows geometry (maps, trees, paths) with matplotlib alone.  Every
algorithm has one colour, one line and one marker in every figure of the book; they stay apart for colour-blind readers.
Figures are as wide as a column of text, with their panels one below the other, so that they can be read on a phone.
Their ground is white; on a dark page the style sheet turns light and dark around.
"""

import spaql.paper.needed  # noqa: F401
from spaql.paper.figures import audit, domains, learned, policies, readings
from spaql.paper.figures.learning import (
    batches,
    episodes,
    fresh_profile,
    learning_curves,
    xi_effect,
)
from spaql.paper.figures.style import use_svg

__all__ = [
    "audit",
    "batches",
    "domains",
    "episodes",
    "fresh_profile",
    "learned",
    "learning_curves",
    "policies",
    "readings",
    "use_svg",
    "xi_effect",
]
