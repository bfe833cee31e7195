"""Writes tests/data/environments/*.safetensors: short recordings of Gymnasium and MiniGrid in the form that verify reads.

Needs gymnasium==1.4.0, minigrid==3.2.0, mujoco==3.17.0, box2d==2.3.10 with pygame, and numpy. Actions are float32, as Gymnasium's action spaces
sample them, so the recordings hold the float32 arithmetic that NumPy applies to them; the real reference files use
float64 actions.
"""

import json
import os
import struct

import gymnasium
import numpy as np

FOLDER = os.path.join(os.path.dirname(__file__), "..", "data", "environments")
DTYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "uint8": "U8"}


def write(name, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for key, value in sorted(tensors.items()):
        value = np.ascontiguousarray(value)
        header[key] = {
            "dtype": DTYPES[str(value.dtype)],
            "shape": list(value.shape),
            "data_offsets": [len(data), len(data) + value.nbytes],
        }
        data += value.tobytes()
    text = json.dumps(header).encode()
    with open(os.path.join(FOLDER, name + ".safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def classic(name, env_id, episodes=4, steps=40, **kwargs):
    env = gymnasium.make(env_id, **kwargs).unwrapped
    rows = {key: [] for key in ("action", "obs", "reward", "state", "terminated")}
    offset, start = [0], []
    rng = np.random.default_rng(1)
    env.action_space.seed(1)
    for episode in range(episodes):
        env.reset(seed=episode)
        env.state = np.asarray(env.state).astype(np.float32)  # what SetState takes over exactly
        if env_id != "MountainCarContinuous-v0":
            env.state = env.state.astype(np.float64)
        start.append(np.asarray(env.state, np.float64))
        for _ in range(steps):
            action = env.action_space.sample()
            if hasattr(env.action_space, "low"):
                action = (2 * action).astype(np.float32)  # half of them are clipped
            obs, reward, terminated, _, _ = env.step(action)
            rows["action"].append(action)
            rows["obs"].append(obs)
            rows["reward"].append(reward)
            rows["state"].append(np.asarray(env.state, np.float64))
            rows["terminated"].append(terminated)
            if terminated:
                break
        offset.append(len(rows["reward"]))
    tensors = {
        "ep.action": np.array(rows["action"]),
        "ep.obs": np.array(rows["obs"], np.float32),
        "ep.reward": np.array(rows["reward"], np.float64),
        "ep.state": np.array(rows["state"]),
        "ep.terminated": np.array(rows["terminated"], np.uint8),
        "ep.offset": np.array(offset, np.int64),
        "ep.start_state": np.array(start),
    }
    write(name, tensors, {"env": env_id, "kwargs": json.dumps(kwargs)})


def mujoco(name, env_id, rollouts=2, steps=20, **kwargs):
    import mujoco as library

    env = gymnasium.make(env_id, **kwargs).unwrapped
    rows = {key: [] for key in ("action", "obs", "reward", "terminated", "next_qpos", "next_qvel")}
    offset, qpos, qvel, start_obs = [0], [], [], []
    env.action_space.seed(1)
    for rollout in range(rollouts):
        obs, _ = env.reset(seed=rollout)
        qpos.append(env.data.qpos.copy())
        qvel.append(env.data.qvel.copy())
        library.mj_resetData(env.model, env.data)
        env.set_state(qpos[-1], qvel[-1])
        start_obs.append(obs)
        for _ in range(steps):
            action = env.action_space.sample()
            obs, reward, terminated, _, _ = env.step(action)
            rows["action"].append(action)
            rows["obs"].append(obs)
            rows["reward"].append(reward)
            rows["terminated"].append(terminated)
            rows["next_qpos"].append(env.data.qpos.copy())
            rows["next_qvel"].append(env.data.qvel.copy())
            if terminated:
                break
        offset.append(len(rows["reward"]))
    tensors = {"rollout." + key: np.array(value) for key, value in rows.items()}
    tensors["rollout.terminated"] = tensors["rollout.terminated"].astype(np.uint8)
    tensors["rollout.offset"] = np.array(offset, np.int64)
    tensors["rollout.start_qpos"] = np.array(qpos)
    tensors["rollout.start_qvel"] = np.array(qvel)
    tensors["rollout.start_obs"] = np.array(start_obs)
    write(name, tensors, {"env": env_id, "kwargs": json.dumps(kwargs)})


def tables(name, env_id, **kwargs):
    """Outcomes of every state and action, in the order of the environment's lists and padded with zeros."""
    env = gymnasium.make(env_id, **kwargs).unwrapped
    states, actions = env.observation_space.n, env.action_space.n
    most = max(len(env.P[s][a]) for s in range(states) for a in range(actions))
    table = np.zeros((4, states, actions, most))
    for s in range(states):
        for a in range(actions):
            for k, outcome in enumerate(env.P[s][a]):
                table[:, s, a, k] = outcome
    tensors = {
        "prob": table[0],
        "next": table[1].astype(np.int64),
        "reward": table[2],
        "terminated": table[3].astype(np.uint8),
        "initial": env.initial_state_distrib,
    }
    write(name, tensors, {"env": env_id, "kwargs": json.dumps(kwargs)})


def hands(name, count=60):
    """Blackjack-v1 with given cards: what each action led to, under three sets of rules."""
    from gymnasium.envs.toy_text import blackjack

    variants = [{"sab": True, "natural": False}, {"sab": False, "natural": False}, {"sab": False, "natural": True}]
    rng = np.random.default_rng(1)
    cards = rng.choice(blackjack.deck, (count, 40))
    cards[:count // 6, 2:4] = 1, 10  # a natural is rare
    trace = []
    for hand in range(count):
        env = gymnasium.make("Blackjack-v1", **variants[hand % 3]).unwrapped
        draws = iter(cards[hand])
        blackjack.draw_card = lambda _: int(next(draws))
        obs, _ = env.reset(seed=hand)
        trace.append([hand, hand % 3, -1, *obs, 0, 0])
        terminated = False
        while not terminated:
            action = int(rng.integers(2)) if hand >= count // 6 else 0
            obs, reward, terminated, _, _ = env.step(action)
            trace.append([hand, hand % 3, action, *obs, terminated, 2 * reward])
    tensors = {"cards": cards.astype(np.int64), "trace": np.array(trace, np.int64), "deck": np.array(blackjack.deck)}
    write(name, tensors, {"env": "Blackjack-v1", "variants": json.dumps(variants)})


def grids(name, env_id, episodes=3, steps=40, resets=2000, **kwargs):
    """Episodes of minigrid 3.2.0 with random actions, and how often its resets put what where."""
    import minigrid

    if env_id not in gymnasium.registry:
        minigrid.register_minigrid_envs()
    env = gymnasium.make(env_id, **kwargs).unwrapped
    rng = np.random.default_rng(1)
    rows = {key: [] for key in ("action", "agent", "carrying", "grid", "obs", "reward", "terminated", "truncated")}
    offset = [0]

    def add(action, obs, reward, terminated, truncated):
        rows["action"].append(action)
        rows["agent"].append([*env.agent_pos, env.agent_dir])
        rows["carrying"].append(env.carrying.encode() if env.carrying else (0, 0, 0))
        rows["grid"].append(env.grid.encode())
        rows["obs"].append(obs["image"])
        rows["reward"].append(float(reward))
        rows["terminated"].append(int(terminated))
        rows["truncated"].append(int(truncated))

    for episode in range(episodes):
        obs, _ = env.reset(seed=episode)
        add(-1, obs, 0, False, False)
        for _ in range(steps):
            # Walks, and picks up and opens what is in the way.
            action = int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.15, 0.15, 0.4, 0.12, 0.03, 0.15]))
            obs, *outcome, _ = env.step(action)
            add(action, obs, *outcome)
            if outcome[1] or outcome[2]:
                break
        offset.append(len(rows["action"]))
    objects = np.zeros((env.width, env.height, 11), np.float32)
    agent = np.zeros((env.width, env.height, 4), np.float32)
    for seed in range(resets):
        env.reset(seed=1000 + seed)
        code = env.grid.encode()[:, :, 0]
        objects[np.arange(env.width)[:, None], np.arange(env.height), code] += 1
        agent[env.agent_pos[0], env.agent_pos[1], env.agent_dir] += 1
    small = ("grid", "obs")
    tensors = {
        key: np.array(value, np.uint8 if key in small else np.float64 if key == "reward" else np.int64)
        for key, value in rows.items()
    }
    tensors["offset"] = np.array(offset, np.int64)
    tensors["layouts.objects"] = objects / resets
    tensors["layouts.agent"] = agent / resets
    tensors["layouts.resets"] = np.array([resets], np.int64)
    tensors["layouts.height"] = np.array([env.height], np.int64)
    write(name, tensors, {"env": env_id, "kwargs": json.dumps(kwargs)})


class Stream:
    """weft's random numbers (base/random.h) as what environments use of NumPy's generator."""

    def __init__(self, seed):
        self.seed, self.position, self.uniforms = seed, 0, []

    def words(self):
        """Seed, stream and position as weft's states on Box2D begin with them."""
        return [self.seed, 0, 0, 0, self.position, 0]

    def word(self):
        counter, key = [self.position // 4, 0, 0, 0], [self.seed, 0]
        for _ in range(10):
            first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
            low = 2**32 - 1
            counter = [second >> 32 ^ counter[1] ^ key[0], second & low, first >> 32 ^ counter[3] ^ key[1], first & low]
            key = [key[0] + 0x9E3779B9 & low, key[1] + 0xBB67AE85 & low]
        self.position += 1
        return counter[(self.position - 1) % 4]

    def random(self):
        low = self.word()
        return ((low | self.word() << 32) >> 11) * 2.0**-53

    def uniform(self, low, high, size=None):
        if size is not None:
            return np.array([self.uniform(low, high) for _ in range(*size)])
        self.uniforms.append(low + (high - low) * self.random())
        return self.uniforms[-1]

    def integers(self, low, high):
        return low + (self.word() * (high - low) >> 32) if high - low > 1 else low


def flights(name, episodes=4, steps=50, **kwargs):
    """LunarLander-v3 with given random numbers, in the air: weft's state at the end and all observations."""
    env = gymnasium.make("LunarLander-v3", **kwargs).unwrapped
    rng = np.random.default_rng(1)
    states, observations = [], []
    for episode in range(episodes):
        env._np_random = stream = Stream(100 + episode)
        state = stream.words()
        rows = [env.reset()[0]]
        for _ in range(steps):
            if env.continuous:
                action = rng.uniform(-1, 1, 2).astype(np.float32).astype(np.float64)
                main = (action[0] + 1) / 2 if action[0] > 0 else 0
                side = action[1] if abs(action[1]) > 0.5 else 0
            else:
                action = int(rng.integers(4))
                main, side = float(action == 2), {1: -1, 3: 1}.get(action, 0)
            rows.append(env.step(action)[0])
            state += [main, side, *stream.uniforms[-2:]]
        states.append(state)
        observations.append(rows)
    tensors = {"state": np.array(states, np.float64), "obs": np.array(observations, np.float32)}
    write(name, tensors, {"env": "LunarLander-v3", "kwargs": json.dumps(kwargs)})


def terrains(name, episodes=4):
    """The ground of BipedalWalkerHardcore-v3 from given random numbers."""
    env = gymnasium.make("BipedalWalkerHardcore-v3").unwrapped
    ground, obstacles, offset = [], [], [0]
    for episode in range(episodes):
        env._np_random = Stream(100 + episode)
        env._generate_terrain(True)
        ground.append(np.stack([env.terrain_x, env.terrain_y], 1))
        shapes = [body.fixtures[0].shape.vertices for body in reversed(env.terrain)]
        obstacles += [sorted(corners) for corners in shapes if len(corners) == 4]
        offset.append(len(obstacles))
    tensors = {"ground": np.array(ground), "obstacles": np.array(obstacles), "offset": np.array(offset, np.int64)}
    write(name, tensors, {"env": "BipedalWalkerHardcore-v3"})


def race(name, steps=80):
    """CarRacing-v3 with given random numbers: weft's state at the end, the track, rewards and two pictures."""
    env = gymnasium.make("CarRacing-v3").unwrapped
    env._np_random = stream = Stream(101)
    state, rewards = stream.words(), []
    pictures = [env.reset()[0]]
    for step in range(steps):
        action = np.array([0.3 * np.sin(0.2 * step), 0.8, 0.3 * (step > 60)], np.float32)
        obs, reward, *_ = env.step(action)
        rewards.append(reward)
        state += [-float(action[0]), float(action[1]), float(action[2])]
    tensors = {
        "state": np.array(state, np.float64),
        "track": np.array(env.track, np.float64),
        "reward": np.array(rewards, np.float64),
        "obs": np.array([*pictures, obs], np.uint8),
    }
    write(name, tensors, {"env": "CarRacing-v3"})


os.makedirs(FOLDER, exist_ok=True)
classic("cartpole_sutton_barto", "CartPole-v1", sutton_barto_reward=True)
classic("pendulum_f32", "Pendulum-v1", g=9.81)
classic("mountaincarcontinuous_f32", "MountainCarContinuous-v0", goal_velocity=0.01)
classic("acrobot", "Acrobot-v1", episodes=2, steps=20)
mujoco("halfcheetah_f32", "HalfCheetah-v5", ctrl_cost_weight=0.2, frame_skip=3)
mujoco("hopper_f32", "Hopper-v5")
mujoco("ant_f32", "Ant-v5", steps=10)
mujoco("humanoid_f32", "Humanoid-v5", steps=10, include_cinert_in_observation=False, include_cvel_in_observation=False)
mujoco("pusher_f32", "Pusher-v5", steps=10)
mujoco("reacher_v4_f32", "Reacher-v4")
tables(
    "frozenlake_custom",
    "FrozenLake-v1",
    desc=["SFFHS", "FHFFF", "FFFHG"],
    success_rate=0.75,
    reward_schedule=[10, -2, -0.5],
)
tables("cliffwalking_slippery", "CliffWalking-v1", is_slippery=True)
hands("blackjack")
grids("minigrid_doorkey", "MiniGrid-DoorKey-6x6-v0", agent_view_size=5)
grids("minigrid_empty_random", "MiniGrid-Empty-Random-5x5-v0", episodes=1, max_steps=20)
grids("minigrid_fourrooms", "MiniGrid-FourRooms-v0", episodes=2, steps=20)
grids("minigrid_lavagap", "MiniGrid-LavaGapS7-v0")
grids("minigrid_multiroom", "MiniGrid-MultiRoom-N4-S5-v1", episodes=2, steps=20)
grids("minigrid_memory", "MiniGrid-MemoryS13Random-v0", episodes=4)
grids("minigrid_unlock", "MiniGrid-Unlock-v0", episodes=2)
flights("lander_flights")
flights("lander_flights_continuous", continuous=True)
flights("lander_flights_windy", enable_wind=True, wind_power=18.0, gravity=-8.0)
terrains("bipedal_terrains")
race("car_race")
