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

from spaql.compiling import cached_jit, python_or_jit


class Space(NamedTuple):
    """The map between an environment's observations and actions and the standard space.

    Where an angle is observed as cosine and sine, an agent that is told so sees the angle in the place of the cosine,
    and zero in that of the sine.
    """

    centre: tuple[float, ...]  # what a coordinate is shifted by; tuples, so that compiled code knows their length
    half: tuple[float, ...]  # and divided by; if infinite, it goes through the paper's sigmoid instead
    slope: tuple[float, ...]  # of the sigmoid at the origin
    action_centre: tuple[float, ...]
    action_half: tuple[float, ...]
    actions: int  # how many a Discrete space has; 0 for a Box
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


@cached_jit
def standardised(space, observations):
    """Return the points of the standard space for observations, a row each."""
    points = np.empty_like(observations)
    for i in range(len(observations)):
        standardise(space, observations[i], points[i])
    return points


def rows_of(observation: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, bool]:
    """Return an observation, or several, as rows of numbers, and whether it is one; or say what is wrong with it."""
    given, width = np.asarray(observation, float), math.prod(shape)
    single = given.shape in (shape, (width,))
    if not single and math.prod(given.shape[1:]) != width:
        raise ValueError(f"expected an observation of shape {shape}, or several stacked, not {given.shape}")
    if np.isnan(given).any():
        raise ValueError("the observation contains NaN; expected numbers")
    return np.ascontiguousarray(given.reshape(-1, width)), single


FLAT = 0.99  # beyond it the sigmoid cannot tell states apart


def is_flat(space: Space, observation: Any) -> bool:
    """Return whether some unbounded number of an observation is where the sigmoid is flat."""
    unbounded = (i for i, half in enumerate(space.half) if half == math.inf)
    return any(sigmoid(abs(observation[i]), space.slope[i]) > FLAT for i in unbounded)


LARGEST = np.finfo(float).max / 4  # bounds further apart are as good as none
CIRCLE = 0.01  # how far cosine and sine may be from the unit circle: some environments round them

MAX_DIMENSIONS = 16  # more would need more samples than anyone has; a ball would split into 2^dimensions


def make_space(env: gym.Env, slopes: Any = 1.0, bounds: Any = None, angles: Any = ()) -> Space:
    """Return the map to the standard space; `AQL` says what slopes and bounds are, and `TileQ` what angles are."""
    observed = env.observation_space
    if not isinstance(observed, spaces.Box) or not np.issubdtype(observed.dtype, np.number):
        raise TypeError(
            f"observations must be a Box of numbers, not {observed}: see gymnasium.wrappers.FlattenObservation"
        )
    action_centre, action_half, actions = map_of_actions(env.action_space)
    low, high = (np.array(bound, float).ravel() for bound in (observed.low, observed.high))
    for i, pair in enumerate(check_bounds(bounds, low.size) if bounds is not None else ()):
        low[i], high[i] = pair or (low[i], high[i])
    dimensions = low.size + (0 if actions else action_half.size)
    if dimensions > MAX_DIMENSIONS or low.size == 0:
        raise ValueError(
            f"observation {observed.shape} and action have {dimensions} dimensions; expected 1 to {MAX_DIMENSIONS}"
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
    maps: list[Any] = [tuple(array.tolist()) for array in (centre, half, slope, action_centre, action_half)]
    return Space._make([*maps, actions, tuple(sine.tolist())])


def map_of_actions(acted: spaces.Space) -> tuple[np.ndarray, np.ndarray, int]:
    """Return centre and half range of each dimension of the actions, and how many there are if they are a list."""
    if isinstance(acted, spaces.Discrete):
        return np.zeros(1), np.zeros(1), int(acted.n)
    if isinstance(acted, spaces.MultiDiscrete):  # the ends and the middle of a range of whole numbers
        half = (np.asarray(acted.nvec, float).ravel() - 1.0) / 2.0
        return half + np.asarray(acted.start, float).ravel(), half, 0
    if not isinstance(acted, spaces.Box) or not np.issubdtype(acted.dtype, np.floating):
        raise TypeError(
            f"actions must be Discrete, MultiDiscrete or a Box of floats, not {acted}: see Gymnasium's TransformAction"
        )
    low, high = (np.asarray(bound, float).ravel() for bound in (acted.low, acted.high))
    if not np.all(np.isfinite(low) & np.isfinite(high) & (high / 2 - low / 2 < LARGEST)):
        raise ValueError(f"a Box of actions needs finite bounds, not {acted}: see gymnasium.wrappers.RescaleAction")
    return (high + low) / 2, (high - low) / 2, 0


def check_angles(angles: Any, count: int) -> list[list[int]]:
    """Return the places of cosines and sines among so many observations, or say what is wrong with them."""
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
            found = f"{observation[cosine]:g} and {observation[sine]:g}"
            raise ValueError(f"angles={angles}, but {found} are no cosine and sine: give other places, or [] for none")


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


def to_box(box: spaces.Box | spaces.MultiDiscrete, space: Space, action: np.ndarray) -> np.ndarray:
    """Return the Box action for one (or an array of) actions of the standard space."""
    scaled = space.action_centre + np.multiply(space.action_half, action)
    if isinstance(box, spaces.MultiDiscrete):
        return np.rint(scaled).astype(box.dtype).reshape(action.shape[:-1] + box.shape)
    scaled = scaled.astype(box.dtype)
    # Rounding to float32 must not leave the box.
    return np.minimum(np.maximum(scaled.reshape(action.shape[:-1] + box.shape), box.low), box.high)
