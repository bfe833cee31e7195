#!/usr/bin/env python3
"""Serves rows of a Gymnasium environment to weft.

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

STEP, RESET, SKIP = range(3)  # commands of a row
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


def make_plain(target, time_limit, **more):
    module_name, name, keywords = parse_target(target)
    keywords = {**more, **keywords}
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0]:
            raise
        raise Mistake(f"Python finds no module {module_name} (searched: the current folder, PYTHONPATH, "
                      f"and the packages of {sys.executable})") from None
    maker = getattr(module, name, None)
    if maker is not None:
        return maker(**keywords)
    try:
        limit = {} if time_limit < 0 else {"max_episode_steps": time_limit or -1}
        return gymnasium.make(name, **limit, **keywords)
    except gymnasium.error.UnregisteredEnv as error:
        raise Mistake(f"{module_name} has no attribute {name}, and gymnasium.make says: {error}") from None


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


class Rows:
    """The environments of this process and the file that their numbers live in."""

    def __init__(self, target, rows, time_limit, preset, training):
        self.attached = False
        self.environments = [make_environment(target, time_limit, preset, training) for _ in range(rows)]
        first = self.environments[0]
        if not hasattr(first, "observation_space") or not hasattr(first, "action_space"):
            raise Mistake(f"{target} makes a {type(first).__name__}, which has no observation_space and action_space")
        self.space = first.observation_space
        self.action_space = first.action_space
        self.leaves = [describe_leaf(*leaf) for leaf in flatten(self.space)]
        _, info = first.reset(seed=0)
        mask = info.get("action_mask") if isinstance(info, dict) else None
        self.has_mask = mask is not None and "action_mask" not in [leaf["name"] for leaf in self.leaves]
        if self.has_mask:
            self.leaves.append({"name": "action_mask", "shape": np.shape(mask), "dtype": "U8", "low": [0.0],
                                "high": [1.0]})

    def spec(self):
        registered = getattr(self.environments[0], "spec", None)
        return {
            "observation": self.leaves,
            "action": describe_action(self.action_space),
            "time_limit": getattr(registered, "max_episode_steps", None) or 0,
            "reward_threshold": getattr(registered, "reward_threshold", None) or 0,
        }

    def attach(self, path, fields, action_repeat):
        memory = np.memmap(path, dtype=np.uint8, mode="r+")
        self.action_repeat = action_repeat

        def array(field):
            count = int(np.prod(field["shape"]))
            kind = np.dtype(DTYPES[field["dtype"]])
            begin = field["offset"]
            return memory[begin:begin + count * kind.itemsize].view(kind).reshape(field["shape"])

        self.command, self.seed, self.action = (array(fields[name]) for name in ("command", "seed", "action"))
        self.reward, self.terminated, self.truncated, self.steps = (
            array(fields[name]) for name in ("reward", "terminated", "truncated", "steps"))
        self.outputs = [array(field) for field in fields["observation"]]
        self.attached = True

    def action_of(self, row):
        space, value = self.action_space, self.action[row]
        if isinstance(space, gymnasium.spaces.Box):
            return value.astype(space.dtype).reshape(space.shape)
        if isinstance(space, gymnasium.spaces.Discrete):
            return space.dtype.type(value)
        return value.astype(space.dtype).reshape(space.shape)

    def write_observation(self, row, observation, info):
        values = list(values_of(self.space, observation))
        if self.has_mask:
            if "action_mask" not in info:
                raise Mistake("the info of this step has no action_mask, that of the first reset had one")
            values.append(info["action_mask"])
        for leaf, value, output in zip(self.leaves, values, self.outputs):
            value = np.asarray(value)
            if value.shape != tuple(leaf["shape"]):
                raise Mistake(f"the observation {leaf['name']} has the shape {value.shape}, its space says "
                              f"{tuple(leaf['shape'])}")
            if leaf["dtype"] in ("U8", "I64") and value.size and not self.inside(leaf, value):
                raise Mistake(f"the observation {leaf['name']} leaves the bounds of its space")
            output[row] = value

    @staticmethod
    def inside(leaf, value):
        low, high = (np.array([np.nan if x is None else x for x in leaf[side]]) for side in ("low", "high"))
        flat = value.ravel()
        return not (np.any(flat < low) or np.any(flat > high))

    def advance(self):
        for row, environment in enumerate(self.environments):
            if self.command[row] == SKIP:
                continue
            try:
                if self.command[row] == RESET:
                    observation, info = environment.reset(seed=int(self.seed[row]))
                    self.reward[row], self.terminated[row], self.truncated[row], self.steps[row] = 0, 0, 0, 0
                else:
                    total, steps, terminated, truncated = 0.0, 0, False, False
                    action = self.action_of(row)
                    while steps < self.action_repeat and not (terminated or truncated):
                        observation, reward, terminated, truncated, info = environment.step(action)
                        total += float(reward)
                        steps += 1
                    self.reward[row], self.terminated[row], self.truncated[row], self.steps[row] = (
                        total, bool(terminated), bool(truncated), steps)
                self.write_observation(row, observation, info)
            except Mistake as error:
                return {"error": str(error), "row": row}
            except Exception as error:  # noqa: BLE001: whatever the environment throws ends the run with its name
                traceback.print_exc()
                return {"error": f"{type(error).__name__}: {error}", "row": row}
        return None


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
                rows = Rows(**message["make"])
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
        mistake = rows.advance()
        if mistake is not None:
            send(mistake)
        os.write(done, b"\x01" if mistake is None else b"\x02")


if __name__ == "__main__":
    main()
