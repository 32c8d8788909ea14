"""TileQ: Q-learning on tiles, in which every step is learned from many times.

A *tiling* is a grid over the standard state space.  There are n of them.  From one to the next a grid is shifted along
its axes by (1, 3, 5, ...)/n of a tile, as Sutton and Barto advise (2018, section 9.5.4).  A state x lies in one tile of
each, T_1(x), ..., T_n(x), and each tile has a weight for each action:

    Q(x, a) = w(T_1(x), a) + ... + w(T_n(x), a).

States that are near each other share most of their tiles, so what is learned in one is known in the others, and all
tilings together are finer than each.  The best action is argmax_a Q(x, a).

After every step the agent learns from that step and from remembered ones (see `spaql.replay`, also for the target G,
which is rewards that followed plus a value, and for exploration).  For the action a that was taken and all others b:

    w(T_k(x), a) ← w(T_k(x), a) + α_k/n (G - Q(x, a)),
    w(T_k(x), b) ← w(T_k(x), b) + κ α_k/n (G - Q(x, a)).

At first α_k = α, so that Q(x, a) itself moves by α (G - Q(x, a)).  The rate of a tile falls with the number v of its
updates, α_k = α / (1 + v/v₀) with v₀ = 5,000.  So what is new is learned quickly, and what is known well is averaged.

With κ = 0.95 the actions share most of what is learned.  In many systems a single action changes little, so that Q
depends on the state far more than on the action: what is learned of one is then nearly true of the others.
"""

from typing import NamedTuple, Unpack

import gymnasium as gym
import numpy as np

from spaql import rules
from spaql.compiling import cached_jit, python_or_jit
from spaql.files import check_array
from spaql.policies.policy import ValuePolicy
from spaql.replay import ReplayAgent, Replaying
from spaql.spaces import SINE

SHARED = 0.95  # κ
HALVED = 5000.0  # v₀: after so many updates the rate of a tile is halved
MOST_WEIGHTS = 5_000_000  # 40 MB


class TileQ(ReplayAgent):
    """Q-learning on tiles with replay: the one to use for tasks with up to about four state variables.

    Parameters
    ----------
    env, seed, env_seed, horizon, bounds
        As for `AQL`.
    slopes
        As for `AQL`, but 1 for every unbounded observation if not given.
    discount
        γ, 0.995 if not given.
    initial
        The first estimates, 0 if not given.
    alpha
        α, the learning rate of a tile at first, 0.2 if not given.
    tilings
        How many grids; a power of two, 32 if not given.
    bins
        How many tiles each of them has along an axis (and one more, for the shift); 8 if not given.
    epsilon, decay
        After t samples a share of max(ε, exp(-t / decay)) of the actions is random; 0.1 and 2000 if not given.
    replays
        How many remembered transitions to learn from again after each step, 16 if not given.
    steps
        The greatest number of steps for which a target follows its episode, 50 if not given.  It stops earlier where
        the episode takes an action that is not the one now thought best.
    actions
        How many values of a continuous action to choose from, in each of its dimensions: evenly spaced, both ends
        included.  If not given, the two ends alone.
    angles
        Pairs of places in the observation that hold cosine and sine of an angle, as [(0, 1)]: the agent then sees the
        angle.  If not given, those of a registered system; none for other environments.

    Examples
    --------
    >>> agent = TileQ("Pendulum-v1", seed=0).learn(samples=40_000)
    >>> agent.evaluate(episodes=1000, seed=1).mean()
    """

    algorithm = rules.TILE_Q
    _policy = ValuePolicy

    def __init__(self, env: str | gym.Env, *, tilings: int = 32, bins: int = 8, **shared: Unpack[Replaying]):
        super().__init__(env, {"tilings": tilings, "bins": bins}, **shared)

    def _representation(self) -> "TileWeights":
        given, choices = self.parameters, self._choices()
        if given["tilings"] & (given["tilings"] - 1):
            raise ValueError(f"tilings must be a power of two, not {given['tilings']}: others are shifted unevenly")
        places = [(place, sine >= 0) for place, sine in enumerate(self._space.sine) if sine != SINE]
        tiles = Tiles(given["tilings"], given["bins"], np.array(places))
        if (count := count_of(tiles) * len(choices)) > MOST_WEIGHTS:
            raise ValueError(
                f"{len(places)} variables and {len(choices)} actions need {count:,} weights; expected at most "
                f"{MOST_WEIGHTS:,}: give fewer bins, tilings or actions"
            )
        weights = np.full((count_of(tiles), len(choices)), given["initial"] / tiles.tilings)
        rate = given["alpha"] / tiles.tilings
        return TileWeights(tiles, weights, np.zeros(len(weights)), choices, rate, tiles.tilings)


# Tile coding


class Tiles(NamedTuple):
    """How states are coded."""

    tilings: int  # n
    bins: int  # tiles along each axis of a tiling, and one more because of the shift
    places: np.ndarray  # one row for each variable: where it stands, and whether it is an angle, which turns round


def count_of(tiles: Tiles) -> int:
    """Return how many tiles there are."""
    return tiles.tilings * (tiles.bins + 1) ** len(tiles.places)


@python_or_jit
def active(tiles, x, found, row):
    """Write the number of the tile that holds `x`, of each tiling, to a row of `found`."""
    for tiling in range(tiles.tilings):
        number = tiling
        for i in range(len(tiles.places)):
            shift = ((2 * i + 1) * tiling % tiles.tilings) / tiles.tilings
            tile = int((x[tiles.places[i, 0]] + 1.0) / 2.0 * tiles.bins + shift)
            if tiles.places[i, 1]:
                tile %= tiles.bins
            number = number * (tiles.bins + 1) + min(max(tile, 0), tiles.bins)
        found[row, tiling] = number


@python_or_jit
def sum_of(weights, found, row, column):
    """The sum of one column of the weights, over the tiles in a row of `found`."""
    total = 0.0
    for i in range(found.shape[1]):
        total += weights[found[row, i], column]
    return total


# The representation.  Its methods take the number of a row instead of the row: compiled code counts references to every
# row it makes.


class TileWeights(NamedTuple):
    """The weights of tiles; the numbers by which a state is found again are those of its tiles."""

    tiles: Tiles
    weights: np.ndarray  # w, one row per tile, one column per action
    updates: np.ndarray  # v, of each tile
    actions: np.ndarray  # to choose from, in the standard space, one row per action
    rate: float  # α/n
    width: int  # n

    def place(self, states, codes, row):
        """Find the tiles of a state."""
        active(self.tiles, states[row], codes, row)

    def greedy(self, states, codes, row):
        """Return the place of the best action, the first of equals, and its Q."""
        best, highest = 0, sum_of(self.weights, codes, row, 0)
        for a in range(1, self.weights.shape[1]):
            q = sum_of(self.weights, codes, row, a)
            if q > highest:
                best, highest = a, q
        return best, highest

    def visit(self, states, codes, row):
        """Do nothing: tiles stay what they are."""

    def learn(self, states, codes, row, action, target):
        """Move Q(x, a) towards a target, and that of the other actions by κ times as much."""
        error = self.rate * (target - sum_of(self.weights, codes, row, action))
        for i in range(codes.shape[1]):
            tile = codes[row, i]
            self.updates[tile] += 1.0
            change = error / (1.0 + self.updates[tile] / HALVED)
            for b in range(self.weights.shape[1]):
                self.weights[tile, b] += change if b == action else SHARED * change

    def arms(self):
        """Return the number of weights."""
        return self.weights.size

    # Python alone calls these.

    def estimates(self) -> np.ndarray:
        """Return the weights."""
        return self.weights

    def with_room(self, steps: int) -> "TileWeights":
        """Return itself: tiles need no more room."""
        return self

    def values(self, points: np.ndarray) -> np.ndarray:
        """Return Q of each action at points of the standard space, one row per point."""
        found = np.empty((len(points), len(self.actions)))
        fill_values(self, np.ascontiguousarray(points, float), found)
        return found

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        return {f"{name}_weights": self.weights, f"{name}_updates": self.updates}

    def restored(self, arrays: dict[str, np.ndarray], name: str) -> "TileWeights":
        """Return the weights of a file, checked."""
        weights = check_array(arrays, f"{name}_weights", float, self.weights.shape)
        return self._replace(weights=weights, updates=check_array(arrays, f"{name}_updates", float, (len(weights),), 0))


@cached_jit
def fill_values(what, points, found):
    """Write Q of each action at each of many points."""
    codes = np.empty((1, what.width), np.int32)
    for i in range(len(points)):
        active(what.tiles, points[i], codes, 0)
        for a in range(found.shape[1]):
            found[i, a] = sum_of(what.weights, codes, 0, a)
