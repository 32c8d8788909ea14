"""The compiled systems against Gymnasium's own, bit for bit, and the map to the standard space against the paper."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql.spaces import make_space, standardise
from spaql.systems import REGISTRY, begin, compiled_world, make_env, move, observe, space_of
from spaql.systems.arithmetic import principal, square, square32
from spaql.systems.interpreted import InterpretedWorld
from spaql.systems.twins import check_twin
from tests.conftest import same_sines

IDS = [env_id for system in REGISTRY.values() for env_id in system.titles]
IDS = [env_id for env_id in IDS if "Dummies" not in env_id or env_id.endswith("6-v1")]  # of dummies, the most

pytestmark = pytest.mark.filterwarnings("ignore:.*out of date.*")


@same_sines
@pytest.mark.parametrize("env_id", IDS)
def test_equals_gymnasium_to_the_last_bit(env_id):
    # Actions outside their bounds, too: Gymnasium clips the torque.
    assert check_twin(env_id, 3000, seed=7, reach=1.2) >= 3


def test_angle_and_square_keep_the_bits_of_numpy():
    rng = np.random.default_rng(0)
    for angle in np.concatenate((rng.uniform(-50, 50, 5000), [0.0, math.pi, -math.pi, 3 * math.pi, -3 * math.pi])):
        assert principal(angle) == ((angle + np.pi) % (2 * np.pi)) - np.pi
        assert square(angle, 2.0) == np.float64(angle) ** 2
    for torque in rng.uniform(-2, 2, 5000).astype(np.float32):
        assert square32(torque, 2.0) == torque**2


def test_v0_moves_with_the_speed_before_its_clip():
    # From θ = π/2 at 7.9 rad/s with full torque: 7.9 + (15 sin(π/2) + 3·2)·0.05 = 8.95, clipped to 8.
    for env_id, moved in (("Pendulum-v1", 8.0), ("spaql/Pendulum-v0", 8.95)):
        env = make_env(env_id)
        env.reset(seed=0)
        env.unwrapped.state = np.array([math.pi / 2, 7.9])
        env.step(np.array([2.0], np.float32))
        assert env.unwrapped.state == pytest.approx([math.pi / 2 + moved * 0.05, 8.0])


def test_scaled_rewards_are_between_0_and_1():
    # The worst state, hanging at full speed with full torque, and the best, at rest upright.
    env = make_env("spaql/PendulumScaled-v1")
    env.reset(seed=0)
    for state, torque, reward in ((np.array([-math.pi, 8.0]), 2.0, 0.0), (np.zeros(2), 0.0, 1.0)):
        env.unwrapped.state = state
        assert env.step(np.array([torque], np.float32))[1] == pytest.approx(reward, abs=1e-9)


def test_the_papers_map_of_pendulum_and_cartpole():
    x = np.zeros(3)
    standardise(space_of(make_env("Pendulum-v1")), np.array([0.5, -0.25, 4.0]), x)
    assert x == pytest.approx([0.5, -0.25, 0.5])
    x = np.zeros(4)
    standardise(space_of(make_env("CartPole-v0")), np.array([2.4, 3.0, 0.1, -2.0]), x)
    # φ_m(y) = 2 / (1 + exp(-2 m y)) - 1 = tanh(m y)
    assert x == pytest.approx([0.5, math.tanh(3 / 240), 0.1 / (24 * math.pi / 180), math.tanh(-2 / 21)])


def step_from(env, values, action):
    """A step of Gymnasium's own from a state, as it keeps them."""
    inner = env.unwrapped
    inner.reset(seed=0)
    inner.state = values
    observation, reward, over, _, _ = inner.step(action)
    return np.array(inner.state, float), observation, float(reward), over


# Every constant that a system reads of its environment.
OTHER_CONSTANTS = {
    "Pendulum-v1": {"g": 9.3, "m": 1.3, "l": 0.7, "dt": 0.03, "max_speed": 5.1, "max_torque": 1.7},
    "CartPole-v1": {"gravity": 9.3, "masspole": 0.13, "total_mass": 1.7, "polemass_length": 0.07, "length": 0.7}
    | {"force_mag": 7.1, "tau": 0.03, "x_threshold": 1.1, "theta_threshold_radians": 0.11},
    "MountainCar-v0": {"force": 0.0013, "gravity": 0.0031, "min_position": -1.1, "max_position": 0.55}
    | {"max_speed": 0.0613, "goal_position": 0.3, "goal_velocity": 0.011},
    "MountainCarContinuous-v0": {"power": 0.0021, "min_action": -0.3, "max_action": 0.7, "min_position": -1.1}
    | {"max_position": 0.55, "max_speed": 0.0613, "goal_position": 0.3, "goal_velocity": 0.011},
    "Acrobot-v1": {"LINK_MASS_1": 1.3, "LINK_MASS_2": 0.7, "LINK_LENGTH_1": 0.9, "LINK_COM_POS_1": 0.37}
    | {"LINK_COM_POS_2": 0.61, "LINK_MOI": 0.83, "dt": 0.13, "MAX_VEL_1": 2.3, "MAX_VEL_2": 7.1}
    | {"AVAIL_TORQUE": [-2.0, -0.5, 1.0]},
}


@same_sines
@pytest.mark.parametrize(
    "changed", [pytest.param(False, marks=pytest.mark.long, id="usual"), pytest.param(True, id="changed")]
)
@pytest.mark.parametrize("env_id", OTHER_CONSTANTS)
def test_a_step_from_anywhere_equals_gymnasiums(env_id, changed):
    """At walls and goals, too, where no random actions lead, and with other constants than the usual ones."""
    env, rng = make_env(env_id), np.random.default_rng(3)
    for name, value in OTHER_CONSTANTS[env_id].items() if changed else ():
        assert getattr(env.unwrapped, name) != value
        setattr(env.unwrapped, name, value)
    world = compiled_world(env, space_of(env))
    system, constants = world.system, world.model.constants
    low, high = 1.2 * np.transpose([variable.ends for variable in system.state])
    state, seen, ends = np.empty(system.numbers), np.empty(len(system.observed)), set()
    for i, values in enumerate(rng.uniform(low, high, (1000, len(low)))):
        # From the first step on MountainCarContinuous keeps its state as float32.
        later = env_id == "MountainCarContinuous-v0" and i % 2 == 1
        values = values.astype(np.float32) if later else values
        if world.model.space.actions:
            action = rng.integers(world.model.space.actions)
        else:
            action = (1.2 * rng.uniform(env.action_space.low, env.action_space.high)).astype(np.float32)
        expected = step_from(env, values, action)
        begin(constants, values.astype(float), state)
        if later:
            state[2] = 0.0
        reward, over = move(constants, state, np.array([action], float).ravel())
        observe(constants, state, seen)
        for mine, theirs in zip((state[: len(low)], seen, reward, over), expected, strict=True):
            assert np.array_equal(mine, theirs), (values, action)
        ends.add(over)
    assert ends == ({False} if env_id == "Pendulum-v1" else {False, True})


POLE = 12 * 2 * math.pi / 360  # where CartPole ends
PUSH = np.array([1.0], np.float32)
AT_BOUNDS = [
    *(("CartPole-v1", {}, (x, 0.0, 0.0, 0.0), 0, False) for x in (2.4, -2.4)),
    *(("CartPole-v1", {}, (0.0, 0.0, theta, 0.0), 1, False) for theta in (POLE, -POLE)),
    *(("CartPole-v1", {}, (x, 0.0, 0.0, 0.0), 0, True) for x in (np.nextafter(2.4, 3), np.nextafter(-2.4, -3))),
    ("MountainCar-v0", {"goal_position": 0.6}, (0.59, 0.05), 2, True),  # where the car is held back
    ("MountainCar-v0", {"goal_velocity": 0.07}, (0.5, 0.0699), 2, True),  # the speed that it is held to
    ("MountainCarContinuous-v0", {"goal_position": 0.6}, (0.59, 0.05), PUSH, True),
    ("MountainCarContinuous-v0", {"goal_velocity": 0.07}, (0.5, 0.0699), PUSH, True),
]


@same_sines
@pytest.mark.parametrize(("env_id", "changes", "values", "action", "ended"), AT_BOUNDS)
def test_an_episode_ends_at_its_bounds_as_gymnasiums_does(env_id, changes, values, action, ended):
    """Just there, where no random state is: for CartPole that is still inside, for the cars it is the goal."""
    env = make_env(env_id)
    for name, value in changes.items():
        setattr(env.unwrapped, name, value)
    world = compiled_world(env, space_of(env))
    state, values = np.empty(world.system.numbers), np.array(values)
    begin(world.model.constants, values, state)
    found = move(world.model.constants, state, np.array([action], float).ravel())
    expected, _, *theirs = step_from(env, values, action)
    assert np.array_equal(state[: len(values)], expected)
    assert [*found] == theirs
    assert found[1] == ended


VARIANTS = [
    ("CartPole-v1", "_sutton_barto_reward", True),
    ("CartPole-v1", "kinematics_integrator", "semi-implicit"),
    ("CartPole-v1", "gravity", np.float32(9.8)),
    ("CartPole-v1", "action_space", spaces.Discrete(3)),
    ("CartPole-v1", "step", lambda action: None),
    ("MountainCar-v0", "force", np.float32(0.001)),
    ("MountainCar-v0", "action_space", spaces.Discrete(3, start=1)),
    ("MountainCarContinuous-v0", "power", np.float64(0.0015)),
    ("MountainCarContinuous-v0", "action_space", spaces.Box(-1.0, 1.0, (1,), np.float64)),
    ("Acrobot-v1", "torque_noise_max", 0.1),
    ("Acrobot-v1", "book_or_nips", "nips"),
    ("Acrobot-v1", "AVAIL_TORQUE", [-1.0, 0.0, 2.0]),
    ("Acrobot-v1", "_terminal", lambda: False),
    ("Acrobot-v1", "LINK_MASS_1", np.array(1.0)),
    ("Pendulum-v1", "m", np.float64(1.0)),
]


@pytest.mark.parametrize(("env_id", "name", "value"), VARIANTS)
def test_a_variant_that_the_twin_does_not_cover_is_not_compiled(env_id, name, value):
    env = make_env(env_id)
    assert compiled_world(env, space_of(env)) is not None
    setattr(env.unwrapped, name, value)
    assert compiled_world(env, space_of(env)) is None


def test_other_wrappers_and_other_environments_are_not_compiled(opaque):
    for env in (opaque("CartPole-v0"), gym.make("CartPole-v1", sutton_barto_reward=True), gym.make("Drift-v0")):
        assert compiled_world(env, space_of(env)) is None


class Toy(gym.Env):
    def __init__(self, observed, acted=None, given=None):
        self.observation_space, self.action_space = observed, acted or spaces.Discrete(2)
        self.given = observed.sample() if given is None else given

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.given, {}

    def step(self, action):
        return self.given, 0.0, False, False, {}


BOX = spaces.Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("env", "error", "says"),
    [
        (Toy(spaces.Dict(a=BOX)), TypeError, "FlattenObservation"),
        (Toy(spaces.Discrete(3)), TypeError, "must be a Box"),
        (Toy(BOX, spaces.Box(-np.inf, np.inf, (1,))), ValueError, "finite bounds"),
        (Toy(spaces.Box(0, 255, (84, 84, 3), np.uint8)), ValueError, "dimensions"),
        (Toy(spaces.Box(np.zeros(2, np.float32), np.array([1, 0], np.float32))), ValueError, "low < high"),
    ],
)
def test_spaces_we_cannot_handle_are_refused_with_a_reason(env, error, says):
    with pytest.raises(error, match=says):
        make_space(env)


def test_nan_is_refused_and_what_is_outside_the_bounds_is_clipped_with_one_warning():
    space = make_space(Toy(BOX))
    world = InterpretedWorld(Toy(BOX), space, 0)
    x = np.zeros(2)
    with pytest.raises(ValueError, match="NaN"):
        world._observe([0.0, math.nan], x)
    with pytest.raises(ValueError, match="expected 2"):
        world._observe([0.0], x)
    with pytest.warns(UserWarning, match="clipped"):
        world._observe([3.0, -0.5], x)
    assert x.tolist() == [1.0, -0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world._observe([-3.0, 0.5], x)
    assert x.tolist() == [-1.0, 0.5]
