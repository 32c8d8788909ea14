"""Two links and a motor at the joint between them: Gymnasium's Acrobot-v1."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.acrobot import AcrobotEnv

from spaql.compiling import python_or_jit
from spaql.systems.arithmetic import square
from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

GRAVITY = 9.8  # which Gymnasium does not read from the environment


class Acrobot(NamedTuple):
    """The constants of both links.  The state is both angles, both speeds, then cosine and sine of both angles."""

    dt: float
    inertia: float  # of each link, around its centre of mass
    inertia_1: float  # m₁c₁², of the first link's mass around the fixed joint; cᵢ is where a link's centre of mass is
    inertia_2: float  # m₂c₂² and the second link's own
    mass_2: float
    squares: float  # l₁² + c₂²
    square_2: float  # c₂²
    arms: float  # l₁c₂
    coupling: float  # m₂l₁c₂
    weight_1: float  # (m₁c₁ + m₂l₁)g
    weight_2: float  # m₂c₂g
    max_speed_1: float
    max_speed_2: float
    torque: float  # of action 0, which each next action adds `torque_step` to
    torque_step: float
    two: float  # 2.0, see `arithmetic.square`


def begin(constants, start, state):
    """Begin with both angles and speeds, and the cosines and sines of `draw_starts` if the start has them."""
    for i in range(start.size):
        state[i] = start[i]
    if start.size == 4:
        state[4], state[5] = math.cos(start[0]), math.sin(start[0])
        state[6], state[7] = math.cos(start[1]), math.sin(start[1])


def observe(constants, state, observation):
    """Write cosine and sine of both angles and both speeds, rounded to the float32 Gymnasium reports."""
    for i in range(4):
        observation[i] = np.float32(state[4 + i])
    observation[4], observation[5] = np.float32(state[2]), np.float32(state[3])


@python_or_jit
def accelerations(constants, theta_1, theta_2, speed_1, speed_2, torque):
    """The angular accelerations of both links, in the order of Gymnasium's operations (those of Sutton and Barto)."""
    cos, sin = math.cos(theta_2), math.sin(theta_2)
    d1 = constants.inertia_1 + constants.mass_2 * (constants.squares + 2.0 * constants.arms * cos)
    d1 = d1 + constants.inertia + constants.inertia
    d2 = constants.mass_2 * (constants.square_2 + constants.arms * cos) + constants.inertia
    phi_2 = constants.weight_2 * math.cos(theta_1 + theta_2 - math.pi / 2.0)
    phi_1 = (
        -constants.coupling * square(speed_2, constants.two) * sin
        - 2.0 * constants.coupling * speed_2 * speed_1 * sin
        + constants.weight_1 * math.cos(theta_1 - math.pi / 2.0)
        + phi_2
    )
    second = (torque + d2 / d1 * phi_1 - constants.coupling * square(speed_1, constants.two) * sin - phi_2) / (
        constants.inertia_2 - square(d2, constants.two) / d1
    )
    return -(d2 * second + phi_1) / d1, second


@python_or_jit
def wrapped(angle):
    """The angle between -π and π, by whole turns."""
    while angle > math.pi:
        angle = angle - 2.0 * math.pi
    while angle < -math.pi:
        angle = angle + 2.0 * math.pi
    return angle


def step(constants, state, action):
    """Apply a torque of -1, 0 or 1 Nm at the joint, for one step of the classical Runge-Kutta method."""
    torque = constants.torque + constants.torque_step * action[0]
    dt, half, sixth = constants.dt, constants.dt / 2.0, constants.dt / 6.0
    a, b, c, d = state[0], state[1], state[2], state[3]
    e1, f1 = accelerations(constants, a, b, c, d, torque)
    c2, d2 = c + half * e1, d + half * f1
    e2, f2 = accelerations(constants, a + half * c, b + half * d, c2, d2, torque)
    c3, d3 = c + half * e2, d + half * f2
    e3, f3 = accelerations(constants, a + half * c2, b + half * d2, c3, d3, torque)
    c4, d4 = c + dt * e3, d + dt * f3
    e4, f4 = accelerations(constants, a + dt * c3, b + dt * d3, c4, d4, torque)
    theta_1 = wrapped(a + sixth * (c + 2.0 * c2 + 2.0 * c3 + c4))
    theta_2 = wrapped(b + sixth * (d + 2.0 * d2 + 2.0 * d3 + d4))
    speed_1 = c + sixth * (e1 + 2.0 * e2 + 2.0 * e3 + e4)
    speed_2 = d + sixth * (f1 + 2.0 * f2 + 2.0 * f3 + f4)
    state[0], state[1] = theta_1, theta_2
    state[2] = min(constants.max_speed_1, max(-constants.max_speed_1, speed_1))
    state[3] = min(constants.max_speed_2, max(-constants.max_speed_2, speed_2))
    state[4], state[5] = math.cos(theta_1), math.sin(theta_1)
    state[6], state[7] = math.cos(theta_2), math.sin(theta_2)
    up = -state[4] - math.cos(theta_2 + theta_1) > 1.0
    return (0.0 if up else -1.0), up


def draw_starts(constants: Acrobot, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw angles and speeds within 0.1 of zero, as float32; NumPy's cosines and sines of these are float32, too."""
    drawn = rng.uniform(-0.1, 0.1, size=(episodes, 4)).astype(np.float32)
    waves = [function(drawn[:, i]) for i in (0, 1) for function in (np.cos, np.sin)]
    return np.column_stack((drawn, *waves)).astype(float)


ATTRIBUTES = (
    *("LINK_MASS_1", "LINK_MASS_2", "LINK_LENGTH_1", "LINK_COM_POS_1", "LINK_COM_POS_2", "LINK_MOI"),
    *("dt", "MAX_VEL_1", "MAX_VEL_2"),
)


def describe(env: gym.Env) -> Acrobot | None:
    """Return the constants of both links; None with noise, the other equations, or torques at uneven distances."""
    inner = env.unwrapped
    torques = [float(torque) for torque in inner.AVAIL_TORQUE]
    steps = [torques[i + 1] - torques[i] for i in range(len(torques) - 1)]
    usual = env.action_space == spaces.Discrete(len(torques)) and steps and steps == steps[:1] * len(steps)
    if not usual or inner.torque_noise_max > 0 or inner.book_or_nips == "nips":
        return None
    if (numbers := plain_numbers(env, ATTRIBUTES)) is None:
        return None
    m1, m2, l1, c1, c2, inertia, dt, max_speed_1, max_speed_2 = numbers
    return Acrobot(
        dt=dt,
        inertia=inertia,
        inertia_1=m1 * c1**2,
        inertia_2=m2 * c2**2 + inertia,
        mass_2=m2,
        squares=l1**2 + c2**2,
        square_2=c2**2,
        arms=l1 * c2,
        coupling=m2 * l1 * c2,
        weight_1=(m1 * c1 + m2 * l1) * GRAVITY,
        weight_2=m2 * c2 * GRAVITY,
        max_speed_1=max_speed_1,
        max_speed_2=max_speed_2,
        torque=torques[0],
        torque_step=steps[0],
        two=2.0,
    )


def angle(place: int, sign: str, words: str, mark: float) -> Variable:
    """Return the angle of a link."""
    ends, formula = (-math.pi, math.pi), rf"$\theta_{place}$"
    return Variable(f"theta_{place}", f"θ{sign}", "rad", ends, formula, words, marks=(mark,), period=2 * math.pi)


SPEEDS = (
    Variable("theta_1_dot", "θ̇₁", "rad/s", (-4 * math.pi, 4 * math.pi), r"$\dot\theta_1$"),
    Variable("theta_2_dot", "θ̇₂", "rad/s", (-9 * math.pi, 9 * math.pi), r"$\dot\theta_2$"),
)

register(
    System(
        name="Acrobot",
        originals=(AcrobotEnv,),
        constants=Acrobot,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        # Upright is both links in a line, the first one turned by π from where it hangs.
        state=(angle(1, "₁", "angle of the first link", math.pi), angle(2, "₂", "angle at the joint", 0.0), *SPEEDS),
        observed=(
            Variable("cos_theta_1", "cos θ₁", "", (-1.0, 1.0), r"$\cos\theta_1$"),
            Variable("sin_theta_1", "sin θ₁", "", (-1.0, 1.0), r"$\sin\theta_1$"),
            Variable("cos_theta_2", "cos θ₂", "", (-1.0, 1.0), r"$\cos\theta_2$"),
            Variable("sin_theta_2", "sin θ₂", "", (-1.0, 1.0), r"$\sin\theta_2$"),
            *SPEEDS,
        ),
        action=Variable("torque", "u", "Nm", (-1.0, 1.0), "$u$"),
        size=8,
        choices=lambda env: tuple(float(torque) for torque in env.unwrapped.AVAIL_TORQUE),
        titles={"Acrobot-v1": "Acrobot"},
        reference=(-1.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        angles={f"theta_{i}": (f"cos_theta_{i}", f"sin_theta_{i}") for i in (1, 2)},
        telling=(0, 2),
    )
)
