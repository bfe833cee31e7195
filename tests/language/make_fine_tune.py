"""Makes tests/data/language/fine_tune.json: losses of a short fine-tune of a tiny Llama.

    python tests/language/make_fine_tune.py REFERENCE/language/models/llama_gqa_untied OUT.json

The model is written once more in JAX, float64 throughout, with gradients by automatic
differentiation; its first loss must be the recorded one. Steps are AdamW (Loshchilov and Hutter
2019) with global clipping of the gradients, as torch does them.
"""
import json
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
STEPS = 12
SETTINGS = {"learning_rate": 2e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
            "weight_decay": 0.01, "max_gradient_norm": 1.0}


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def norm(x, weight, epsilon):
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * weight


def turn(x, positions, theta):
    """x [B, T, heads, D]: the halves of each head by the angles of the positions."""
    half = x.shape[-1] // 2
    angle = positions[..., None] * theta ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, :, None], jnp.sin(angle)[:, :, None]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def loss_of(w, config, batch):
    ids, mask, labels = (batch[n + "_right"] for n in ("input_ids", "attention_mask", "labels"))
    rows, steps = ids.shape
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    d, epsilon = config["head_dim"], config["rms_norm_eps"]
    positions = jnp.arange(steps)[None].repeat(rows, 0)
    allowed = jnp.tril(jnp.ones((steps, steps), bool))[None, None] & (mask[:, None, None, :] == 1)
    x = w["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        y = norm(x, w[at + "input_layernorm.weight"], epsilon)
        q, k, v = (y @ w[at + f"self_attn.{n}_proj.weight"].T for n in "qkv")
        q = turn(q.reshape(rows, steps, heads, d), positions, config["rope_theta"])
        k = turn(k.reshape(rows, steps, kv_heads, d), positions, config["rope_theta"])
        k = k.repeat(heads // kv_heads, 2)
        v = v.reshape(rows, steps, kv_heads, d).repeat(heads // kv_heads, 2)
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / d ** 0.5
        weights = jax.nn.softmax(jnp.where(allowed, scores, -jnp.inf), -1)
        y = jnp.einsum("bhts,bshd->bthd", weights, v).reshape(rows, steps, heads * d)
        x = x + y @ w[at + "self_attn.o_proj.weight"].T
        y = norm(x, w[at + "post_attention_layernorm.weight"], epsilon)
        gate, up = (y @ w[at + f"mlp.{n}_proj.weight"].T for n in ("gate", "up"))
        x = x + (jax.nn.silu(gate) * up) @ w[at + "mlp.down_proj.weight"].T
    logits = norm(x, w["model.norm.weight"], epsilon) @ w["lm_head.weight"].T
    log_p = jax.nn.log_softmax(logits[:, :-1], -1)
    wanted = labels[:, 1:] >= 0
    picked = jnp.take_along_axis(log_p, jnp.maximum(labels[:, 1:], 0)[..., None], -1)[..., 0]
    return -jnp.sum(jnp.where(wanted, picked, 0)) / jnp.sum(wanted)


def main(folder, out):
    with open(folder + "/config.json") as file:
        config = json.load(file)
    recorded = read(folder + "/expected.safetensors")
    stored = read(folder + "/model.safetensors")
    weights = {k: jnp.asarray(v, jnp.float64) for k, v in stored.items()}
    step = jax.jit(jax.value_and_grad(lambda w: loss_of(w, config, recorded)))
    mean = {k: jnp.zeros_like(v) for k, v in weights.items()}
    square = {k: jnp.zeros_like(v) for k, v in weights.items()}
    losses, norms = [], []
    s = SETTINGS
    for t in range(1, STEPS + 1):
        loss, gradient = step(weights)
        losses.append(float(loss))
        norms.append(float(jnp.sqrt(sum(jnp.sum(g * g) for g in gradient.values()))))
        scale = min(1.0, s["max_gradient_norm"] / (norms[-1] + 1e-6))
        for k, w in weights.items():
            g = gradient[k] * scale
            mean[k] = s["beta1"] * mean[k] + (1 - s["beta1"]) * g
            square[k] = s["beta2"] * square[k] + (1 - s["beta2"]) * g * g
            w = w * (1 - s["learning_rate"] * s["weight_decay"])
            root = jnp.sqrt(square[k] / (1 - s["beta2"] ** t)) + s["epsilon"]
            weights[k] = w - s["learning_rate"] * mean[k] / (1 - s["beta1"] ** t) / root
    losses.append(float(step(weights)[0]))
    difference = abs(losses[0] - float(recorded["loss"]))
    print(f"first loss {losses[0]:.9f}, {difference:.2g} from the recorded one; last {losses[-1]}")
    assert difference < 1e-9
    with open(out, "w") as file:
        json.dump({"model": "llama_gqa_untied", **SETTINGS, "losses": losses,
                   "gradient_norms": norms}, file, indent=1)
        file.write("\n")


main(*sys.argv[1:])
