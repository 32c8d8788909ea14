"""Two ideas that the paper leaves for later: updates passed to neighbouring balls, and a linear mapping in each cell.

`python -m spaql.paper.audit.ideas` makes `results/ideas.json` again, in some minutes on one core.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from spaql.agent import Agent
from spaql.compiling import either, entry, inner, records
from spaql.loop import conclude, rollouts
from spaql.paper.audit.ends import earned
from spaql.paper.audit.kept import write_cells
from spaql.paper.runs.algorithms import untrained
from spaql.paper.runs.grid import make_jobs
from spaql.paper.runs.job import Job, seeds
from spaql.paper.studies import BOTH, LONG_XI
from spaql.partition import CELLS, NONE, add_cells, draw_action, locate, make_room, split, update
from spaql.rules import HISTORY, Rules
from spaql.systems import ENDED, reset, room, step
from spaql.updates import bonus, choose, learn_from, learning_rate, value

AGENTS = 20
WEIGHT = 0.5  # of a neighbour's update beside the ball's own

# ---------------------------------------------------------------------------------------------------------------------
# Neighbours: SPAQL, but the balls of the same size beside the one that was visited learn from the visit, too.


@inner
def holder(p, x, action):
    """The ball that holds a state and an action, which is one or, on the upper border of the actions, none."""
    cell = locate(p.cells, p.axes, 0, x)
    while cell > NONE:
        ball = p.cells[cell].first
        while ball > NONE:
            inside = True
            for i in range(len(action)):
                inside = inside and p.low[ball, i] <= action[i] < p.high[ball, i]
            if inside:
                return ball
            ball = p.balls[ball].next
        cell = p.cells[cell].parent
    return NONE


@entry
def pass_on(p, learner, h, ball, x, action, y, reward, weight):
    """Let the neighbours of a ball learn from its visit at (x, action): the same target, a smaller step, no visit."""
    depth = p.cells[p.balls[ball].cell].depth
    points, actions = x.copy(), action.copy()
    own = len(x)
    for i in range(own + (0 if learner.discrete else len(action))):
        for side in (-1.0, 1.0):
            moved, place = (points, i) if i < own else (actions, i - own)
            before = moved[place]
            moved[place] = before + side * 2.0 ** (1 - depth)
            other = holder(p, points, actions) if abs(moved[place]) < 1.0 else NONE
            moved[place] = before
            if other > NONE and p.cells[p.balls[other].cell].depth == depth:
                visits = p.balls[other].visits + 1
                alpha = weight * learning_rate(learner.H, visits)
                future = learner.discount * value(p.balls, p.cells, p.axes, learner, h, x, y)
                target = reward + future + bonus(learner.xi, visits)
                update(p.balls, p.cells, 2 ** len(p.axes), other, (1.0 - alpha) * p.balls[other].q + alpha * target)


@either
def train_sharing(world, start, p, learner, tau, weight, rng):
    """Play one episode and learn from each of its steps, neighbours included; return partition and number of steps."""
    state, x, y = room(world), np.empty(len(p.axes)), np.empty(len(p.axes))
    action, taken = np.empty(p.low.shape[1]), np.empty(p.low.shape[1])
    reset(world, state, start, x)
    for h in range(learner.limit):
        ball = choose(p.balls, p.cells, p.axes, learner, h, x, tau, rng)
        draw_action(p.low, p.high, ball, world.space, rng, action)
        taken[:] = action
        reward, over = step(world, state, action, y)
        due = learn_from(p.balls, p.cells, p.axes, learner, h, ball, x, y, reward, over == ENDED)
        if weight > 0.0:
            pass_on(p, learner, h, ball, x, taken, y, reward, weight)
        if due:
            p = split(p, ball, learner.discrete, learner.random_ties, rng)
        x[:] = y
        if over:
            break
    return p, h + 1


def with_neighbours(job: Job, weight: float = WEIGHT) -> Agent:
    """Return SPAQL's agent of a job, trained with a weight for neighbours; with none it is SPAQL's own."""
    agent, N = untrained(job), job.evaluations
    status, rewards, steps = agent._status, np.empty(N), np.empty(N, np.int64)
    agent._history = records(job.iterations, HISTORY)
    while status["iteration"][0] < job.iterations:
        if status["iteration"][0] >= 0:
            (start,) = agent._world.starts(1)
            arguments = agent._trainee, agent._learner, status["tau"][0], weight, agent._rng
            agent._trainee, status["steps"] = agent._world.call(train_sharing, start, *arguments)
        starts = agent._world.starts(N)
        agent._world.call(rollouts, starts, agent._trainee, agent._learner, False, agent._rng, rewards, steps)
        status["total"], status["evaluation_steps"] = sum(rewards), status["evaluation_steps"] + steps.sum()
        agent._trainee, agent._best = conclude(agent._trainee, agent._best, agent._learner, N, status, agent._history)
    return agent


# ---------------------------------------------------------------------------------------------------------------------
# Linear mappings: only states are partitioned, and the actions of a cell are linear in the state.  Nothing is left that
# an estimate could rank, so the mappings are found by SPAQL's other half, the search.


@entry
def map_linearly(cells, axes, gains, x, action):
    """Write the action at a state: the mappings of its cell and of that cell's ancestors, added; return the cell."""
    leaf = cell = locate(cells, axes, 0, x)
    action[:] = 0.0
    while cell > NONE:
        for i in range(len(action)):
            action[i] += gains[cell, i, len(axes)]
            for j in range(len(axes)):
                action[i] += gains[cell, i, j] * x[j]
        cell = cells[cell].parent
    return leaf


@either
def play_linear(world, starts, limit, cells, axes, gains, visits, returns):
    """Play an episode from each start, and count the visits to each cell."""
    state, x, action = room(world), np.empty(len(axes)), np.empty(gains.shape[1])
    for episode in range(len(starts)):
        reset(world, state, starts[episode], x)
        total = 0.0
        for _ in range(limit):
            visits[map_linearly(cells, axes, gains, x, action)] += 1
            for i in range(len(action)):
                action[i] = min(1.0, max(-1.0, action[i]))
                if world.space.actions > 0:
                    action[i] = min(int((action[i] + 1.0) / 2.0 * world.space.actions), world.space.actions - 1)
            reward, over = step(world, state, action, x)
            total += reward
            if over:
                break
        returns[episode] = total


@entry
def divide(p, cell):
    """Halve a cell; return the partition, which may be a roomier one."""
    halves = 2 ** len(p.axes)
    p = make_room(p, 0, halves)
    add_cells(p.cells, cell, p.counts[CELLS], halves)
    p.counts[CELLS] += halves
    return p


class Linear:
    """A search over mappings that are linear in each cell, with as many episodes as SPAQL has.

    A training episode counts visits, and cells split by SPAQL's rule.  Then one cell changes its mapping at random: one
    on the way from the root to a cell of that episode, so that changes are of any size.  The change stays if N rollouts
    earn no less than the best so far.
    """

    def __init__(self, job: Job):
        agent: Any = untrained(job)
        self.world, self.limit, self.p = agent._world, agent._learner.limit, agent._trainee
        self.rng = np.random.default_rng(seeds(job)[0].spawn(1)[0])
        self.gains = np.zeros((1, self.p.low.shape[1], len(self.p.axes) + 1))
        self.visits = np.zeros(1, np.int64)
        self.best = self.play(self.world.starts(job.evaluations), self.gains)[0].mean()
        for _ in range(job.iterations):
            self.iterate(job.evaluations)

    def play(self, starts: np.ndarray, gains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what episodes earn, and how often they visit each cell."""
        returns, visits = np.empty(len(starts)), np.zeros(len(gains), np.int64)
        self.world.call(play_linear, starts, self.limit, self.p.cells, self.p.axes, gains, visits, returns)
        return returns, visits

    def iterate(self, N: int) -> None:
        """Play a training episode, try a change, and keep it if it earns no less."""
        _, visits = self.play(self.world.starts(1), self.gains)
        self.visits += visits
        for cell in np.flatnonzero(visits):
            if self.visits[cell] >= 4.0 ** self.p.cells["depth"][cell]:
                self.p = divide(self.p, cell)
                halves = int(self.p.counts[CELLS]) - len(self.gains)
                self.visits = np.append(self.visits, np.full(halves, self.visits[cell]))
                self.gains = np.concatenate((self.gains, np.zeros((halves, *self.gains.shape[1:]))))
        way = [int(self.rng.choice(len(visits), p=visits / visits.sum()))]
        while (parent := int(self.p.cells["parent"][way[-1]])) != NONE:
            way.append(parent)
        changed = self.gains.copy()
        shape = changed.shape[1:]
        changed[self.rng.choice(way)] += 10.0 ** self.rng.uniform(-2.0, 2.0, shape) * self.rng.normal(size=shape)
        mean = self.play(self.world.starts(N), changed)[0].mean()
        if mean >= self.best:
            self.best, self.gains = mean, changed

    def evaluate(self, episodes: int, seed: Any) -> np.ndarray:
        """Return what fresh episodes earn."""
        return self.play(self.world.draw(np.random.default_rng(seed), episodes), self.gains)[0]


# ---------------------------------------------------------------------------------------------------------------------

IDEAS: dict[str, tuple[Callable[[Job], Any], Rules]] = {
    "neighbours": (with_neighbours, Rules()),
    "neighbours, last kept": (with_neighbours, Rules(kept="last")),
    "linear": (Linear, Rules()),
}


def tried(agents: int = AGENTS) -> list[tuple[str, Job]]:
    """Return the agents of every idea on both systems."""
    return [
        (idea, job)
        for system, (idea, (_, rules)) in itertools.product(BOTH, IDEAS.items())
        for job in make_jobs(["SPAQL"], [system], [LONG_XI[system]["SPAQL"]], agents, 2000, 20, rules=rules)
    ]


def measure(idea: str, job: Job) -> dict[str, Any]:
    """Train an agent, and return what it earns on fresh episodes."""
    return {"system": job.system, "idea": idea, "agent": job.agent, "fresh": earned(IDEAS[idea][0](job), job)}


if __name__ == "__main__":
    pairs = tried()
    write_cells("ideas", itertools.starmap(measure, pairs), len(pairs), ["system", "idea"])
