"""The audit: the paper's claims, what we measured, and the verdicts."""

from spaql.paper.audit.ablation import ablation_table, explanations, xi_zero
from spaql.paper.audit.bias import best_against_fresh, surviving
from spaql.paper.audit.claims import deviations, paper_results
from spaql.paper.audit.comparison import BUDGET, at_budget, crossings, improvement_table, samples_needed
from spaql.paper.audit.judge import show_ours, summary, verdicts
from spaql.paper.audit.random_baseline import random_fit, random_row

__all__ = [
    "BUDGET",
    "ablation_table",
    "at_budget",
    "best_against_fresh",
    "crossings",
    "deviations",
    "explanations",
    "improvement_table",
    "paper_results",
    "random_fit",
    "random_row",
    "samples_needed",
    "show_ours",
    "summary",
    "surviving",
    "verdicts",
    "xi_zero",
]
