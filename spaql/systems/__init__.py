"""The systems: what the package knows of each (`registry`), their environments, and compiled worlds to learn in.

The files of this folder that are named after a system register it when they are imported below; users register theirs
from wherever they stand.
"""
# ruff: noqa: F401  (`__all__` is what users write with)

from spaql.systems import acrobot, cartpole, mountain_car, pendulum
from spaql.systems.environments import ScaleReward, episode_limit, horizon_of, make_env, make_generator, space_of
from spaql.systems.registry import REGISTRY, System, Variable, register, solved_at, system_called, system_of, title
from spaql.systems.twins import check_twin
from spaql.systems.worlds import ENDED, begin, compiled_world, explain_interpreted, move, observe

__all__ = ["REGISTRY", "ScaleReward", "System", "Variable", "check_twin", "register"]
