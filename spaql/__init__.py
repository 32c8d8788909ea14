"""AQL, SPAQL and SPAQL-TS: Q-learning on partitions of the state-action space that refine where the visits are.

A companion to "Control with adaptive Q-learning" (Araújo, Figueiredo, Ayala Botto, 2020).
"""

from importlib.metadata import version

from spaql.agents import AQL, SPAQL, SPAQLTS, Agent, Random
from spaql.learning import Rules

__all__ = ["AQL", "SPAQL", "SPAQLTS", "Random", "Rules"]
__version__ = version("spaql")


def _policy(agent: Agent):
    """The greedy policy as something to read: a table, a decision tree (see `spaql.policies.Policy`)."""
    from spaql.policies import policy_of

    return policy_of(agent)


# Policies are made from agents, which know nothing of them: hence the property is given to them here.
Agent.policy = property(_policy, doc=_policy.__doc__)
