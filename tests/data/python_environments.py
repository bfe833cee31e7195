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


class Relay:
    """A parallel environment of PettingZoo's, without the package. Runners 0 and 1 are there from the start, the anchor
    comes with step 1; runner 0 leaves at step 2 (terminated), runner 1 at step 3 (truncated), the anchor at step 4. Rewards
    are the actions, of which runner 0 has two and the others three; the anchor observes one number less."""

    possible_agents = ["runner_0", "runner_1", "anchor_0"]
    spaces = dict(zip(possible_agents, [Box(-9, 9, (3,), np.float32)] * 2 + [Box(-9, 9, (2,), np.float32)]))
    actions = dict(zip(possible_agents, [Discrete(2), Discrete(3), Discrete(3, start=5)]))
    metadata = {"name": "relay"}

    def __init__(self, fault=None):
        self.fault = fault

    def observation_space(self, agent):
        return self.spaces[agent]

    def action_space(self, agent):
        return self.actions[agent]

    def observe(self, agents):
        full = [self.t, self.noise, 7]
        return {agent: np.array(full[:self.spaces[agent].shape[0]], np.float32) for agent in agents}

    def reset(self, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.t, self.noise, self.agents = 0, self.random.random(), self.possible_agents[:2]
        return self.observe(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert sorted(actions) == sorted(self.agents), actions
        self.t += 1
        self.noise = self.random.random()
        agents = list(self.agents)
        ends = {agent: self.t == self.possible_agents.index(agent) + 2 for agent in agents}
        seen = self.observe(agents + (["anchor_0"] if self.t == 1 else []))
        if self.fault == "bounds" and self.t == 2:
            seen["anchor_0"][1] = 10
        rewards = {agent: float(actions[agent]) for agent in agents}
        if self.fault == "forgets" and self.t == 2:
            del rewards["runner_1"]
        terminations = {agent: ends[agent] and agent != "runner_1" for agent in agents}
        truncations = {agent: ends[agent] and agent == "runner_1" for agent in agents}
        self.agents = [agent for agent in agents if not ends[agent]] + (["anchor_0"] if self.t == 1 else [])
        if self.fault == "exit" and self.t == 3:
            os._exit(3)
        return seen, rewards, terminations, truncations, {agent: {} for agent in seen}


def walks(num_envs, **options):
    """A vector environment of so many walks."""
    return gymnasium.vector.SyncVectorEnv([lambda: Walk(**options)] * num_envs)


class Steady(gymnasium.vector.VectorEnv):
    """Rows that share one random stream and one seed, as those written with arrays do."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}
    single_observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    single_action_space = Discrete(3)

    def __init__(self, num_envs, length=4, marker=None):
        self.num_envs, self.length, self.marker = num_envs, length, marker
        self.ended = np.zeros(num_envs, bool)

    def observe(self):
        return np.stack([self.seed + np.arange(self.num_envs), self.t], axis=1).astype(np.float32)

    def reset(self, seed=None, options=None):
        self.seed, self.t = seed % 1000, np.zeros(self.num_envs)
        self.ended[:] = False
        return self.observe(), {}

    def step(self, actions):
        self.t = np.where(self.ended, 0, self.t + 1)
        if self.marker and self.t[0] == 2 and not os.path.exists(self.marker):
            open(self.marker, "w", encoding="utf-8").close()
            os._exit(3)
        rewards = np.where(self.ended, 0, actions)
        self.ended = self.t >= self.length + np.arange(self.num_envs)  # row n lives n steps longer
        return self.observe(), rewards, self.ended.copy(), np.zeros(self.num_envs, bool), {}


class Loose(Walk):
    """Declares bounds that it does not keep, or bytes that it does not write."""

    def __init__(self, kind="bounds"):
        super().__init__(length=100)
        self.kind = kind
        high = np.array([np.inf, 2], np.float32)
        self.observation_space = Box(0, 255, (2,), np.uint8) if kind == "dtype" else Box(-np.inf, high, (2,), np.float32)


class Deaf(Walk):
    """Does not listen to its seed: all episodes begin alike."""

    def reset(self, seed=None, options=None):
        return super().reset(seed=1)
