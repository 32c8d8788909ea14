"""The pendulum: Gymnasium's Pendulum-v1, the old Pendulum-v0, five torques, rewards in [0, 1], and readings of both."""

import itertools
import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from spaql.systems.arithmetic import principal, square, square32
from spaql.systems.environments import plain_numbers, wrappers_of
from spaql.systems.registry import System, Variable, register

REWARD_SCALE = math.pi**2 + 6.404  # c of the scaled reward (r + c) / c
TORQUES = (-2.0, -1.0, 0.0, 1.0, 2.0)


class Pendulum(NamedTuple):
    """The constants of the pendulum.  Its state is angle, speed and sine of the angle, which is needed twice a step."""

    gravity: float  # 3g / 2l, what the sine of the angle is multiplied by
    per_inertia: float  # 3 / ml²
    dt: float
    max_speed: float
    max_torque: float
    clip_first: bool  # Pendulum-v1 moves the angle with the clipped speed, Pendulum-v0 with the speed before the clip
    shift: float  # the reward is (r + shift) / scale
    scale: float
    two: float  # 2.0, see `arithmetic.square`
    torque: float  # of action 0, which each next discrete action adds `torque_step` to
    torque_step: float


def begin(constants, start, state):
    """Begin with an angle and a speed."""
    state[0], state[1], state[2] = start[0], start[1], math.sin(start[0])


def observe(constants, state, observation):
    """Write cosine, sine and speed, rounded to the float32 Gymnasium reports."""
    observation[0] = np.float32(math.cos(state[0]))
    observation[1] = np.float32(state[2])
    observation[2] = np.float32(state[1])


def step(constants, state, action):
    """Apply a torque in Nm, or the discrete action of that number."""
    torque = constants.torque + constants.torque_step * action[0]
    # Gymnasium receives the torque as a float32 scalar, so its products are rounded to float32.
    u = np.float32(min(constants.max_torque, max(-constants.max_torque, torque)))
    theta, speed, sin = state[0], state[1], state[2]
    cost = (
        square(principal(theta), constants.two)
        + 0.1 * square(speed, constants.two)
        + np.float64(np.float32(0.001) * square32(u, constants.two))
    )
    push = np.float64(np.float32(constants.per_inertia) * u)
    new_speed = speed + (constants.gravity * sin + push) * constants.dt
    clipped = min(constants.max_speed, max(-constants.max_speed, new_speed))
    theta += (clipped if constants.clip_first else new_speed) * constants.dt
    state[0], state[1], state[2] = theta, clipped, math.sin(theta)
    return (-cost + constants.shift) / constants.scale, False


def draw_starts(constants: Pendulum, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw angles in [-π, π] and speeds in [-1, 1] rad/s."""
    high = np.array([math.pi, 1.0])
    return rng.uniform(-high, high, size=(episodes, 2))


# Environments for what the paper runs and Gymnasium does not have


class PendulumV0(PendulumEnv):
    """Gymnasium's Pendulum with the dynamics of Gym's Pendulum-v0: the angle moves with the speed before its clip."""

    state: np.ndarray

    def step(self, u: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        theta, speed = self.state
        _, reward, *rest = super().step(u)
        u = np.clip(u, -self.max_torque, self.max_torque)[0]
        unclipped = speed + (3 * self.g / (2 * self.l) * np.sin(theta) + 3.0 / (self.m * self.l**2) * u) * self.dt
        self.state = np.array([theta + unclipped * self.dt, self.state[1]])
        return self._get_obs(), reward, *rest


class UnitReward(gym.RewardWrapper):
    """Pendulum's rewards mapped to [0, 1]: (r + c) / c, as the paper divides (`ScaleReward` rounds otherwise)."""

    def reward(self, reward: float) -> float:
        return (reward + REWARD_SCALE) / REWARD_SCALE


class FiveTorques(gym.ActionWrapper):
    """Pendulum with the five torques -2, -1, 0, 1, 2 Nm as its actions."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.action_space = spaces.Discrete(len(TORQUES))

    def action(self, action: int) -> np.ndarray:
        return np.array([TORQUES[int(action)]], dtype=np.float32)


class HalfTorque(gym.ActionWrapper):
    """Pendulum that gets half of every torque, as the paper's runs may have had it (chapter 11)."""

    def action(self, action: Any) -> Any:
        return np.asarray(action, np.float32) / np.float32(2.0)


class OneWay(gym.Wrapper):
    """Pendulum whose torques push one way only, as the released program draws those of its Random agent."""

    def __init__(self, env: gym.Env):
        super().__init__(env)
        self.action_space = spaces.Box(0.0, env.action_space.high[0], (1,), np.float32)


KINDS = {  # the wrappers, the innermost first, and what titles say of them
    "scaled": (UnitReward, "rewards scaled to [0, 1]"),
    "half": (HalfTorque, "half the torque"),
    "one_way": (OneWay, "torque one way"),
    "discrete": (FiveTorques, "five torques"),
}
# What the paper runs, then its readings (chapter 11): each with both dynamics, by the id's version.
VARIANTS = {
    "Pendulum": (),
    "PendulumScaled": ("scaled",),
    "PendulumDiscrete": ("discrete",),
    "PendulumHalf": ("half",),
    "PendulumScaledHalf": ("scaled", "half"),
    "PendulumDiscreteHalf": ("discrete", "half"),
    "PendulumOneWay": ("one_way",),
    "PendulumScaledOneWay": ("scaled", "one_way"),
}


def make(dynamics: str = "v1", kinds: tuple[str, ...] = (), **kwargs: Any) -> gym.Env:
    """Return a pendulum: the entry point of the ids below."""
    env: gym.Env = (PendulumV0 if dynamics == "v0" else PendulumEnv)(**kwargs)
    for kind, (wrapper, _) in KINDS.items():
        env = wrapper(env) if kind in kinds else env
    return env


TITLES = {"Pendulum-v1": "Pendulum"}
for (_name, _kinds), _dynamics in itertools.product(VARIANTS.items(), ("v1", "v0")):
    if (_name, _dynamics) != ("Pendulum", "v1"):  # which is Gymnasium's own
        _id, _kwargs = f"spaql/{_name}-{_dynamics}", {"dynamics": _dynamics, "kinds": _kinds}
        gym.register(_id, entry_point="spaql.systems.pendulum:make", max_episode_steps=200, kwargs=_kwargs)
        _base = "Pendulum-v0" if _dynamics == "v0" else "Pendulum"
        TITLES[_id] = ", ".join((_base, *(KINDS[kind][1] for kind in _kinds)))

# What the package knows of it


def has(env: gym.Env, kind: type[gym.Wrapper]) -> bool:
    """Return whether an environment has a wrapper of some kind around it."""
    return any(type(wrapper) is kind for wrapper in wrappers_of(env))


def describe(env: gym.Env) -> Pendulum | None:
    """Return the constants of a pendulum; None for torques that are not float32."""
    numbers = plain_numbers(env, ("g", "m", "l", "dt", "max_speed", "max_torque"))
    if numbers is None or env.unwrapped.action_space.dtype != np.float32:
        return None
    g, m, length, dt, max_speed, max_torque = numbers
    five, scaled, share = has(env, FiveTorques), has(env, UnitReward), 0.5 if has(env, HalfTorque) else 1.0
    return Pendulum(
        gravity=3 * g / (2 * length),
        per_inertia=3.0 / (m * length**2),
        dt=dt,
        max_speed=max_speed,
        max_torque=max_torque,
        clip_first=type(env.unwrapped) is PendulumEnv,
        shift=REWARD_SCALE if scaled else 0.0,
        scale=REWARD_SCALE if scaled else 1.0,
        two=2.0,
        torque=share * TORQUES[0] if five else 0.0,
        torque_step=share * (TORQUES[1] - TORQUES[0]) if five else share,
    )


def choices(env: gym.Env) -> tuple[float, ...]:
    """Return the torques that the discrete actions give the pendulum."""
    share = 0.5 if has(env, HalfTorque) else 1.0
    return tuple(share * torque for torque in TORQUES) if has(env, FiveTorques) else ()


THETA = Variable("theta", "θ", "rad", (-math.pi, math.pi), r"$\theta$", "pendulum angle", (0.0,), period=2 * math.pi)
THETA_DOT = Variable("theta_dot", "θ̇", "rad/s", (-8.0, 8.0), r"$\dot\theta$")

SYSTEM = register(
    System(
        name="Pendulum",
        originals=(PendulumEnv, PendulumV0),
        constants=Pendulum,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=(THETA, THETA_DOT),
        observed=(
            Variable("cos_theta", "cos θ", "", (-1.0, 1.0), r"$\cos\theta$"),
            Variable("sin_theta", "sin θ", "", (-1.0, 1.0), r"$\sin\theta$"),
            THETA_DOT,
        ),
        action=Variable("torque", "u", "Nm", (-2.0, 2.0), "$u$"),
        size=3,
        choices=choices,
        titles=TITLES,
        wrappers=(FiveTorques, HalfTorque, OneWay, UnitReward),
        reference=(1.0, 0.0, 0.0),
        angles={"theta": ("cos_theta", "sin_theta")},
    )
)
