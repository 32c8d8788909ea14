"""The standard space [-1, 1]^d that agents see, and the map of any environment's observations and actions to it.

The paper describes it in its sections "Implementation" and "Setup".
"""

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.compiling import python_or_jit

FLOATS = np.ndarray  # a one-dimensional array of float64


class Space(NamedTuple):
    """The map between an environment's observations and actions and the standard space.

    A bounded coordinate is shifted by `centre` and divided by `half`; an unbounded one (`half` infinite) goes through
    the paper's sigmoid with slope `slope` at the origin.  `actions` counts the actions of a Discrete space (0: a Box).

    Where an angle is observed as cosine and sine, an agent that is told so sees the angle in the place of the cosine,
    and zero in that of the sine.
    """

    centre: tuple[float, ...]  # tuples, not arrays: compiled code then knows their length
    half: tuple[float, ...]
    slope: tuple[float, ...]
    action_centre: tuple[float, ...]
    action_half: tuple[float, ...]
    actions: int
    sine: tuple[int, ...]  # of each cosine the place of its sine; else PLAIN, or SINE of the sines themselves


PLAIN, SINE = -1, -2


@python_or_jit
def sigmoid(y, m):
    """φ_m(y), the shifted and rescaled sigmoid that bounds CartPole's velocities."""
    exponent = min(709.0, -2.0 * m * y)  # beyond it the result is -1 anyway, and plain Python raises an error
    return 2.0 / (1.0 + math.exp(exponent)) - 1.0


@python_or_jit
def turn(space, observation, x):
    """Write the observation to `x`, with an angle in the place of its cosine and zero in that of its sine."""
    for i in range(len(space.sine)):
        j = space.sine[i]
        if j == PLAIN:
            x[i] = observation[i]
        elif j >= 0:
            angle = math.atan2(observation[j], observation[i])
            x[i], x[j] = angle, 0.0


@python_or_jit
def scaled(space, i, value):
    """The coordinate of the standard space for a value of variable number `i`, clipped to its bounds."""
    if space.half[i] < math.inf:
        coordinate = (value - space.centre[i]) / space.half[i]
    else:
        coordinate = sigmoid(value, space.slope[i])
    return min(1.0, max(-1.0, coordinate))


@python_or_jit
def standardise(space, observation, x):
    """Write the observation's point of the standard space to `x`; what lies outside its bounds is clipped to them."""
    turn(space, observation, x)
    for i in range(len(space.centre)):
        x[i] = scaled(space, i, x[i])


FLAT = 0.99  # beyond it the sigmoid cannot tell states apart


def is_flat(space: Space, observation: Any) -> bool:
    """Return whether some unbounded number of an observation is where the sigmoid is flat."""
    unbounded = (i for i, half in enumerate(space.half) if half == math.inf)
    return any(sigmoid(abs(observation[i]), space.slope[i]) > FLAT for i in unbounded)


LARGEST = np.finfo(float).max / 4  # bounds further apart are as good as none
CIRCLE = 0.01  # how far cosine and sine may be from the unit circle: some environments round them

MAX_DIMENSIONS = 16  # more would need more samples than anyone has; a ball would split into 2^dimensions


def make_space(env: gym.Env, slopes: Any = 1.0, bounds: Any = None, angles: Any = ()) -> Space:
    """Return the map to the standard space for any environment with Box observations and Box or Discrete actions.

    `bounds` are used instead of the environment's own where they are given: one pair (low, high) for every observation,
    or a list with a pair or None for each.  `angles` are the pairs of places of a cosine and its sine.
    """
    observed = env.observation_space
    if not isinstance(observed, spaces.Box) or not np.issubdtype(observed.dtype, np.number):
        raise TypeError(
            f"observations must be a Box of numbers, not {observed}; "
            "gymnasium.wrappers.FlattenObservation turns Dict, Tuple and Discrete observations into one"
        )
    action_centre, action_half, actions = map_of_actions(env.action_space)
    low, high = (np.array(bound, float).ravel() for bound in (observed.low, observed.high))
    for i, pair in enumerate(check_bounds(bounds, low.size) if bounds is not None else ()):
        low[i], high[i] = pair or (low[i], high[i])
    dimensions = low.size + (0 if actions else action_half.size)
    if dimensions > MAX_DIMENSIONS or low.size == 0:
        raise ValueError(
            f"observation {observed.shape} and action together have {dimensions} dimensions: expected 1 to "
            f"{MAX_DIMENSIONS}, more than which no partition covers (images and long vectors need features first)"
        )
    bounded = np.isfinite(low) & np.isfinite(high) & (np.abs(high / 2 - low / 2) < LARGEST)
    if np.any(high[bounded] <= low[bounded]):
        raise ValueError(f"observation bounds must have low < high, not {low} and {high}")
    centre, half = np.zeros(low.size), np.full(low.size, math.inf)
    centre[bounded] = (high[bounded] + low[bounded]) / 2
    half[bounded] = (high[bounded] - low[bounded]) / 2
    slope = np.asarray(slopes, float)
    if slope.ndim and slope.shape != low.shape:
        raise ValueError(f"slopes must be one number or {low.size}, one for each observation, not {slopes}")
    slope = np.array(np.broadcast_to(slope, low.shape))
    if not np.all(np.isfinite(slope)) or np.any(slope[~bounded] <= 0):
        raise ValueError(f"slopes of unbounded observations must be positive numbers, not {slopes}")
    sine = np.full(low.size, PLAIN)
    for cosine, its_sine in check_angles(angles, low.size):
        sine[cosine], sine[its_sine] = its_sine, SINE
        centre[[cosine, its_sine]], half[[cosine, its_sine]] = 0.0, (math.pi, 1.0)
    maps = [tuple(map(float, array)) for array in (centre, half, slope, action_centre, action_half)]
    return Space(maps[0], maps[1], maps[2], maps[3], maps[4], actions, tuple(map(int, sine)))


def map_of_actions(acted: spaces.Space) -> tuple[np.ndarray, np.ndarray, int]:
    """Return centre and half range of each dimension of the actions, and how many there are if they are a list."""
    if isinstance(acted, spaces.Discrete):
        return np.zeros(1), np.zeros(1), int(acted.n)
    if isinstance(acted, spaces.MultiDiscrete):  # the ends and the middle of a range of whole numbers
        half = (np.asarray(acted.nvec, float).ravel() - 1.0) / 2.0
        return half + np.asarray(acted.start, float).ravel(), half, 0
    if not isinstance(acted, spaces.Box) or not np.issubdtype(acted.dtype, np.floating):
        raise TypeError(
            f"actions must be Discrete, MultiDiscrete or a Box of floats, not {acted}; "
            "gymnasium.wrappers.TransformAction can turn one into the other"
        )
    low, high = (np.asarray(bound, float).ravel() for bound in (acted.low, acted.high))
    if not np.all(np.isfinite(low) & np.isfinite(high) & (high / 2 - low / 2 < LARGEST)):
        raise ValueError(
            f"a Box of actions needs finite bounds, not {acted}; "
            "gymnasium.wrappers.RescaleAction or TransformAction can give it some"
        )
    return (high + low) / 2, (high - low) / 2, 0


def check_angles(angles: Any, count: int) -> list[list[int]]:
    """Return the pairs of places of a cosine and its sine among so many observations, or say what is wrong with them.

    Whether they are a circle is seen when the agent learns.
    """
    try:
        pairs = [[operator.index(place) for place in pair] for pair in angles]
    except TypeError:
        pairs = [[]]
    places = {place for pair in pairs for place in pair}
    if any(len(pair) != 2 for pair in pairs) or len(places) < 2 * len(pairs) or not places <= set(range(count)):
        raise ValueError(f"angles must be pairs of different places from 0 to {count - 1}, cosine first, as [(0, 1)], "
                         f"or [] for none, not {angles!r}")  # fmt: skip
    return pairs


def pairs_of(space: Space) -> list[list[int]]:
    """Return the places of the cosine and the sine of each angle."""
    return [[cosine, sine] for cosine, sine in enumerate(space.sine) if sine >= 0]


def check_circles(angles: list[list[int]], observation: Any) -> None:
    """Raise an error if an observation has no cosine and sine where there should be some."""
    for cosine, sine in angles:
        radius = math.hypot(observation[cosine], observation[sine])
        if not abs(radius - 1.0) < CIRCLE:
            raise ValueError(f"angles names {cosine} and {sine}, where an observation has {observation[cosine]:g} and "
                             f"{observation[sine]:g}, no cosine and sine: give other places, or angles=[] for none"
                             )  # fmt: skip


def check_bounds(bounds: Any, count: int) -> list[list[float] | None]:
    """Return a pair of bounds or None for each of so many observations, or say what is wrong with those given."""
    given = list(bounds) if isinstance(bounds, Sequence | np.ndarray) else []
    if len(given) == 2 and all(isinstance(end, numbers.Real) for end in given):
        given = [given] * count
    pairs = [pair for pair in given if pair is not None]
    sound = all(np.shape(pair) == (2,) and np.isfinite(pair).all() and pair[0] < pair[1] for pair in pairs)
    if len(given) != count or not sound:
        raise ValueError(f"bounds must be one pair of finite numbers, low < high, or a pair or None for each of "
                         f"{count} observations, not {bounds!r}")  # fmt: skip
    return [None if pair is None else [float(end) for end in pair] for pair in given]


def to_box(box: spaces.Box | spaces.MultiDiscrete, space: Space, action: FLOATS) -> np.ndarray:
    """Return the Box action for one (or an array of) actions of the standard space."""
    scaled = space.action_centre + np.multiply(space.action_half, action)
    if isinstance(box, spaces.MultiDiscrete):
        return np.rint(scaled).astype(box.dtype).reshape(action.shape[:-1] + box.shape)
    scaled = scaled.astype(box.dtype)
    # Rounding to float32 must not leave the box.
    return np.minimum(np.maximum(scaled.reshape(action.shape[:-1] + box.shape), box.low), box.high)
