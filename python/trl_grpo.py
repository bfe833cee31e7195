"""GRPO with TRL at the settings of configs/rlhf/letters_grpo.yaml, for `weft bench rlhf --peers`.

    python trl_grpo.py MODEL PROMPTS THREADS PRECISION STEPS SEED

MODEL is a Hugging Face folder, PROMPTS a JSONL file with "prompt" in each line, PRECISION bf16 (f32 weights, products
under autocast) or f32. The output is "ready", or why there is nothing to measure, and a line of JSON:
seconds of each step and, of them, of generation; rewards and divergences of each step; the most memory held.
"""
import json
import os
import resource
import sys
import tempfile
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def share_of_e(completions, **_):
    texts = [completion[0]["content"] for completion in completions]
    return [10 * text.count("e") / len(text) if text else 0.0 for text in texts]


def main(model, prompts, threads, precision, steps, seed):
    answers, sys.stdout = sys.stdout, sys.stderr  # packages write what they like
    warnings.simplefilter("ignore")
    try:
        import torch
        from datasets import Dataset
        from transformers import PrinterCallback, TrainerCallback
        from transformers.utils import logging
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as problem:
        print(f"{problem} (trl, transformers, torch and datasets are needed)", file=answers, flush=True)
        return
    print("ready", file=answers, flush=True)
    logging.disable_progress_bar()
    torch.set_num_threads(int(threads))
    times = {"seconds": [], "generate": []}

    class Trainer(GRPOTrainer):
        def _generate(self, *arguments, **named):
            start = time.perf_counter()
            answers = super()._generate(*arguments, **named)
            times["generate"].append(time.perf_counter() - start)
            return answers

    class Clock(TrainerCallback):
        def on_step_begin(self, *_, **__):
            self.start = time.perf_counter()

        def on_step_end(self, *_, **__):
            times["seconds"].append(time.perf_counter() - self.start)

    settings = GRPOConfig(
        output_dir=tempfile.gettempdir(), max_steps=int(steps), seed=int(seed), use_cpu=True, bf16=precision == "bf16",
        per_device_train_batch_size=32, num_generations=4, max_completion_length=32, beta=0.04, learning_rate=3e-5,
        lr_scheduler_type="constant_with_warmup", warmup_steps=5, gradient_checkpointing=False, logging_steps=1,
        save_strategy="no", report_to="none", disable_tqdm=True, model_init_kwargs={"dtype": "float32"})
    with open(prompts) as lines:
        rows = [{"prompt": json.loads(line)["prompt"]} for line in lines]
    trainer = Trainer(model=model, reward_funcs=share_of_e, args=settings, train_dataset=Dataset.from_list(rows),
                      callbacks=[Clock()])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    log = [entry for entry in trainer.state.log_history if "reward" in entry]
    print(json.dumps({**times, "rewards": [entry["reward"] for entry in log], "kl": [entry["kl"] for entry in log],
                      "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}),
          file=answers)


main(*sys.argv[1:])
