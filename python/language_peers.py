"""Other programs' language models beside weft's, for `weft bench language --peers`.

    python language_peers.py FOLDER THREADS

FOLDER holds one chat model as `hf` (a Hugging Face folder in f32), `f32.gguf`, `bf16.gguf` and `q4_1.gguf`. Each line of
the input is the name of a row of that bench; the answer is a JSON line with each peer's tokens per second, or seconds for
first_token: {"llama.cpp": 120.5, "torch": 40.1}. Peers are what this Python has: torch with transformers (and
peft for LoRA), and llama-cpp-python. The first line is "ready", or why there is nothing to measure.
"""
import contextlib
import importlib.util
import json
import os
import sys
import time
import warnings

PROMPT, NEW_TOKENS, VOCABULARY = 16, 48, 49152
FOLDER, THREADS = sys.argv[1], int(sys.argv[2])


class LlamaCpp:
    """llama.cpp by its own C interface: one context for each row."""
    name = "llama.cpp"

    def __init__(self):
        import llama_cpp
        import numpy
        self.api, self.numpy = llama_cpp, numpy
        self.log = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.log, None)
        llama_cpp.llama_backend_init()
        self.row = self.model = self.context = None

    def open(self, form, tokens, sequences):
        api = self.api
        settings = api.llama_model_default_params()
        settings.n_gpu_layers = 0
        settings.use_extra_bufts = False  # 0.3.36: its tiles of AMX end in an illegal instruction on a second thread
        self.model = api.llama_model_load_from_file(f"{FOLDER}/{form}.gguf".encode(), settings)
        settings = api.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = tokens, 512, 512
        settings.n_seq_max, settings.kv_unified = sequences, True
        settings.n_threads = settings.n_threads_batch = THREADS
        self.context = api.llama_init_from_model(self.model, settings)
        self.batch = api.llama_batch_init(512, 0, sequences)

    def close(self):
        if self.model is not None:
            self.api.llama_batch_free(self.batch)
            self.api.llama_free(self.context)
            self.api.llama_model_free(self.model)
        self.row = self.model = self.context = None

    def read(self, entries):
        """entries: (token, position, sequence, wanted). The most likely next token of each that is wanted."""
        batch = self.batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, wanted) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = sequence, wanted
        if self.api.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        rows = (self.api.llama_get_logits_ith(self.context, i) for i, entry in enumerate(entries) if entry[3])
        return [int(self.numpy.ctypeslib.as_array(row, (VOCABULARY,)).argmax()) for row in rows]

    def measure(self, kind, form, size):
        if kind == "first":
            self.close()
            start = time.perf_counter()
            self.open("q4_1", 64, 1)
            self.read([(1000, i, 0, i == 31) for i in range(32)])
            return time.perf_counter() - start
        form = form.removesuffix("_int8")  # it always rounds rows that meet quantised weights
        if kind not in ("decode", "prefill") or form not in ("f32", "bf16", "q4_1"):
            return None
        if self.row != (kind, form, size):
            self.close()
            sequences = size if kind == "decode" else 1
            self.open(form, 128 * sequences if kind == "decode" else 512, sequences)
            self.row = kind, form, size
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        if kind == "prefill":
            start = time.perf_counter()
            self.read([(t * 17 % VOCABULARY, t, 0, t == size - 1) for t in range(size)])
            return size / (time.perf_counter() - start)
        tokens = self.read([(100 + 37 * t + 11 * row, t, row, t == PROMPT - 1)
                            for row in range(size) for t in range(PROMPT)])
        start = time.perf_counter()
        for t in range(NEW_TOKENS):
            tokens = self.read([(token, PROMPT + t, row, True) for row, token in enumerate(tokens)])
        return size * NEW_TOKENS / (time.perf_counter() - start)


class Torch:
    """transformers' models in plain loops of torch, which are faster than its generate() and Trainer."""
    name = "torch"

    def __init__(self):
        import torch
        import transformers
        torch.set_num_threads(THREADS)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        warnings.simplefilter("ignore")
        self.torch, self.transformers = torch, transformers
        self.row = self.model = self.optimizer = None

    def close(self):
        self.row = self.model = self.optimizer = None

    def load(self, dtype):
        return self.transformers.AutoModelForCausalLM.from_pretrained(f"{FOLDER}/hf", dtype=dtype)

    def open(self, kind, form):
        torch = self.torch
        narrow = form == "bf16" and kind in ("decode", "prefill", "lora")
        if kind == "gpt2":
            self.model = self.transformers.GPT2LMHeadModel(self.transformers.GPT2Config())
        else:
            self.model = self.load(torch.bfloat16 if narrow else torch.float32)
        if kind == "lora":
            import peft
            self.model = peft.get_peft_model(self.model, peft.LoraConfig(
                r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"))
        if kind in ("lora", "finetune", "gpt2"):
            self.model.train()
            trained = [p for p in self.model.parameters() if p.requires_grad]
            self.optimizer = torch.optim.AdamW(trained, lr=1e-6, fused=True)

    def train(self, form, rows, length, vocabulary):
        torch = self.torch
        ids = torch.tensor([[(b * 131 + t * 17) % vocabulary for t in range(length)] for b in range(rows)])
        start = time.perf_counter()
        # Weights stay in f32 where products are narrow.
        with torch.autocast("cpu", torch.bfloat16) if form == "bf16" else contextlib.nullcontext():
            loss = self.model(input_ids=ids, labels=ids).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return rows * length / (time.perf_counter() - start)

    def measure(self, kind, form, size):
        torch = self.torch
        if kind == "first":
            self.close()
            start = time.perf_counter()
            model = self.load(torch.bfloat16)
            with torch.inference_mode():
                model(input_ids=torch.full((1, 32), 1000), logits_to_keep=1)
            return time.perf_counter() - start
        if form not in ("f32", "bf16"):
            return None
        if self.row != (kind, form):
            self.close()
            self.open(kind, form)
            self.row = kind, form
        if kind in ("finetune", "lora"):
            return self.train(form, 4, 256, VOCABULARY)
        if kind == "gpt2":
            return self.train(form, 4, 64, 50257)
        with torch.inference_mode():
            if kind == "prefill":
                ids = torch.tensor([[t * 17 % VOCABULARY for t in range(size)]])
                start = time.perf_counter()
                self.model(input_ids=ids, logits_to_keep=1)
                return size / (time.perf_counter() - start)
            ids = torch.tensor([[100 + 37 * t + 11 * row for t in range(PROMPT)] for row in range(size)])
            out = self.model(input_ids=ids, use_cache=True, logits_to_keep=1)
            start = time.perf_counter()
            for _ in range(NEW_TOKENS):
                ids = out.logits[:, -1:].argmax(-1)
                out = self.model(input_ids=ids, past_key_values=out.past_key_values, use_cache=True)
            return size * NEW_TOKENS / (time.perf_counter() - start)


def main():
    peers = [peer() for peer, packages in ((LlamaCpp, ["llama_cpp"]), (Torch, ["torch", "transformers", "peft"]))
             if all(importlib.util.find_spec(package) for package in packages)]
    if not peers:
        print("it has neither llama-cpp-python nor torch, transformers and peft", flush=True)
        return
    answers, sys.stdout = sys.stdout, sys.stderr  # packages write what they like
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        kind, _, rest = line.strip().partition("_")
        form, _, size = rest.rpartition("_")
        figures = {peer.name: peer.measure(kind, form, 0 if "x" in size or kind == "first" else int(size))
                   for peer in peers}
        print(json.dumps({name: figure for name, figure in figures.items() if figure}), file=answers, flush=True)


os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
main()
