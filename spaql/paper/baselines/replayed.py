"""Tiles, or a fixed grid, with SPAQL-R's replay recipe: the same learning on another representation.

What is replayed, how targets look ahead and how actions are explored is SPAQL-R's; a grid is a single tiling.  Write
Q(x, a) for the sum of the weights of the tiles that hold x.  Learning from transition t follows its episode for m
steps, as long as each next action is the one now thought best, and at most `steps`,

    target  G = r_t + γ r_{t+1} + ... + γ^(m-1) r_{t+m-1} + γ^m max_a Q(x_{t+m}, a),
    update  each of the n weights of (x_t, a_t) by α/n (G - Q(x_t, a_t)), and of the other actions by κ times that.

With κ near 1 the actions share most of what is learned, as they share the value of SPAQL-R.
"""

from typing import Any, NamedTuple

import numpy as np

from spaql.compiling import borrowed, either, inlined
from spaql.paper.baselines.tiles import OnTiles, greedy
from spaql.replay import share_of_random
from spaql.systems import ENDED, observe, reset, room, step
from spaql.tileq import active, sum_of

MEMORY = 100_000  # transitions to keep
GOES_ON, CUT_OFF, TERMINAL = range(3)  # how an episode stands after a transition


class Recipe(NamedTuple):
    """The parameters, with SPAQL-R's names."""

    alpha: float = 0.1
    common: float = 0.0  # κ
    gamma: float = 0.99
    epsilon: float = 0.1
    decay: float = 5000.0
    replays: int = 32
    steps: int = 20


class Kept(NamedTuple):
    """The last transitions: a ring, in which number t stands at t modulo its size."""

    x: np.ndarray  # the tiles of the state, one row per transition
    y: np.ndarray  # of the next one
    action: np.ndarray
    reward: np.ndarray
    end: np.ndarray
    taken: np.ndarray  # how many so far, one number


@inlined
def learn_from(x, y, action, reward, end, weights, recipe, at, newest):
    """Learn from one transition; the arrays are those of `Kept`."""
    row, total, discount, steps = at, reward[at], recipe.gamma, 1
    best, highest = greedy(weights, y, at)
    while steps < recipe.steps and at != newest and end[at] == GOES_ON:
        following = at + 1 if at + 1 < len(reward) else 0
        if action[following] != best:
            break
        at = following
        total += discount * reward[at]
        discount *= recipe.gamma
        steps += 1
        best, highest = greedy(weights, y, at)
    if end[at] != TERMINAL:
        total += discount * highest
    a = action[row]
    change = recipe.alpha / x.shape[1] * (total - sum_of(weights, x, row, a))
    for i in range(x.shape[1]):
        for b in range(weights.shape[1]):
            weights[x[row, i], b] += change if b == a else recipe.common * change


@either
def train_replayed(world, starts, limit, samples, tiles, recipe, weights, actions, kept, rng):
    """Learn until so many samples more are taken; the last episode is cut off there."""
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    size, t, episode = len(kept.reward), 0, 0
    now = np.empty((2, tiles.tilings), np.int64)  # the tiles before and after a step
    before, after, kept_action = borrowed(kept.x), borrowed(kept.y), borrowed(kept.action)
    rewards, ends, lent = borrowed(kept.reward), borrowed(kept.end), borrowed(weights)
    while t < samples:
        reset(world, state, starts[episode], x)
        episode += 1
        active(tiles, x, now, 0)
        h, end = 0, GOES_ON
        while end == GOES_ON:
            taken = kept.taken[0]
            a = greedy(weights, now, 0)[0]
            if rng.random() < share_of_random(recipe, taken):
                a = int(rng.random() * len(actions))
            action[:] = actions[a]
            reward, over = step(world, state, action, x)
            active(tiles, x, now, 1)
            h += 1
            t += 1
            if over == ENDED:
                end = TERMINAL
            elif h == limit or t == samples:
                end = CUT_OFF
            newest = taken % size
            for i in range(tiles.tilings):
                before[newest, i], after[newest, i] = now[0, i], now[1, i]
            kept_action[newest], rewards[newest], ends[newest] = a, reward, end
            kept.taken[0] = taken + 1
            for i in range(recipe.replays + 1):
                at = newest if i == 0 else int(rng.random() * min(taken + 1, size))
                learn_from(before, after, kept_action, rewards, ends, lent, recipe, at, newest)
            now[0] = now[1]


@either
def retrace(world, starts, actions, taken, ends, seen):
    """Play the actions of a chunk of training again, and write what was observed before each."""
    state, x, action = room(world), np.empty(seen.shape[1]), np.empty(actions.shape[1])
    t, episode = 0, 0
    while t < len(taken):
        reset(world, state, starts[episode], x)
        episode += 1
        end = GOES_ON
        while end == GOES_ON:
            observe(world.constants, state, seen[t])
            action[:] = actions[taken[t]]
            step(world, state, action, x)
            end = ends[t]
            t += 1


class Replayed(OnTiles):
    """Q-learning by SPAQL-R's replay on tiles, or on a grid if there is one tiling.

    Beside the parameters of `OnTiles` it takes those of `Recipe`.
    """

    def __init__(self, env: Any, seed: Any = None, actions: int = 2, tilings: int = 16, bins: int = 8, **given: Any):
        super().__init__(env, seed, actions, tilings, bins)
        self.recipe = Recipe(**given)
        tiles = np.zeros((2, MEMORY, tilings), np.int32)
        self.kept = Kept(tiles[0], tiles[1], np.zeros(MEMORY, np.int32), np.zeros(MEMORY), np.zeros(MEMORY, np.int8),
                         np.zeros(1, np.int64))  # fmt: skip

    def learn(self, samples: int) -> "Replayed":
        """Take so many samples more, and learn from them."""
        self.world.call(train_replayed, self.world.starts(samples), self.limit, samples, self.tiles, self.recipe,
                        self.weights, self.actions, self.kept, self.rng)  # fmt: skip
        return self
