"""The paper's systems, compiled, and the standard space every environment is mapped to.

A system is its dynamics (Gymnasium's, to the last bit) plus the map between Gymnasium's units and the standard space
[-1, 1]^d the agents see (the paper's sections "Implementation" and "Setup").  `pendulum_reset` and `pendulum_step`,
`cartpole_reset` and `cartpole_step` are compiled; `gym_reset` and `gym_step` do the same for any Gymnasium environment,
at Python's speed.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv
from numba import types

from spaql.compiling import inlined

FLOATS = np.ndarray  # a one-dimensional array of float64
_pow = types.ExternalFunction("pow", types.float64(types.float64, types.float64))
_powf = types.ExternalFunction("powf", types.float32(types.float32, types.float32))

# ---------------------------------------------------------------------------------------------------------------------
# The standard space


class Space(NamedTuple):
    """The map between an environment's observations and actions and the standard space.

    A bounded coordinate is shifted by `centre` and divided by `half`; an unbounded one (`half` infinite) goes through
    the paper's sigmoid with slope `slope` at the origin.  `actions` counts the actions of a Discrete space (0: a Box).
    """

    centre: tuple[float, ...]  # tuples, not arrays: compiled code then knows their length
    half: tuple[float, ...]
    slope: tuple[float, ...]
    action_centre: tuple[float, ...]
    action_half: tuple[float, ...]
    actions: int


@inlined
def sigmoid(y, m):
    """φ_m(y), the shifted and rescaled sigmoid that bounds CartPole's velocities."""
    return 2.0 / (1.0 + math.exp(-2.0 * m * y)) - 1.0


@inlined
def standardise(space, observation, x):
    """Write the observation's point of the standard space to `x`; what lies outside its bounds is clipped to them."""
    for i in range(len(space.centre)):
        if space.half[i] < math.inf:
            x[i] = (observation[i] - space.centre[i]) / space.half[i]
        else:
            x[i] = sigmoid(observation[i], space.slope[i])
        x[i] = min(1.0, max(-1.0, x[i]))


# Slopes and reference states the paper gives, for the environments it gives them for.
PAPER_SLOPES = {"CartPole": (0.0, 1 / 240, 0.0, 1 / 21)}
PAPER_REFERENCES = {"Pendulum": (1.0, 0.0, 0.0), "CartPole": (0.0, 0.0, 0.0, 0.0)}
MAX_DIMENSIONS = 16  # a split makes up to 2^dimensions balls


def paper_family(env: gym.Env) -> str | None:
    """Return "Pendulum" or "CartPole" if the environment shows one of these two's own observations, else None."""
    for family, original in (("Pendulum", PendulumEnv), ("CartPole", CartPoleEnv)):
        if isinstance(env.unwrapped, original) and env.observation_space == env.unwrapped.observation_space:
            return family
    return None


def make_space(env: gym.Env, slopes: Any = None) -> Space:
    """Return the map to the standard space for any environment with Box observations and Box or Discrete actions."""
    observed, acted = env.observation_space, env.action_space
    if not isinstance(observed, spaces.Box) or not np.issubdtype(observed.dtype, np.number):
        raise TypeError(
            f"observations must be a Box of numbers, not {observed}; "
            "gymnasium.wrappers.FlattenObservation turns Dict, Tuple and Discrete observations into one"
        )
    if isinstance(acted, spaces.Discrete):
        action_centre = action_half = np.zeros(1)
        actions = int(acted.n)
    elif isinstance(acted, spaces.Box) and np.issubdtype(acted.dtype, np.floating):
        low, high = (np.asarray(bound, float).ravel() for bound in (acted.low, acted.high))
        if not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError(
                f"a Box of actions needs finite bounds, not {acted}; "
                "gymnasium.wrappers.RescaleAction or TransformAction can give it some"
            )
        action_centre, action_half = (high + low) / 2, (high - low) / 2
        actions = 0
    else:
        raise TypeError(
            f"actions must be Discrete or a Box of floats, not {acted}; "
            "gymnasium.wrappers.TransformAction can turn one into the other"
        )
    low, high = (np.asarray(bound, float).ravel() for bound in (observed.low, observed.high))
    dimensions = low.size + (0 if actions else action_half.size)
    if dimensions > MAX_DIMENSIONS or low.size == 0:
        raise ValueError(
            f"observation {observed.shape} and action together have {dimensions} dimensions: a ball would split into "
            f"2^{dimensions}; expected 1 to {MAX_DIMENSIONS} (images and long vectors need features first)"
        )
    bounded = np.isfinite(low) & np.isfinite(high)
    if np.any(high[bounded] <= low[bounded]):
        raise ValueError(f"observation bounds must have low < high, not {low} and {high}")
    centre, half = np.zeros(low.size), np.full(low.size, math.inf)
    centre[bounded] = (high[bounded] + low[bounded]) / 2
    half[bounded] = (high[bounded] - low[bounded]) / 2
    if slopes is None:
        slopes = PAPER_SLOPES.get(paper_family(env), 1.0)
    slope = np.asarray(slopes, float)
    if slope.ndim and slope.shape != low.shape:
        raise ValueError(f"slopes must be one number or {low.size}, one for each observation, not {slopes}")
    slope = np.array(np.broadcast_to(slope, low.shape))
    if not np.all(np.isfinite(slope)) or np.any(slope[~bounded] <= 0):
        raise ValueError(f"slopes of unbounded observations must be positive numbers, not {slopes}")
    maps = (tuple(map(float, array)) for array in (centre, half, slope, action_centre, action_half))
    return Space(*maps, actions)


# ---------------------------------------------------------------------------------------------------------------------
# The compiled systems

REWARD_SCALE = math.pi**2 + 6.404  # c of the scaled Pendulum reward (r + c) / c


class Pendulum(NamedTuple):
    """The pendulum: the constants of its dynamics.  Its state is angle, speed and sine of the angle."""

    space: Space
    raw_first: bool  # the first observation of an episode reaches the agent unmapped (the released program's way)
    gravity: float  # 3g / 2l
    per_inertia: float  # 3 / ml²
    dt: float
    max_speed: float
    max_torque: float
    clip_first: bool  # Pendulum-v1 moves the angle with the clipped speed, Pendulum-v0 with the speed before the clip
    shift: float  # the reward is (r + shift) / scale
    scale: float
    two: float  # 2.0, see `pendulum_step`
    torque: float  # of the discrete pendulum's first action; each next action adds `torque_step`
    torque_step: float


class CartPole(NamedTuple):
    """The cart and its pole: constants.  The state is position, speed, angle and angular speed."""

    space: Space
    raw_first: bool
    gravity: float
    mass_pole: float
    total_mass: float
    pole_mass_length: float
    length: float
    force: float
    dt: float
    max_position: float
    max_angle: float


@inlined
def first(system, x):
    """Turn the first observation of an episode, in `x`, into what the agent sees of it."""
    if system.raw_first:
        for i in range(x.size):
            x[i] = min(1.0, max(-1.0, x[i]))
    else:
        standardise(system.space, x, x)


@inlined
def pendulum_observe(system, state, observation):
    """Write the observation in Gymnasium's units, rounded to the float32 Gymnasium reports."""
    observation[0] = np.float32(math.cos(state[0]))
    observation[1] = np.float32(state[2])
    observation[2] = np.float32(state[1])


@inlined
def pendulum_reset(system, state, start, x):
    """Begin an episode in the state `start`; write what the agent observes to `x`."""
    state[0], state[1], state[2] = start[0], start[1], math.sin(start[0])
    pendulum_observe(system, state, x)
    first(system, x)


@inlined
def pendulum_step(system, state, action, x):
    """Apply an action of the standard space; write what the agent observes to `x`, return reward and end of episode."""
    if system.space.actions:
        torque = system.torque + system.torque_step * action[0]
    else:
        torque = system.space.action_centre[0] + system.space.action_half[0] * action[0]
    # Gymnasium receives the torque as a float32 scalar, so its products are rounded to float32.
    u = np.float32(min(system.max_torque, max(-system.max_torque, torque)))
    theta, speed, sin = state[0], state[1], state[2]
    cost = (
        square(principal(theta), system.two)
        + 0.1 * square(speed, system.two)
        + np.float64(np.float32(0.001) * square32(u, system.two))
    )
    push = np.float64(np.float32(system.per_inertia) * u)
    new_speed = speed + (system.gravity * sin + push) * system.dt
    clipped = min(system.max_speed, max(-system.max_speed, new_speed))
    theta += (clipped if system.clip_first else new_speed) * system.dt
    state[0], state[1], state[2] = theta, clipped, math.sin(theta)
    pendulum_observe(system, state, x)
    standardise(system.space, x, x)
    return (-cost + system.shift) / system.scale, False


@inlined
def principal(theta):
    """The angle in [-π, π): (θ + π) mod 2π - π, without the slow fmod() where a subtraction gives the same bits."""
    angle = theta + math.pi
    if angle >= 2 * math.pi:
        angle = angle - 2 * math.pi if angle < 4 * math.pi else angle % (2 * math.pi)
    elif angle < 0.0:
        angle = angle + 2 * math.pi if angle > -2 * math.pi else angle % (2 * math.pi)
    return angle - math.pi


@inlined
def square(y, two):
    """Return pow(y, 2), as NumPy squares its scalars: now and then its last bit is not that of y * y.

    Where the exact square is far from the middle between two floats, every sound pow() rounds it to y * y, and the slow
    call is not needed.  The exponent is an argument, lest the compiler put y * y back.
    """
    product = y * y
    # Dekker's exact error of the product: y * y = product + error.
    scaled = 134217729.0 * y
    high = scaled - (scaled - y)
    low = y - high
    error = ((high * high - product) + 2.0 * high * low) + low * low
    if product + 1.125 * error == product:  # more than 0.05 of a unit in the last place away from the middle
        return product
    return _pow(y, two)


@inlined
def square32(y, two):
    """`square` for a float32, for which only exact squares spare the call."""
    product = np.float64(y) * np.float64(y)
    if np.float32(product) == product:
        return np.float32(product)
    return _powf(y, np.float32(two))


@inlined
def cartpole_observe(system, state, observation):
    """Write the observation in Gymnasium's units, rounded to the float32 Gymnasium reports."""
    for i in range(4):
        observation[i] = np.float32(state[i])


@inlined
def cartpole_reset(system, state, start, x):
    """Begin an episode in the state `start`; write what the agent observes to `x`."""
    state[:] = start
    cartpole_observe(system, state, x)
    first(system, x)


@inlined
def cartpole_step(system, state, action, x):
    """Apply action 0 or 1; write what the agent observes to `x`, return reward and end of episode."""
    position, speed, theta, theta_speed = state[0], state[1], state[2], state[3]
    force = system.force if action[0] == 1.0 else -system.force
    cos, sin = math.cos(theta), math.sin(theta)
    temp = (force + system.pole_mass_length * (theta_speed * theta_speed) * sin) / system.total_mass
    theta_acceleration = (system.gravity * sin - cos * temp) / (
        system.length * (4.0 / 3.0 - system.mass_pole * (cos * cos) / system.total_mass)
    )
    acceleration = temp - system.pole_mass_length * theta_acceleration * cos / system.total_mass
    position = position + system.dt * speed
    speed = speed + system.dt * acceleration
    theta = theta + system.dt * theta_speed
    theta_speed = theta_speed + system.dt * theta_acceleration
    state[0], state[1], state[2], state[3] = position, speed, theta, theta_speed
    cartpole_observe(system, state, x)
    standardise(system.space, x, x)
    fell = abs(position) > system.max_position or abs(theta) > system.max_angle
    return 1.0, fell


def draw_starts(system: Pendulum | CartPole, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw first states, a row an episode: the stream Gymnasium's reset() draws from the same generator."""
    high = np.array([math.pi, 1.0]) if isinstance(system, Pendulum) else np.full(4, 0.05)
    return rng.uniform(-high, high, size=(episodes, high.size))


# ---------------------------------------------------------------------------------------------------------------------
# Gymnasium environments for what the paper runs and Gymnasium does not have

TORQUES = (-2.0, -1.0, 0.0, 1.0, 2.0)


class PendulumV0(PendulumEnv):
    """Gymnasium's Pendulum with the dynamics of Gym's Pendulum-v0: the angle moves with the speed before its clip."""

    def step(self, u):
        theta, speed = self.state
        _, reward, *rest = super().step(u)
        u = np.clip(u, -self.max_torque, self.max_torque)[0]
        unclipped = speed + (3 * self.g / (2 * self.l) * np.sin(theta) + 3.0 / (self.m * self.l**2) * u) * self.dt
        self.state = np.array([theta + unclipped * self.dt, self.state[1]])
        return self._get_obs(), reward, *rest


class ScaledReward(gym.RewardWrapper):
    """Pendulum's rewards mapped to [0, 1]: (r + c) / c."""

    def reward(self, reward):
        return (reward + REWARD_SCALE) / REWARD_SCALE


class FiveTorques(gym.ActionWrapper):
    """Pendulum with the five torques -2, -1, 0, 1, 2 Nm as its actions."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space = spaces.Discrete(len(TORQUES))

    def action(self, action):
        return np.array([TORQUES[int(action)]], dtype=np.float32)


def _pendulum(dynamics="v1", scaled=False, discrete=False, **kwargs):
    env = (PendulumV0 if dynamics == "v0" else PendulumEnv)(**kwargs)
    env = ScaledReward(env) if scaled else env
    return FiveTorques(env) if discrete else env


IDS = {
    "spaql/PendulumScaled-v1": {"scaled": True},
    "spaql/PendulumDiscrete-v1": {"discrete": True},
    "spaql/Pendulum-v0": {"dynamics": "v0"},
    "spaql/PendulumDiscrete-v0": {"dynamics": "v0", "discrete": True},
}
for _id, _kwargs in IDS.items():
    if _id not in gym.registry:
        gym.register(_id, entry_point="spaql.systems:_pendulum", max_episode_steps=200, kwargs=_kwargs)

# Wrappers gym.make() adds by itself, and ours: what is inside them is what it seems to be.
_TRANSPARENT = (gym.wrappers.PassiveEnvChecker, gym.wrappers.OrderEnforcing, gym.wrappers.TimeLimit, FiveTorques)


def episode_limit(env: gym.Env) -> int | None:
    """Return after how many steps the environment's own wrappers end an episode, or None if they never do."""
    limits = []
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min(limits, default=None)


def compile_system(env: gym.Env, space: Space, raw_first: bool = False) -> Pendulum | CartPole | None:
    """Return the compiled twin of an environment, with its physical constants, or None if it has none."""
    scaled = False
    inner = env
    while isinstance(inner, gym.Wrapper):
        if type(inner) is ScaledReward:
            scaled = True
        elif type(inner) not in _TRANSPARENT:
            return None
        inner = inner.env
    if type(inner) in (PendulumEnv, PendulumV0):
        return Pendulum(
            space=space,
            raw_first=raw_first,
            dt=float(inner.dt),
            max_speed=float(inner.max_speed),
            max_torque=float(inner.max_torque),
            clip_first=type(inner) is PendulumEnv,
            shift=REWARD_SCALE if scaled else 0.0,
            scale=REWARD_SCALE if scaled else 1.0,
            per_inertia=3.0 / (inner.m * inner.l**2),
            gravity=3 * inner.g / (2 * inner.l),
            two=2.0,
            torque=TORQUES[0],
            torque_step=TORQUES[1] - TORQUES[0],
        )
    if type(inner) is CartPoleEnv and not inner._sutton_barto_reward and inner.kinematics_integrator == "euler":
        return CartPole(
            space=space,
            raw_first=raw_first,
            gravity=float(inner.gravity),
            mass_pole=float(inner.masspole),
            total_mass=float(inner.total_mass),
            pole_mass_length=float(inner.polemass_length),
            length=float(inner.length),
            force=float(inner.force_mag),
            dt=float(inner.tau),
            max_position=float(inner.x_threshold),
            max_angle=float(inner.theta_threshold_radians),
        )
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Any other Gymnasium environment


class Gym:
    """A Gymnasium environment behind the interface of the compiled `reset` and `step`."""

    def __init__(self, env: gym.Env, space: Space, seed: int, raw_first: bool = False):
        self.env, self.space, self.raw_first = env, space, raw_first
        self.seed = self.first_seed = seed  # `seed` until the first reset has used it
        self.warned = False
        self.between_steps: Callable[[], None] = lambda: None  # called before every step

    @property
    def stream(self) -> dict | None:
        """The state of the environment's random stream: None before its first reset, {} if NumPy does not make it."""
        if self.seed is not None:
            return None
        generator = getattr(self.env.unwrapped, "_np_random", None)
        return generator.bit_generator.state if isinstance(generator, np.random.Generator) else {}

    @stream.setter
    def stream(self, state: dict | None) -> None:
        self.seed = self.first_seed if state is None else None
        if state:
            self.env.unwrapped.np_random = np.random.Generator(np.random.PCG64())
            self.env.unwrapped.np_random.bit_generator.state = state

    def observe(self, observation: Any, x: FLOATS, mapped: bool = True) -> None:
        """Write an observation to `x`, mapped to the standard space unless told otherwise."""
        observation = np.asarray(observation, float).ravel()
        if observation.size != x.size:
            raise ValueError(f"the environment gave an observation of {observation.size} numbers, expected {x.size}")
        if np.isnan(observation).any():
            raise ValueError(f"the environment gave an observation with NaN: {observation}; expected numbers")
        outside = np.abs(observation - self.space.centre) > np.multiply(self.space.half, 1 + 1e-6)
        if outside.any() and not self.warned:
            self.warned = True
            warnings.warn(
                f"observation {observation} is outside the bounds the environment declares; "
                "it is clipped to them, as will be others (this is said once)",
                stacklevel=2,
            )
        if mapped:
            standardise(self.space, observation, x)
        else:
            x[:] = np.clip(observation, -1.0, 1.0)

    def action(self, action: FLOATS) -> Any:
        """Return the environment's action for an action of the standard space."""
        space = self.env.action_space
        if self.space.actions:
            return space.start + np.int64(action[0])
        return to_box(space, self.space, action)


def to_box(box: spaces.Box, space: Space, action: FLOATS) -> np.ndarray:
    """Return the Box action for one (or an array of) actions of the standard space."""
    scaled = (space.action_centre + np.multiply(space.action_half, action)).astype(box.dtype)
    # Rounding to float32 must not leave the box.
    return np.clip(scaled.reshape(action.shape[:-1] + box.shape), box.low, box.high)


def gym_reset(system: Gym, state: None, start: Any, x: FLOATS) -> None:
    """`reset` for any environment: its state and where it starts are its own business."""
    observation, _ = system.env.reset(seed=system.seed)
    system.seed = None  # one seed at the start, then the environment's own stream goes on
    system.observe(observation, x, mapped=not system.raw_first)


def gym_step(system: Gym, state: None, action: FLOATS, x: FLOATS) -> tuple[float, bool]:
    """`step` for any environment."""
    system.between_steps()
    observation, reward, terminated, truncated, _ = system.env.step(system.action(action))
    system.observe(observation, x)
    reward = float(reward)
    if not math.isfinite(reward):
        raise ValueError(f"the environment gave a reward of {reward}; expected a finite number")
    return reward, bool(terminated or truncated)
