"""AQL, SPAQL, SPAQL-TS, SPAQL-R: Q-learning on partitions of states and actions that refine where the visits are.

A companion to "Control with adaptive Q-learning" (Araújo, Figueiredo, Ayala Botto, 2020).
"""

from importlib.metadata import version

from spaql.algorithms import AQL, SPAQL, SPAQLR, SPAQLTS, Random
from spaql.rules import Rules

__all__ = ["AQL", "SPAQL", "SPAQLR", "SPAQLTS", "Random", "Rules"]
__version__ = version("spaql")
