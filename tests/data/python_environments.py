"""Environments for tests/environments/python_environment_test.cc."""

import os
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete


class Walk(gymnasium.Env):
    """obs = [position, t]: starts at a random place, moves by the action - 1, reward = position."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Discrete(3)

    def __init__(self, length=5, end="truncated"):
        self.length, self.end = length, end

    def observe(self):
        return np.array([self.position, self.t])

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.t = self.np_random.uniform(-1, 1), 0
        return self.observe(), {}

    def step(self, action):
        self.position += int(action) - 1 + 0.1 * self.np_random.normal()
        self.t += 1
        over = self.t >= self.length
        return self.observe(), self.position, over and self.end != "truncated", over and self.end != "terminated", {}


class Fault(Walk):
    """At t = 3 of the episode: throws, ends the process, hangs, or breaks its space."""

    def __init__(self, kind, marker=None):
        super().__init__(length=100)
        self.kind, self.marker = kind, marker

    def step(self, action):
        result = super().step(action)
        if self.t != 3 or (self.marker and os.path.exists(self.marker)):
            return result
        if self.marker:
            open(self.marker, "w", encoding="utf-8").close()
        if self.kind == "throw":
            raise RuntimeError("the motor is too hot")
        if self.kind == "exit":
            os._exit(3)
        if self.kind == "hang":
            time.sleep(3600)
        if self.kind == "shape":
            return np.zeros(3), *result[1:]
        if self.kind == "nan":
            return np.array([np.nan, 0.0]), *result[1:]
        return result


class Parts(gymnasium.Env):
    """Nested observations of all dtypes, shifted discrete actions, legal actions in info."""

    observation_space = Dict(
        picture=Box(0, 255, (2, 3), np.uint8),
        inner=Dict(place=Discrete(4, start=2), speed=Box(-1, 1, (1,), np.float32)),
    )
    action_space = MultiDiscrete([2, 11], start=[0, 25])

    def observe(self):
        return {
            "inner": {"place": 2 + self.t % 4, "speed": np.array([self.t / 10], np.float32)},
            "picture": np.full((2, 3), self.t, np.uint8),
        }

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {"action_mask": np.ones(13, np.int8)}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        mask = np.zeros(13, np.int8)
        mask[[self.t % 2, 5]] = 1
        return self.observe(), float(action[1]), False, False, {"action_mask": mask}
