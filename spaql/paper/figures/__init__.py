"""One function per figure, one style for all: data in, a matplotlib figure out.

Every algorithm has one colour, one line and one marker in every figure of the book; they stay apart in grey and for
colour-blind readers.  Figures are as wide as a column of text, with their panels one below the other, so that they can
be read on a phone; their background is white, also on a dark page.
"""

from spaql.paper.figures import audit, domains, learned, policies, readings
from spaql.paper.figures.learning import batches, episodes, learning_curves, xi_effect
from spaql.paper.figures.style import use_svg

__all__ = [
    "audit",
    "batches",
    "domains",
    "episodes",
    "learned",
    "learning_curves",
    "policies",
    "readings",
    "use_svg",
    "xi_effect",
]
