"""The audit: the paper's claims, what we measured, and the verdicts."""

import spaql.paper.needed  # noqa: F401
from spaql.paper.audit.ablation import ablation_table, explanations, xi_zero
from spaql.paper.audit.bias import best_against_fresh, surviving
from spaql.paper.audit.claims import deviations, paper_results
from spaql.paper.audit.comparison import at_budget, crossings, samples_by_agent, samples_needed
from spaql.paper.audit.judge import show_ours, summary, verdicts
from spaql.paper.audit.random_baseline import random_fit, random_row
from spaql.paper.audit.readings import best_reading, distances, joint_fits, reading_groups
from spaql.paper.runs.outcomes import BUDGET

__all__ = [
    "BUDGET",
    "ablation_table",
    "at_budget",
    "best_against_fresh",
    "best_reading",
    "crossings",
    "deviations",
    "distances",
    "explanations",
    "joint_fits",
    "paper_results",
    "random_fit",
    "random_row",
    "reading_groups",
    "samples_by_agent",
    "samples_needed",
    "show_ours",
    "summary",
    "surviving",
    "verdicts",
    "xi_zero",
]
