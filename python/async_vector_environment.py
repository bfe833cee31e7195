"""Gymnasium's AsyncVectorEnv beside weft's bridge, for `weft bench environments`.

    python async_vector_environment.py ID WORKERS

steps as many environments as workers, each in a process. Each line of its input is a number of seconds to step with
random actions; the answer is a line with the steps a second, of all environments together. The first line is "ready", or
why there is nothing to measure.
"""
import sys
import time


def main(identifier, workers):
    try:
        import gymnasium
        import zmq  # noqa: F401  of the bridge
        envs = gymnasium.vector.AsyncVectorEnv([lambda: gymnasium.make(identifier)] * workers)
    except Exception as problem:
        print(f"{type(problem).__name__}: {problem}".splitlines()[0], flush=True)
        return
    envs.action_space.seed(1)
    actions = [envs.action_space.sample() for _ in range(1000)]
    envs.reset(seed=1)
    print("ready", flush=True)
    for line in sys.stdin:
        start, spent, steps = time.perf_counter(), 0.0, 0
        while spent < float(line):
            envs.step(actions[steps % len(actions)])
            steps += 1
            spent = time.perf_counter() - start
        print(workers * steps / spent, flush=True)
    envs.close()


main(sys.argv[1], int(sys.argv[2]))
