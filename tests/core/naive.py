"""AQL as a reader of the paper would write it first: a tree of objects, recursion, no arrays.  An oracle for the
package."""

import itertools
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Ball:
    centre: tuple
    radius: float
    low: float
    high: float
    q: float
    visits: int = 0
    children: list = field(default_factory=list)

    def contains(self, x):
        return all(c - self.radius <= v < c + self.radius or v == 1.0 == c + self.radius
                   for c, v in zip(self.centre, x, strict=True))  # fmt: skip


class NaivePartition:
    def __init__(self, dimensions, actions, q):
        self.actions = actions
        self.root = Ball((0.0,) * dimensions, 1.0, *((0.0, float(actions)) if actions else (-1.0, 1.0)), q)

    def leaves(self, ball=None):
        ball = ball or self.root
        return [leaf for child in ball.children for leaf in self.leaves(child)] if ball.children else [ball]

    def relevant(self, x):
        return [ball for ball in self.leaves() if ball.contains(x)]

    def best(self, x):
        """Of equal balls the last in child order wins."""
        best = None
        for ball in self.relevant(x):
            if best is None or ball.q >= best.q:
                best = ball
        return best

    def parts(self, ball):
        if not self.actions:
            middle = (ball.low + ball.high) / 2
            return [(middle, ball.high), (ball.low, middle)]  # upper half first
        if ball.high - ball.low == 1:
            return [(ball.low, ball.high)]
        middle = ball.low + (ball.high - ball.low) // 2
        return [(ball.low, middle), (middle, ball.high)]  # first half first

    def split(self, ball):
        half = ball.radius / 2
        for signs in itertools.product((1, -1), repeat=len(ball.centre)):
            centre = tuple(c + s * half for c, s in zip(ball.centre, signs, strict=True))
            for low, high in self.parts(ball):
                ball.children.append(Ball(centre, half, low, high, ball.q, ball.visits))


def naive_aql_episode(env, observe, partitions, xi, rng, to_env):
    """One training episode of AQL (the paper's Algorithm 1) on a Gymnasium environment."""
    H = len(partitions)
    observation, _ = env.reset()
    x = observe(observation)
    for h in range(H):
        ball = partitions[h].best(x)
        if partitions[h].actions:
            width = ball.high - ball.low
            action = np.floor(ball.low + width * rng.random()) if width > 1 else ball.low
        else:
            action = ball.low + (ball.high - ball.low) * rng.random()
        observation, reward, terminated, truncated, _ = env.step(to_env(action))
        y = observe(observation)
        ball.visits += 1
        v = ball.visits
        alpha = (H + 1) / (H + v)
        future = 0.0 if h + 1 == H else min(H, partitions[h + 1].best(y).q)
        ball.q = (1 - alpha) * ball.q + alpha * (reward + future + xi / np.sqrt(v))
        if v >= (1 / ball.radius) ** 2:
            partitions[h].split(ball)
        x = y
        if terminated or truncated:
            break
