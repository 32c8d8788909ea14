"""Policies a person can read: tables, exact decision trees, smaller trees, and exports."""
# ruff: noqa: F401  (what users import)

from spaql.policies.export import export_c, export_json, export_python, export_structured_text, export_text
from spaql.policies.imitate import Imitation, imitate
from spaql.policies.play import evaluate, robustness
from spaql.policies.policy import Policies, Policy, TreePolicy, ValuePolicy
from spaql.policies.simplify import Simplified, Size, simplify
from spaql.policies.tree import Tree
