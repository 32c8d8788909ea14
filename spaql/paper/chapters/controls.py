"""SPAQL and SPAQL-TS with one part taken away or put right, to see what that part is worth.

A control changes how a training episode teaches, and perhaps which agent is kept.  Rollouts, and what an iteration's
end decides, are the core's.
"""

from typing import Any, NamedTuple

import numpy as np

from spaql import SPAQL, SPAQLTS
from spaql.agent import Agent
from spaql.compiling import cached_jit, python_or_jit
from spaql.loop import Run, advance
from spaql.partition import BALLS, SPLITS, Partition, copy, draw_action, split, update
from spaql.systems import ENDED, reset, room, step
from spaql.updates import bonus, choose, learning_rate, value


class Control(NamedTuple):
    """What is changed; the defaults change nothing."""

    delete_reward: bool = False  # every update learns from a reward of zero; only the rollouts see the real ones
    keep_last: bool = False  # each iteration's agent replaces the one before, whatever it earned: no search
    random: bool = False  # each iteration's agent is a new partition with as many splits and random estimates
    zero_at_end: bool = False  # a state in which the episode has ended (not by time) has the value zero
    shrinking_cap: bool = False  # a value is at most the number of steps that are left, not H


CONTROLS = {
    "reward deleted": Control(delete_reward=True),
    "last kept": Control(keep_last=True),
    "reward deleted, last kept": Control(delete_reward=True, keep_last=True),
    "random partitions": Control(random=True),
    "zero at the end, last kept": Control(zero_at_end=True, keep_last=True),
    "shrinking cap, last kept": Control(shrinking_cap=True, keep_last=True),
}


@cached_jit
def learn(p, learner, control, h, ball, x, y, reward, ended):
    """Learn from one step under a control (eqn:qval_update); return whether the ball must split."""
    visits = p.balls[ball].visits + 1
    p.balls[ball].visits = visits
    if not control.random:
        future = learner.discount * value(p.balls, p.cells, p.axes, learner, h, x, y)
        if control.shrinking_cap:
            future = min(future, learner.discount * (learner.H - h - 1.0))
        if control.zero_at_end and ended:
            future = 0.0
        alpha = learning_rate(learner.H, visits)
        target = (0.0 if control.delete_reward else reward) + future + bonus(learner.xi, visits)
        q = (1.0 - alpha) * p.balls[ball].q + alpha * target
        update(p.balls, p.cells, 2 ** len(p.axes), ball, q)
    return visits >= 4 ** int(p.cells[p.balls[ball].cell].depth)


@python_or_jit
def train(world, start, p, learner, control, tau, rng):
    """Play one episode and learn from each of its steps; return the partition and the number of steps."""
    state, x, y, action = room(world), np.empty(len(p.axes)), np.empty(len(p.axes)), np.empty(p.low.shape[1])
    reset(world, state, start, x)
    for h in range(learner.limit):
        ball = choose(p.balls, p.cells, p.axes, learner, h, x, tau, rng)
        draw_action(p.low, p.high, ball, world.space, rng, action)
        reward, over = step(world, state, action, y)
        if learn(p, learner, control, h, ball, x, y, reward, over == ENDED):
            first = p.counts[BALLS]
            p = split(p, ball, learner.discrete, learner.random_ties, rng)
            if control.random:
                draw_estimates(p, first, learner.H, rng)
        for i in range(len(p.axes)):
            x[i] = y[i]
        if over:
            break
    return p, h + 1


@cached_jit
def draw_estimates(p, first, H, rng):
    """Draw the estimates of the balls from `first` on between 0 and H."""
    for ball in range(first, p.counts[BALLS]):
        update(p.balls, p.cells, 2 ** len(p.axes), ball, H * rng.random())


@cached_jit
def random_partition(p, splits, learner, rng):
    """Split balls drawn at random in a partition of one ball, and draw all estimates; return the partition."""
    p = copy(p)
    draw_estimates(p, 0, learner.H, rng)
    whole = np.ones(1 + splits * 2 ** len(p.axes) * 2 ** p.low.shape[1], np.bool_)
    for _ in range(splits):
        ball = 0
        while not whole[ball]:
            ball = int(rng.random() * p.counts[BALLS])
        whole[ball] = False
        p.balls[ball].visits = 4 ** int(p.cells[p.balls[ball].cell].depth)  # which are due
        first = p.counts[BALLS]
        p = split(p, ball, learner.discrete, learner.random_ties, rng)
        draw_estimates(p, first, learner.H, rng)
    return p


class Controlled(Agent):
    """An agent under a control: a training episode here, then the core's rollouts and its end of an iteration."""

    def __init__(self, *given: Any, control: str, **parameters: Any):
        if control not in CONTROLS:
            raise ValueError(f"control must be one of {', '.join(map(repr, CONTROLS))}, not {control!r}")
        super().__init__(*given, **parameters)
        self.control = CONTROLS[control]
        self._root: Partition = copy(self._trainee)

    @property
    def _keeps_best(self) -> bool:
        return not self.control.keep_last

    def _advance(self, starts: np.ndarray, N: int) -> None:
        status, done = self._status[0], 0
        while done < len(starts):
            if status["episode"] == 0:
                learner, rng = self._learner, self._rng
                self._trainee, status["steps"] = self._world.call(
                    train, starts[done], self._trainee, learner, self.control, status["tau"], rng
                )
                if self.control.random:
                    self._trainee = random_partition(self._root, int(self._trainee.counts[SPLITS]), learner, rng)
                status["episode"] = 1
                done += 1
                continue
            rollouts = starts[done : done + N + 1 - status["episode"]]
            best = self._trainee if self.control.keep_last else self._best
            run = Run(self._learner, self._trainee, best, self._status, self._history)
            self._trainee, self._best = self._world.call(advance, rollouts, N, run, self._rng)
            done += len(rollouts)
            if self.control.keep_last and status["episode"] == 0 and status["iteration"] > 0:
                # The next iteration is compared with this one, not with the best so far.
                row = self._history[status["iteration"] - 1]
                row["rewards"] = status["best"] = row["evaluations"]


class ControlledSPAQL(Controlled, SPAQL):
    """SPAQL under a control."""


class ControlledSPAQLTS(Controlled, SPAQLTS):
    """SPAQL-TS under a control."""


CONTROLLED = {"SPAQL": ControlledSPAQL, "SPAQL-TS": ControlledSPAQLTS}
