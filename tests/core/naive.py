"""AQL, SPAQL and SPAQL-TS as a reader of the paper would write them first: a tree of objects, recursion, no arrays.

They are an oracle for the package and import nothing from it.  What they share with it is the names of the rules and
the order in which random numbers are drawn; where a comment speaks of that order, any other would do as well.
"""

import itertools
import math
import warnings
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace

import gymnasium as gym
import numpy as np


@dataclass
class Ball:
    centre: tuple
    radius: float
    low: float
    high: float
    q: float
    visits: int = 0
    rank: float = 0.0
    born: int = 0
    children: list = field(default_factory=list)

    def contains(self, x):
        """Tell whether the state is in the ball; one on the border of two balls is in the upper one."""
        r = self.radius
        for c, v in zip(self.centre, x, strict=True):  # noqa: SIM110 (all() takes twice the time)
            if not (c - r <= v < c + r or v == 1.0 == c + r):
                return False
        return True

    def relevant(self, x):
        """Return the unsplit balls that contain the state, in child order."""
        if not self.contains(x):
            return []
        return [ball for child in self.children for ball in child.relevant(x)] if self.children else [self]

    def copy(self):
        return replace(self, children=[child.copy() for child in self.children])

    def leaves(self):
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]


class NaivePartition:
    def __init__(self, dimensions, actions, q):
        self.actions = actions
        self.root = Ball((0.0,) * dimensions, 1.0, *((0.0, float(actions)) if actions else (-1.0, 1.0)), q)
        self.made, self.splits = 1, 0

    def copy(self):
        twin = copy(self)
        twin.root = self.root.copy()
        return twin

    def leaves(self):
        return self.root.leaves()

    def relevant(self, x):
        return self.root.relevant(x)

    def best(self, x):
        """Return the argmax of Q; of equal balls the one of the highest rank, and of equal ranks the last child."""
        best = None
        for ball in self.relevant(x):
            if best is None or (ball.q, ball.rank) >= (best.q, best.rank):
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

    def split(self, ball, ranks=None):
        """Give a ball its children; `ranks` is the generator of their ranks if ties are broken at random."""
        self.splits += 1
        half = ball.radius / 2
        for signs in itertools.product((-1, 1), repeat=len(ball.centre)):
            # The order of draws: the lower half of a coordinate first, and the first coordinate changes fastest.
            centre = tuple(c + s * half for c, s in zip(ball.centre, reversed(signs), strict=True))
            for low, high in self.parts(ball):
                rank = ranks.random() if ranks else 0.0
                ball.children.append(Ball(centre, half, low, high, ball.q, ball.visits, rank, self.made))
                self.made += 1


class Naive:
    """An agent of one of the three algorithms; `events` counts what happened to it."""

    def __init__(
        self, algorithm, env_id, rules, xi, seed,
        horizon=200, tau_min=0.01, u=2.0, d=0.8, lam=1.2, initial=None, discount=1.0,
    ):  # fmt: skip
        self.discount = discount
        self.algorithm, self.rules, self.H, self.xi, self.lam = algorithm, rules, horizon, xi, lam
        self.tau, self.tau_min, self.u, self.d = tau_min, tau_min, u, d
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium advises against CartPole-v0
            self.env = gym.make(env_id, disable_env_checker=True)
        stream, env_stream, _ = np.random.SeedSequence(seed).spawn(3)
        self.rng, self.env_seed = np.random.default_rng(stream), int(env_stream.generate_state(1)[0])
        self.slopes = (0.0, 1 / 240, 0.0, 1 / 21) if "CartPole" in env_id else (0.0, 0.0, 0.0)
        self.reference = (0.0, 0.0, 0.0, 0.0) if "CartPole" in env_id else (1.0, 0.0, 0.0)
        actions = int(getattr(self.env.action_space, "n", 0))
        steps = horizon if algorithm == "AQL" else 1
        # The partitions P' and P of the paper: one for each time step for AQL, one for all steps for the others.
        q = float(horizon) if initial is None else initial
        self.trainee = self.best = [NaivePartition(len(self.slopes), actions, q) for _ in range(steps)]
        self.best_mean, self.seen = -math.inf, 1
        self.history, self.events = [], Counter()

    def at(self, h):
        """Return the trainee's partition for a time step."""
        return self.trainee[h if self.algorithm == "AQL" else 0]

    # The environment as the agent sees it, from the standard space

    def reset(self):
        observation, _ = self.env.reset(seed=self.env_seed)
        self.env_seed = None  # it seeds the first episode, and the environment goes on from there
        if self.rules.first_observation == "raw":
            return [min(1.0, max(-1.0, float(y))) for y in observation]
        return self.standard(observation)

    def step(self, action):
        space = self.env.action_space
        if isinstance(space, gym.spaces.Discrete):
            action = int(action)
        else:
            low, high = float(space.low[0]), float(space.high[0])
            action = np.array([(high + low) / 2 + (high - low) / 2 * action], np.float32)
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return self.standard(observation), float(reward), terminated, truncated

    def standard(self, observation):
        """Map an observation to the standard space: a bounded number linearly, an unbounded one by the sigmoid."""
        space, x = self.env.observation_space, []
        for y, low, high, m in zip(observation, space.low, space.high, self.slopes, strict=True):
            y, low, high = float(y), float(low), float(high)
            if math.isinf(high):
                y = 2 / (1 + math.exp(-2 * m * y)) - 1
            else:
                y = (y - (high + low) / 2) / ((high - low) / 2)
            x.append(min(1.0, max(-1.0, y)))
        return x

    # The paper's algorithms

    def draw_action(self, ball):
        """Draw an action uniformly in the ball; of a single action nothing is drawn."""
        width = ball.high - ball.low
        if not self.trainee[0].actions:
            return ball.low + width * self.rng.random()
        return math.floor(ball.low + width * self.rng.random()) if width > 1 else ball.low

    def boltzmann_sample(self, balls):
        """Draw a ball with a probability proportional to the exponential of Q / (Q_max τ)."""
        estimates = [ball.q for ball in balls]
        scale = max(map(abs, estimates)) if self.rules.normalisation == "absolute" else max(estimates)
        scale = scale or 1.0
        # A negative maximum turns the order round.  The greatest exponent is taken off all, so that none overflows.
        preferred = max(estimates) if scale > 0 else min(estimates)
        self.events["negative maximum"] += scale < 0
        # The order of draws: the smallest balls first, of these the youngest; each takes the place of the one chosen
        # before it with its share of the weights so far, for which the first needs no draw.
        chosen, total = None, 0.0
        for ball in sorted(balls, key=lambda ball: (ball.radius, -ball.born)):
            weight = math.exp((ball.q - preferred) * (1 / (scale * self.tau)))
            total += weight
            if weight == total or self.rng.random() * total < weight:
                chosen = ball
        return chosen

    def value(self, h, x, y):
        """Return V(y) of the state y that step h led to from x; a pole that fell is no exception."""
        if self.algorithm == "AQL" and h + 1 == self.H:
            return 0.0
        v = min(float(self.H), self.at(h + 1).best(y).q)
        if self.algorithm == "SPAQL-TS":
            ratio = self.distance(x) / self.lam
            v *= math.exp(-(ratio * ratio))
        return v

    def distance(self, x):
        """Return the distance of a state to the reference state."""
        largest = squares = 0.0
        for a, b in zip(x, self.reference, strict=True):
            largest = max(largest, abs(a - b))
            squares += (a - b) * (a - b)  # not sum(), which since Python 3.12 rounds in its own way
        return math.sqrt(squares) if self.rules.distance == "euclidean" else largest

    def train(self):
        """Learn from one episode and return its number of steps."""
        x, h, over = self.reset(), 0, False
        while h < self.H and not over:
            partition = self.at(h)
            ball = partition.best(x) if self.algorithm == "AQL" else self.boltzmann_sample(partition.relevant(x))
            y, reward, terminated, truncated = self.step(self.draw_action(ball))
            over = terminated or truncated
            ball.visits += 1
            v = ball.visits
            alpha = (self.H + 1) / (self.H + v)
            target = reward + self.discount * self.value(h, x, y) + self.xi / math.sqrt(v)
            ball.q = (1 - alpha) * ball.q + alpha * target
            if v >= (1 / ball.radius) ** 2:
                partition.split(ball, ranks=self.rng if self.rules.ties == "random" else None)
                self.events["split"] += 1
            x, h = y, h + 1
        return h

    def evaluate(self, N):
        """Return the mean reward of N greedy rollouts of the trainee, and their number of steps."""
        total, steps = 0.0, 0
        for _ in range(N):
            x, h, rewards, over = self.reset(), 0, 0.0, False
            while h < self.H and not over:
                x, reward, terminated, truncated = self.step(self.draw_action(self.at(h).best(x)))
                rewards, h, over = rewards + reward, h + 1, terminated or truncated
            total, steps = total + rewards, steps + h
        return total / N, steps

    def keep_better(self, mean):
        """Keep the better agent, adapt the temperature and reset the trainee, as SPAQL does after an iteration."""
        now, best, machine = arms(self.trainee), arms(self.best), self.rules.reset == "machine"
        if self.seen == best and now != self.seen:
            self.seen = now
        if mean >= self.best_mean:
            self.events["as good" if mean == self.best_mean else "improved"] += 1
            self.best, self.best_mean = [partition.copy() for partition in self.trainee], mean
            self.tau, self.u = self.tau_min, self.u**self.d
            self.events["improved with an old number seen"] += machine and self.seen not in (best, now)
            return
        changed = (self.seen if machine else now) != best
        if self.rules.heating == "always" or (changed and self.tau < 10):
            self.tau *= self.u
            self.events["heated"] += 1
        else:
            self.events["too hot to heat" if changed else "no split to heat for"] += 1
        splits = self.trainee[0].splits - self.best[0].splits
        due = (changed and now != self.seen) if machine else splits > 2
        if due:
            self.trainee, self.tau, self.seen = [partition.copy() for partition in self.best], self.tau_min, best
            self.events["reset"] += 1

    def learn(self, iterations, N):
        """Train and evaluate; SPAQL evaluates once before, and the first row of the history counts those steps."""
        extra = 0
        if self.algorithm != "AQL":
            self.best_mean, extra = self.evaluate(N)
            self.best = [partition.copy() for partition in self.trainee]
        for _ in range(iterations):
            steps, tau = self.train(), self.tau
            mean, evaluation_steps = self.evaluate(N)
            trainee_arms = arms(self.trainee)
            if self.algorithm == "AQL":
                self.best_mean = mean
            else:
                self.keep_better(mean)
            self.history.append(
                {
                    "rewards": self.best_mean,
                    "arms": arms(self.best),
                    "evaluations": mean,
                    "trainee_arms": trainee_arms,
                    "tau": tau,
                    "steps": steps,
                    "evaluation_steps": evaluation_steps + extra,
                }
            )
            extra = 0
        return self


def arms(partitions):
    return sum(len(partition.leaves()) for partition in partitions)
