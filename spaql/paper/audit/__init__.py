"""The audit: the paper's claims, what we measured, and the verdicts."""

import spaql.paper.needed  # noqa: F401
