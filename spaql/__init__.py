"""AQL, SPAQL, SPAQL-TS, SPAQL-R: Q-learning on partitions that refine where the visits are; and TileQ, on tiles.

A companion to "Control with adaptive Q-learning" (Araújo, Figueiredo, Ayala Botto, 2020).
"""

from importlib.metadata import version

try:
    from spaql.algorithms import AQL, SPAQL, SPAQLTS, Random
    from spaql.many import train_many
    from spaql.rules import Rules
    from spaql.spaqlr import SPAQLR
    from spaql.tileq import TileQ
except KeyboardInterrupt:  # the second in which all is imported: nobody needs to see where
    raise SystemExit("spaql: interrupted") from None

__all__ = ["AQL", "SPAQL", "SPAQLR", "SPAQLTS", "Random", "Rules", "TileQ", "train_many"]
__version__ = version("spaql")
