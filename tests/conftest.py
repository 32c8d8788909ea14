import gymnasium as gym
import pytest


class Opaque(gym.Wrapper):
    """A wrapper of a user's own: nothing compiled can know what is inside."""


@pytest.fixture
def opaque():
    def make(env_id):
        from spaql.agents import make_env

        return Opaque(make_env(env_id))

    return make
