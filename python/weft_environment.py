#!/usr/bin/env python3
"""Serves rows of Gymnasium environments, Gymnasium vector environments and PettingZoo parallel environments to weft.

weft starts this file itself for `environment: {python: "MODULE:NAME(KEY=VALUE, ...)"}`; NAME is an
attribute of MODULE that makes an environment, or else an id that gymnasium.make knows once MODULE
is imported. Needs pyzmq, numpy and gymnasium.

JSON messages over a ZeroMQ socket say what happens once; a byte in a pipe starts each step, another ends it.
Actions, observations, rewards and ends stay in a file that both sides have mapped
(docs/python_environments.md has the protocol).
"""

import ast
import ctypes
import importlib
import json
import os
import signal
import sys
import traceback

import gymnasium
import numpy as np
import zmq

STEP, RESET, SKIP = range(3)  # commands of an environment
ABSENT, FIRST, STEPPED = range(3)  # what an agent did
DTYPES = {"F32": np.float32, "F64": np.float64, "U8": np.uint8, "I64": np.int64, "U64": np.uint64}


class Mistake(Exception):
    """Something the user can mend; its text says what."""


def parse_target(text):
    """"module:Name(key=1)" -> ("module", "Name", {"key": 1})."""
    module, colon, rest = text.partition(":")
    if not colon or not module or not rest:
        raise Mistake(f'"{text}" is not MODULE:NAME, such as "ale_py:ALE/Pong-v5"')
    name, bracket, _ = rest.partition("(")
    keywords = {}
    if bracket:
        try:
            call = ast.parse("f" + rest[len(name):], mode="eval").body
            if not isinstance(call, ast.Call) or call.args:
                raise ValueError("arguments need names")
            keywords = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        except (SyntaxError, ValueError) as error:
            raise Mistake(f'the arguments of "{text}" are no Python literals with names: {error}') from None
    return module, name, keywords


class AtariPicture(gymnasium.Wrapper):
    """Pictures [1, 84, 84], so that frames stack as channels; presses FIRE where a game waits for it."""

    def __init__(self, environment):
        super().__init__(environment)
        self.observation_space = gymnasium.spaces.Box(0, 255, (1, *environment.observation_space.shape), np.uint8)
        meanings = environment.unwrapped.get_action_meanings()
        self.fire = meanings.index("FIRE") if "FIRE" in meanings else None

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        if self.fire is not None:
            observation, _, terminated, truncated, info = self.env.step(self.fire)
            if terminated or truncated:
                observation, info = self.env.reset()
        return observation[None], info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return observation[None], *rest


def prepare_atari(environment, training):
    """The usual preparation (Machado et al. 2018): up to 30 no-ops at the start, frames in fours, the larger of the
    last two, grey, 84 x 84. In training a lost life ends the episode."""
    frames = gymnasium.wrappers.AtariPreprocessing(environment, terminal_on_life_loss=training)
    return AtariPicture(frames)


def make_environment(target, time_limit, preset, training):
    if preset == "atari":
        return prepare_atari(make_plain(target, time_limit, frameskip=1), training)
    return make_plain(target, time_limit)


def find(target):
    """The maker that the target names, or None for an id; its name; its arguments."""
    module_name, name, keywords = parse_target(target)
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0]:
            raise
        raise Mistake(f"Python finds no module {module_name} (searched: the current folder, PYTHONPATH, "
                      f"and the packages of {sys.executable})") from None
    return getattr(module, name, None), name, keywords


def made_by_id(target, name, make):
    try:
        return make()
    except gymnasium.error.UnregisteredEnv as error:
        raise Mistake(f"{target.partition(':')[0]} has no attribute {name}, and gymnasium says: {error}") from None


def make_plain(target, time_limit, **more):
    maker, name, keywords = find(target)
    keywords = {**more, **keywords}
    if maker is not None:
        return maker(**keywords)
    limit = {} if time_limit < 0 else {"max_episode_steps": time_limit or -1}
    return made_by_id(target, name, lambda: gymnasium.make(name, **limit, **keywords))


def make_vector(target, count):
    """A vector environment of so many."""
    maker, name, keywords = find(target)
    if maker is not None:
        return maker(num_envs=count, **keywords)
    return made_by_id(target, name, lambda: gymnasium.make_vec(name, num_envs=count, **keywords))


# ---- Spaces


def bound(values):
    """Numbers for JSON, None where there is no bound; one number when all are the same."""
    flat = [float(value) if np.isfinite(value) else None for value in np.ravel(values)]
    return flat[:1] if len(set(flat)) == 1 else flat


def flatten(space, name=""):
    """Leaves of an observation space: (name, space) in the order of Gymnasium's own keys."""
    if isinstance(space, gymnasium.spaces.Dict):
        for key, part in space.spaces.items():
            yield from flatten(part, f"{name}.{key}" if name else str(key))
    elif isinstance(space, gymnasium.spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from flatten(part, f"{name}.{index}" if name else str(index))
    else:
        yield name or "observation", space


def values_of(space, value):
    """The leaves of one observation, in the order of flatten."""
    if isinstance(space, gymnasium.spaces.Dict):
        for key, part in space.spaces.items():
            yield from values_of(part, value[key])
    elif isinstance(space, gymnasium.spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from values_of(part, value[index])
    else:
        yield value


def describe_leaf(name, space):
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Box):
        kind = {"f4": "F32", "f2": "F32", "f8": "F64", "u1": "U8", "b1": "U8"}.get(space.dtype.str[1:], "F64")
        if name == "action_mask":
            return {"name": name, "shape": space.shape, "dtype": "U8", "low": [0.0], "high": [1.0]}
        return {"name": name, "shape": space.shape, "dtype": kind, "low": bound(space.low), "high": bound(space.high)}
    if isinstance(space, spaces.Discrete):
        return {"name": name, "shape": (), "dtype": "I64", "low": [float(space.start)],
                "high": [float(space.start + space.n - 1)]}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(space.start, space.shape)
        return {"name": name, "shape": space.shape, "dtype": "I64", "low": bound(start),
                "high": bound(start + space.nvec - 1)}
    if isinstance(space, spaces.MultiBinary):
        return {"name": name, "shape": space.shape, "dtype": "U8", "low": [0.0], "high": [1.0]}
    raise Mistake(f"the observation {name} is a {type(space).__name__}, which weft does not take")


def describe_action(space):
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Box):
        full = [None if not np.isfinite(x) else float(x) for x in space.low.ravel()]
        high = [None if not np.isfinite(x) else float(x) for x in space.high.ravel()]
        return {"kind": "box", "low": full, "high": high}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(space.start, space.shape)
        return {"kind": "multi_discrete", "n": [int(n) for n in space.nvec.ravel()],
                "start": [int(s) for s in start.ravel()]}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "n": int(np.prod(space.shape))}
    raise Mistake(f"the action space is a {type(space).__name__}, which weft does not take")


# ---- What one agent sees and does


class Side:
    """The spaces of an agent, the only one as a rule, and the way of its numbers to and from arrays."""

    def __init__(self, space, action_space, info):
        self.space, self.action_space = space, action_space
        self.leaves = [describe_leaf(*leaf) for leaf in flatten(space)]
        mask = info.get("action_mask") if isinstance(info, dict) else None
        self.has_mask = mask is not None and "action_mask" not in [leaf["name"] for leaf in self.leaves]
        if self.has_mask:
            size = sum(int(n) for n in np.ravel(getattr(action_space, "nvec", getattr(action_space, "n", 0))))
            self.leaves.append({"name": "action_mask", "shape": (size,), "dtype": "U8", "low": [0.0], "high": [1.0]})

    def action_of(self, value):
        """The action as the space has it, from the canonical form, which may be longer."""
        space = self.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return space.dtype.type(value)
        return value[:int(np.prod(space.shape))].astype(space.dtype).reshape(space.shape)

    def values(self, observation, info):
        values = list(values_of(self.space, observation))
        if self.has_mask:
            if "action_mask" not in info:
                raise Mistake("the info of this step has no action_mask, that of the first reset had one")
            values.append(info["action_mask"])
        return values

    def write(self, outputs, row, observation, info):
        for leaf, value, output in zip(self.leaves, self.values(observation, info), outputs):
            value = np.asarray(value)
            check(leaf, value, value.shape)
            if value.shape == output.shape[1:]:
                output[row] = value
            else:  # narrower than the widest agent's
                output[row, :value.size] = value
                output[row, value.size:] = 0


def check(leaf, value, shape):
    """That numbers of this shape for each row are what the leaf says."""
    name, integers = leaf["name"], leaf["dtype"] in ("U8", "I64")
    if shape != tuple(leaf["shape"]):
        raise Mistake(f"the observation {name} has the shape {shape}, its space says {tuple(leaf['shape'])}")
    if value.dtype.kind not in ("iub" if integers else "fiub"):
        raise Mistake(f"the observation {name} has the dtype {value.dtype}, its space says {leaf['dtype']}")
    if integers and value.size:
        low, high = (np.array([np.nan if x is None else x for x in leaf[side]]) for side in ("low", "high"))
        elements = max(low.size, high.size)
        flat = value.reshape(-1, elements) if elements > 1 else value
        if np.any(flat < low) or np.any(flat > high):
            raise Mistake(f"the observation {name} leaves the bounds of its space")


class Fault(Exception):
    """What an environment did wrong, and in which one of the process."""

    def __init__(self, environment, text):
        super().__init__(text)
        self.environment = environment


# ---- Environments of one process, and the file that their numbers live in


class Environments:
    """What the kinds below share: __init__ sets side and leaves, spec() and advance() are what weft asks."""

    attached = False

    def registered(self, environment):
        registered = getattr(environment, "spec", None)
        return {
            "observation": self.leaves,
            "action": describe_action(self.side.action_space),
            "agents": [],
            "time_limit": getattr(registered, "max_episode_steps", None) or 0,
            "reward_threshold": getattr(registered, "reward_threshold", None) or 0,
        }

    def attach(self, path, fields):
        memory = np.asarray(np.memmap(path, dtype=np.uint8, mode="r+"))  # whose elements are cheaper to reach

        def array(field):
            count = int(np.prod(field["shape"]))
            kind = np.dtype(DTYPES[field["dtype"]])
            begin = field["offset"]
            return memory[begin:begin + count * kind.itemsize].view(kind).reshape(field["shape"])

        for name in ("command", "seed", "steps", "action", "reward", "terminated", "truncated", "present"):
            setattr(self, name, array(fields[name]))
        self.outputs = [array(field) for field in fields["observation"]]
        self.attached = True

    def guard(self, index, change, *arguments):
        """A Fault that names the environment for whatever it throws."""
        try:
            change(*arguments)
        except Mistake as error:
            raise Fault(index, str(error)) from None
        except Exception as error:  # noqa: BLE001: it ends the run with its name
            traceback.print_exc()
            raise Fault(index, f"{type(error).__name__}: {error}") from None

    def advance(self):
        for index, command in enumerate(self.command):
            if command != SKIP:
                self.guard(index, self.change, index, command == RESET)


class Singles(Environments):
    """Gymnasium environments, one for each row."""

    def __init__(self, environments):
        self.environments = environments
        first = environments[0]
        _, info = first.reset(seed=0)
        self.side = Side(first.observation_space, first.action_space, info)
        self.leaves = self.side.leaves

    def spec(self):
        return self.registered(self.environments[0])

    def change(self, row, resets):
        environment = self.environments[row]
        total, steps, terminated, truncated = 0.0, 0, False, False
        if resets:
            observation, info = environment.reset(seed=int(self.seed[row]))
        else:
            action = self.side.action_of(self.action[row])
            while steps < self.steps[row] and not (terminated or truncated):
                observation, reward, terminated, truncated, info = environment.step(action)
                total += float(reward)
                steps += 1
        self.reward[row], self.terminated[row], self.truncated[row] = total, bool(terminated), bool(truncated)
        self.steps[row], self.present[row] = steps, FIRST if resets else STEPPED
        self.side.write(self.outputs, row, observation, info)


class Vector(Environments):
    """The rows as one Gymnasium vector environment, whose autoreset is that of weft: the step after an end begins a new
    episode. Seeds are taken when all rows begin at once; in between the environment draws its own."""

    def __init__(self, environment, count):
        self.environment, self.started = environment, False
        mode = environment.metadata.get("autoreset_mode", "NextStep")
        mode = getattr(mode, "value", mode)
        if mode != "NextStep":
            raise Mistake(f"the vector environment resets itself in the mode {mode}; weft needs NextStep")
        if environment.num_envs != count:
            raise Mistake(f"the vector environment has {environment.num_envs} rows, not the num_envs={count} asked for")
        _, info = environment.reset(seed=0)
        self.side = Side(environment.single_observation_space, environment.single_action_space, info)
        self.leaves = self.side.leaves

    def spec(self):
        return self.registered(self.environment)

    def advance(self):
        self.guard(0, self.change)

    def change(self):
        environment, resets, active = self.environment, self.command == RESET, self.command != SKIP
        if not self.started or np.all(resets):
            seeds = [int(seed) for seed in self.seed]
            kinds = gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv  # which take one for each row
            observation, info = environment.reset(seed=seeds if isinstance(environment.unwrapped, kinds) else seeds[0])
            rewards, terminated, truncated = (np.zeros(len(seeds)) for _ in range(3))
            self.started = True
        else:
            observation, rewards, terminated, truncated, info = environment.step(self.actions())
        self.reward[active] = np.where(resets, 0, rewards)[active]
        self.terminated[active], self.truncated[active] = terminated[active], truncated[active]
        self.steps[active] = ~resets[active]
        self.present[active] = np.where(resets, FIRST, STEPPED)[active]
        for leaf, value, output in zip(self.leaves, self.side.values(observation, info), self.outputs):
            value = np.asarray(value)
            check(leaf, value, value.shape[1:])
            output[active] = value[active]

    def actions(self):
        space = self.side.action_space
        return self.action.astype(space.dtype).reshape(len(self.command), *space.shape)


class Parallels(Environments):
    """PettingZoo environments of the parallel API; row e * G + g is agent g of environment e."""

    def __init__(self, environments):
        self.environments = environments
        first = environments[0]
        self.names = list(first.possible_agents)
        _, infos = first.reset(seed=0)
        self.sides = [Side(first.observation_space(name), first.action_space(name), infos.get(name, {}))
                      for name in self.names]
        self.leaves = widest_leaves(self.names, self.sides)
        self.action_spec, uneven = widest_action(self.names, self.sides)
        self.own_mask = uneven and "action_mask" not in [leaf["name"] for leaf in self.leaves]
        if self.own_mask:
            self.leaves.append({"name": "action_mask", "shape": (self.action_spec["n"],), "dtype": "U8", "low": [0.0],
                                "high": [1.0]})
        state_space = getattr(first, "state_space", None)
        self.has_state = isinstance(state_space, gymnasium.spaces.Box) and state_space.dtype.kind == "f"
        if self.has_state:
            self.leaves.append(describe_leaf("state", state_space))
        self.taking_part = [set() for _ in environments]

    def spec(self):
        agents = []
        for name, side in zip(self.names, self.sides):
            action = describe_action(side.action_space)
            if action["kind"] == "discrete":
                action["start"] = 0  # added here
            agents.append({"name": name, "observation_size": int(np.prod(side.leaves[0]["shape"])), "action": action})
        return {"observation": self.leaves, "action": self.action_spec, "agents": agents, "time_limit": 0,
                "reward_threshold": 0}

    def change(self, index, resets):
        environment, count = self.environments[index], len(self.names)
        first = index * count
        rows = slice(first, first + count)
        for array in (self.reward, self.terminated, self.truncated, self.present):
            array[rows] = 0
        seen, steps = {}, 0
        if resets:
            observations, infos = environment.reset(seed=int(self.seed[index]))
            self.taking_part[index] = set()
            self.welcome(index, environment, first, observations, infos, seen)
        else:
            # Whoever comes is seen before it acts.
            while steps < self.steps[index] and self.taking_part[index] and FIRST not in self.present[rows]:
                self.step(index, environment, first, seen)
                steps += 1
        self.steps[index] = steps
        for agent, (observation, info) in seen.items():
            self.write(first + agent, agent, observation, info)
        if self.has_state and seen:
            state = np.asarray(environment.state())
            check(self.leaves[-1], state, state.shape)
            for agent in seen:
                self.outputs[-1][first + agent] = state

    def welcome(self, index, environment, first, observations, infos, seen):
        """Agents that are there and were not."""
        there = self.taking_part[index]
        for agent, name in enumerate(self.names):
            if agent in there or name not in environment.agents or self.present[first + agent] != ABSENT:
                continue
            there.add(agent)
            self.present[first + agent] = FIRST
            seen[agent] = observations[name], infos.get(name, {})

    def step(self, index, environment, first, seen):
        there = self.taking_part[index]
        acting = sorted(there)
        actions = {self.names[agent]: self.own_action(agent, self.action[first + agent]) for agent in acting}
        observations, rewards, terminations, truncations, infos = environment.step(actions)
        for agent in acting:
            name, row = self.names[agent], first + agent
            for values, what in ((observations, "observation"), (rewards, "reward"), (terminations, "termination"),
                                 (truncations, "truncation")):
                if name not in values:
                    raise Mistake(f"the step gave {name}, which takes part, no {what}")
            self.reward[row] += float(rewards[name])
            self.present[row] = STEPPED
            seen[agent] = observations[name], infos.get(name, {})
            if terminations[name] or truncations[name]:
                self.terminated[row], self.truncated[row] = bool(terminations[name]), bool(truncations[name])
                there.remove(agent)
            elif name not in environment.agents:
                raise Mistake(f"{name} left without termination or truncation")
        self.welcome(index, environment, first, observations, infos, seen)

    def own_action(self, agent, value):
        space = self.sides[agent].action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            return self.sides[agent].action_of(value)
        if value >= space.n:
            raise Mistake(f"the action of {self.names[agent]}, which has {space.n}, is {value}")
        return space.dtype.type(value + space.start)

    def write(self, row, agent, observation, info):
        side = self.sides[agent]
        side.write(self.outputs, row, observation, info)
        if self.own_mask:
            mask = self.outputs[len(side.leaves)][row]
            mask[:] = np.arange(mask.size) < side.action_space.n


def widest_leaves(names, sides):
    """Leaves that each agent's fit in: vectors as long as the longest, which zeros fill up."""
    leaves = []
    for index, leaf in enumerate(sides[0].leaves):
        mine = []
        for name, side in zip(names, sides):
            if [of["name"] for of in side.leaves] != [of["name"] for of in sides[0].leaves]:
                raise Mistake(f"{name} and {names[0]} observe leaves of different names")
            mine.append(side.leaves[index])
        shapes = {tuple(of["shape"]) for of in mine}
        if len({of["dtype"] for of in mine}) > 1 or (len(shapes) > 1 and any(len(shape) != 1 for shape in shapes)):
            raise Mistake(f"the observations {leaf['name']} of the agents differ in more than their length: "
                          + ", ".join(f"{name} {of['dtype']} {tuple(of['shape'])}" for name, of in zip(names, mine)))
        shape = max(shapes)
        low, high = bound_all(mine, shape, "low", -np.inf, np.min), bound_all(mine, shape, "high", np.inf, np.max)
        leaves.append({**leaf, "shape": shape, "low": bound(low), "high": bound(high)})
    return leaves


def bound_all(leaves, shape, side, unbounded, join):
    size, all_bounds = int(np.prod(shape)), []
    for leaf in leaves:
        own = int(np.prod(leaf["shape"]))
        values = np.array([unbounded if x is None else x for x in leaf[side]], float)
        all_bounds.append(np.concatenate([np.broadcast_to(values, own), np.zeros(size - own)]))
    return join(all_bounds, axis=0)


def widest_action(names, sides):
    """The action that each agent's is a beginning of, and whether some have fewer of a discrete one."""
    own = [describe_action(side.action_space) for side in sides]
    kinds = {action["kind"] for action in own}
    if kinds == {"discrete"}:
        counts = [action["n"] for action in own]
        return {"kind": "discrete", "n": max(counts), "start": 0}, len(set(counts)) > 1
    if kinds == {"box"}:
        return max(own, key=lambda action: len(action["low"])), False
    if any(action != own[0] for action in own):
        raise Mistake("weft takes agents of several kinds of actions only if all are Discrete or all are Box: "
                      + ", ".join(f"{name} {side.action_space}" for name, side in zip(names, sides)))
    return own[0], False


def make_environments(target, rows, time_limit, preset, training, vector):
    if vector:
        environment = make_vector(target, rows)
        if not hasattr(environment, "single_observation_space"):
            raise Mistake(f"{target} makes a {type(environment).__name__}, which is no vector environment")
        return Vector(environment, rows)
    environments = [make_environment(target, time_limit, preset, training) for _ in range(rows)]
    first = environments[0]
    if hasattr(first, "single_observation_space"):
        raise Mistake(f"{target} makes a vector environment; say so with arguments: {{vector: true}}")
    if hasattr(first, "agent_iter"):
        raise Mistake(f"{target} makes an environment whose agents take turns; weft takes PettingZoo's parallel "
                      "environments, which modules make with parallel_env(...)")
    if hasattr(first, "possible_agents"):
        return Parallels(environments)
    if not hasattr(first, "observation_space") or not hasattr(first, "action_space"):
        raise Mistake(f"{target} makes a {type(first).__name__}, which has no observation_space and action_space")
    return Singles(environments)


# ---- The conversation


def main():
    # The system ends this process with the one that started it; Ctrl-C is that one's business.
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = os.path.dirname(sys.argv[1])
    with open(sys.argv[1], encoding="utf-8") as file:
        _, endpoint, session = file.read().splitlines()
    socket = zmq.Context().socket(zmq.DEALER)
    socket.linger = 0
    socket.setsockopt(zmq.IDENTITY, session.encode())
    socket.connect(endpoint)

    def send(message):
        socket.send(json.dumps(message, default=int).encode())

    send({"hello": session})
    rows = None
    while rows is None or not rows.attached:
        message = json.loads(socket.recv())
        try:
            if "make" in message:
                rows = make_environments(**message["make"])
                send({"spec": rows.spec()})
            else:
                rows.attach(**message["attach"])
                send({"attached": True})
        except Mistake as error:
            send({"error": str(error)})
        except Exception as error:  # noqa: BLE001: as above
            traceback.print_exc()
            send({"error": f"{type(error).__name__}: {error}"})

    go, done = os.open(f"{folder}/go", os.O_RDONLY), os.open(f"{folder}/done", os.O_WRONLY)
    while os.read(go, 1):
        try:
            rows.advance()
        except Fault as fault:
            send({"error": str(fault), "environment": fault.environment})
            os.write(done, b"\x02")
        else:
            os.write(done, b"\x01")


if __name__ == "__main__":
    main()
