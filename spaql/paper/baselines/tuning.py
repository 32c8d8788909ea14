"""The systems on which settings were searched: relatives of those that are compared, with other constants.

MountainCarContinuous has no relative here: what is earned there is earned by settings that had not seen it.
"""

import gymnasium as gym

from spaql.systems import make_env, system_of


def changed(env_id: str, mass: float = 1.0, length: float = 1.0) -> gym.Env:
    """Return an environment whose pendulum, pole or links have another mass and length."""
    env = make_env(env_id)
    system = system_of(env)
    if system is None or system.vary is None:
        raise ValueError(f"{env_id} has no mass and length to change")
    system.vary(env, mass=mass, length=length)
    return env


def pendulum() -> gym.Env:
    """Return a pendulum that is longer and lighter."""
    return changed("Pendulum-v1", mass=0.8, length=1.2)


def cart_pole() -> gym.Env:
    """Return a cart with a pole of half-length 0.7 m instead of 0.5."""
    return changed("CartPole-v1", length=1.4)


def acrobot() -> gym.Env:
    """Return an acrobot with heavier links."""
    return changed("Acrobot-v1", mass=1.2)


def mountain_car() -> gym.Env:
    """Return a car in a steeper valley."""
    env = make_env("MountainCar-v0")
    env.unwrapped.gravity = 0.0027
    return env
