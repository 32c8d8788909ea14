"""What makes the book: numbers for its pages, help for its notebooks, data for its explorer."""

import spaql.paper.needed  # noqa: F401
