"""Rules that an engineer writes down: they know the system's equations, and learn nothing."""

from collections.abc import Callable

import gymnasium as gym
import numpy as np
from scipy.linalg import solve_discrete_are

from spaql.paper.baselines.agent import Baseline
from spaql.paper.runs.batch import begin_batch, step_batch

Rule = Callable[[np.ndarray], np.ndarray]  # actions in the environment's units for observations, one row per episode


def energy_and_pd(env: gym.Env) -> Rule:
    """Pump the pendulum's energy up to that of standing upright; there, a proportional and derivative controller."""
    inner = env.unwrapped
    fall, most = 3 * inner.g / (2 * inner.l), inner.max_torque

    def rule(seen: np.ndarray) -> np.ndarray:
        cos, sin, speed = seen.T
        angle = np.arctan2(sin, cos)
        missing = fall * (1.0 - cos) - speed**2 / 2.0  # energy, by moment of inertia, that upright has and this has not
        swing = np.where(missing > 0.0, most, -most) * np.where(speed >= 0.0, 1.0, -1.0)
        hold = -(10.0 * angle + 2.0 * speed)
        near = (np.abs(angle) < 0.6) & (np.abs(angle + 0.3 * speed) < 0.6)
        return np.clip(np.where(near, hold, swing), -most, most)

    return rule


def along_the_speed(place: int, low: float, high: float) -> Callable[[gym.Env], Rule]:
    """Push the way that one variable moves, as hard as possible: it takes energy up at every step."""
    return lambda env: lambda seen: np.where(seen[:, place] >= 0.0, high, low)


def linear_quadratic(env: gym.Env) -> Rule:
    """Balance the pole: the linear-quadratic regulator near the upright, rounded to one of two pushes."""
    gain = regulator(*linearised(env))
    return lambda seen: np.where(seen @ gain[0] < 0.0, 1.0, 0.0)


def linearised(env: gym.Env) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of cart and pole near the upright, x' = Ax + Bu, by Euler steps as Gymnasium takes them."""
    inner = env.unwrapped
    total, arm = inner.total_mass, inner.length * (4.0 / 3.0 - inner.masspole / inner.total_mass)
    turn, push = inner.gravity / arm, -1.0 / (total * arm)  # what angle and force add to the angular acceleration
    A = np.eye(4)
    A[0, 1] = A[2, 3] = inner.tau
    A[3, 2] = inner.tau * turn
    A[1, 2] = -inner.tau * inner.polemass_length * turn / total
    B = inner.tau * np.array([[0.0], [1.0 / total - inner.polemass_length * push / total], [0.0], [push]])
    return A, B


def regulator(A: np.ndarray, B: np.ndarray, effort: float = 1.0) -> np.ndarray:
    """Return the gain K of u = -Kx that minimises the sum of |x|² + effort |u|², from the Riccati equation."""
    R = effort * np.eye(B.shape[1])
    P = solve_discrete_are(A, B, np.eye(len(A)), R)
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)


def hovering(env: gym.Env) -> Rule:
    """Hover: the linear-quadratic regulator of both rotors' thrusts, each rounded to on or off."""
    inner = env.unwrapped
    A, B = np.eye(6), np.zeros((6, 2))
    A[:3, 3:] = inner.dt * np.eye(3)
    A[3, 2] = -inner.dt * inner.gravity
    B[4], B[5] = inner.dt, inner.dt * inner.arm / inner.inertia * np.array([-1.0, 1.0])
    gain = regulator(A, B, effort=0.1)

    def rule(seen: np.ndarray) -> np.ndarray:
        thrusts = inner.gravity / 2.0 - seen @ gain.T
        return (thrusts > inner.thrust / 2.0) @ np.array([1.0, 2.0])

    return rule


def both_poles(env: gym.Env) -> Rule:
    """Balance two poles: the linear-quadratic regulator near the upright, rounded to one of two pushes."""
    inner = env.unwrapped
    masses, lengths = np.array([inner.mass_1, inner.mass_2]), np.array([inner.length_1, inner.length_2])
    pull = -0.75 * inner.gravity * masses / (inner.cart + masses.sum() / 4.0)  # what each angle adds to the cart's
    A, B = np.eye(6), np.zeros((6, 1))
    A[:3, 3:] = inner.dt * np.eye(3)
    A[3, 1:3] = inner.dt * pull
    A[4:, 1:3] = inner.dt * 0.75 * (inner.gravity * np.eye(2) - pull) / lengths[:, None]
    B[3] = inner.dt / (inner.cart + masses.sum() / 4.0)
    B[4:, 0] = -0.75 * B[3] / lengths
    gain = regulator(A, B)
    return lambda seen: np.where(seen @ gain[0] < 0.0, 1.0, 0.0)


RULES: dict[str, Callable[[gym.Env], Rule]] = {  # by the name of the system
    "Pendulum": energy_and_pd,
    "MountainCar": along_the_speed(1, 0.0, 2.0),
    "MountainCarContinuous": along_the_speed(1, -1.0, 1.0),
    "Acrobot": along_the_speed(5, 0.0, 2.0),
    "CartPole": linear_quadratic,
    "Quadrotor": hovering,
    "TwoPoles": both_poles,
}


class ByHand(Baseline):
    """The rule of a system."""

    learns = False

    def learn(self, samples: int) -> "ByHand":
        """Do nothing."""
        return self

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts."""
        rule = RULES[self.world.system.name](self.env)
        count = len(starts)
        states = np.zeros((count, self.world.system.numbers))
        seen = np.zeros((count, self.env.observation_space.shape[0]), self.env.observation_space.dtype)
        rewards, over, returns = np.zeros(count), np.zeros(count, bool), np.zeros(count)
        self.world.call(begin_batch, starts, states, seen)
        for _ in range(self.limit):
            self.world.call(step_batch, states, rule(seen.astype(float)).reshape(-1, 1), seen, rewards, over)
            returns += rewards
        return returns
