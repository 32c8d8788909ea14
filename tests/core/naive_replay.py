"""TileQ and SPAQL-R as a reader of `spaql.replay` would write them first: dictionaries and lists, step after step."""

import collections
import math

import numpy as np
from gymnasium import spaces


class NaiveTiles:
    """Weights by tile and action, each tile named by its grid and its place in it."""

    def __init__(self, actions, angle, alpha=0.2, tilings=32, bins=8, **_):
        self.actions, self.angle, self.alpha, self.tilings, self.bins = actions, angle, alpha, tilings, bins
        self.weights, self.updates = collections.defaultdict(float), collections.Counter()

    def tiles(self, x):
        """The tiles of x, in grids shifted by odd multiples of 1/n of a tile."""
        found = []
        for n in range(self.tilings):
            shifts = [(2 * i + 1) * n % self.tilings / self.tilings for i in range(len(x))]
            tile = [math.floor((v + 1) / 2 * self.bins + shift) for v, shift in zip(x, shifts, strict=True)]
            if self.angle:
                tile[0] %= self.bins
            found.append((n, *tile))
        return found

    def q(self, x):
        return [sum(self.weights[tile, a] for tile in self.tiles(x)) for a in range(self.actions)]

    def learn(self, x, a, target):
        delta = target - self.q(x)[a]
        for tile in self.tiles(x):
            self.updates[tile] += 1
            change = self.alpha / self.tilings * delta / (1 + self.updates[tile] / 5000)
            for b in range(self.actions):
                self.weights[tile, b] += change if b == a else 0.95 * change

    def visit(self, x, seen):
        pass


class NaiveCells:
    """A cell or, once it has halves, a question."""

    def __init__(self, actions, angle, alpha=0.2, visits=10, q=None, bounds=None, **_):
        self.rest = {"actions": actions, "angle": angle, "alpha": alpha, "visits": visits}
        self.alpha, self.most, self.visits, self.halves = alpha, visits, 0, None
        self.estimates, self.bounds = q or [0.0] * actions, bounds

    def leaf(self, x):
        if self.halves is None:
            return self
        axis, border, lower, upper = self.halves
        return (upper if x[axis] >= border else lower).leaf(x)

    def q(self, x):
        return self.leaf(x).estimates

    def learn(self, x, a, target):
        cell = self.leaf(x)
        cell.estimates[a] += self.alpha * (target - cell.estimates[a])

    def visit(self, x, seen):
        cell = self.leaf(x)
        cell.visits += 1
        if cell.visits >= self.most:
            cell.halve(seen)

    def halve(self, seen):
        """Halve what has been seen of the cell, across the axis along which that is most of all that has been seen."""
        whole = [(min(column), max(column)) for column in zip(*seen, strict=True)]
        bounds = self.bounds or [(-math.inf, math.inf)] * len(whole)
        box = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(whole, bounds, strict=True)]
        share = [(b - a) / (d - c) if d > c else 0.0 for (a, b), (c, d) in zip(box, whole, strict=True)]
        axis = share.index(max(share))
        if share[axis] < 1e-6:
            return
        border = (box[axis][0] + box[axis][1]) / 2
        halves = []
        for side in ((bounds[axis][0], border), (border, bounds[axis][1])):
            part = [side if i == axis else pair for i, pair in enumerate(bounds)]
            halves.append(NaiveCells(**self.rest, q=list(self.estimates), bounds=part))
        self.halves = (axis, border, *halves)


class Naive:
    """The loop; it shares with the package the order in which numbers are drawn."""

    def __init__(self, agent, kind, memory, replays=16, steps=50, decay=2000.0, **given):
        self.agent, self.memory, self.replays, self.steps, self.decay = agent, memory, replays, steps, decay
        self.rng = np.random.default_rng(agent.seed.spawn(3)[0])
        space = agent.env.action_space
        self.actions = list(range(space.n)) if isinstance(space, spaces.Discrete) else [[-2.0], [2.0]]
        self.angle = "Pendulum" in str(agent.env)
        self.what = kind(len(self.actions), self.angle, **given)
        self.transitions = []

    def best(self, x):
        q = self.what.q(x)
        return q.index(max(q))

    def target(self, i):
        """G of transition i: follow the episode while it does what is now thought best."""
        _, _, total, y, end = self.transitions[i]
        power = 0.995
        for _ in range(self.steps - 1):
            if end or i + 1 == len(self.transitions):
                break
            x, a, reward, after, its_end = self.transitions[i + 1]
            if a != self.best(x):
                break
            i, y, end = i + 1, after, its_end
            total, power = total + power * reward, power * 0.995
        if end == "terminal":
            return total
        rewards = [0.0, *(transition[2] for transition in self.transitions)]
        return total + power * min(200 * max(rewards), max(200 * min(rewards), max(self.what.q(y))))

    def update(self, i):
        x, a, *_ = self.transitions[i]
        self.what.learn(x, a, self.target(i))

    def learn(self, episodes):
        """Return what each training episode gave."""
        env, found = self.agent.env, []
        for episode in range(episodes):
            x = self.state(env.reset(seed=self.agent.env_seed if episode == 0 else None)[0])
            total, end = 0.0, ""
            while end == "":
                a = None
                if self.rng.random() < max(0.1, math.exp(-len(self.transitions) / self.decay)):
                    a = int(self.rng.random() * len(self.actions))
                a = self.best(x) if a is None else a
                action = self.actions[a] if isinstance(self.actions[a], int) else np.array(self.actions[a], np.float32)
                observation, reward, terminated, truncated, _ = env.step(action)
                y, total = self.state(observation), total + float(reward)
                end = "terminal" if terminated else "cut off" if truncated else ""
                self.transitions.append((x, a, float(reward), y, end))
                self.what.visit(x, [transition[0] for transition in self.transitions])
                taken = len(self.transitions)
                self.update(taken - 1)
                for _ in range(self.replays):
                    at = int(self.rng.random() * min(taken, self.memory))  # a place in the ring
                    self.update(at + (taken - 1 - at) // self.memory * self.memory)
                x = y
            found.append(total)
        return found

    def state(self, observation):
        """The observation in [-1, 1]^d: divided by its bound, or the sigmoid of slope 1 where it has none."""
        low, high = self.agent.env.observation_space.low, self.agent.env.observation_space.high
        found = []
        for v, a, b in zip(observation.tolist(), low.tolist(), high.tolist(), strict=True):
            mapped = (v - (a + b) / 2) / ((b - a) / 2) if math.isfinite(b) else 2.0 / (1.0 + math.exp(-2.0 * v)) - 1.0
            found.append(min(1.0, max(-1.0, mapped)))
        if self.angle:
            cosine, sine = observation[:2].tolist()
            found = [math.atan2(sine, cosine) / math.pi, found[2]]
        return found

    def seen(self, count):
        """The last states, and as the package has them: with the place of the sine left empty."""
        last = [x for x, *_ in self.transitions[-count:]]
        return last, np.array([[x[0], 0.0, x[1]] if self.angle else x for x in last])
