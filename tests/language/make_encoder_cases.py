"""Makes the recordings of text encoders: embeddings by the library transformers (4.46.3, its BERT
in Flax 0.10.0 on jax 0.4.35, in float64).

    python tests/language/make_encoder_cases.py OUT           # the tiny encoder, its recordings
    python tests/language/make_encoder_cases.py OUT MINILM    # those of all-MiniLM-L6-v2, a folder

OUT is tests/data/language. Texts go through the library tokenizers one at a time, cut to the
encoder's longest text; poolings are those of sentence-transformers, written out. The tiny encoder
has random weights in F16, biases and norms included, under the names of a BertForMaskedLM, with
the heads that an encoder does not need.
"""
import json
import pathlib
import struct
import sys

import jax
import numpy as np
from tokenizers import Tokenizer
from transformers import BertConfig, FlaxBertModel

jax.config.update("jax_enable_x64", True)
TEXTS = ["", "The capital of France is Paris.", "paris, France's capital!",
         "  Bananas\tare\nyellow  ",
         "Caf\u00e9 \u2013 na\u00efve \u6771\u4eac \U0001F642 \u00c5ngstr\u00f6m",
         "[SEP] a [MASK] \u0001 token", "unbelievable antidisestablishmentarianism " * 3,
         " ".join(f"word {i} of a long text" for i in range(120))]
TINY = {"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 72,
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "hidden_act": "gelu", "max_position_embeddings": 96,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "hidden_dropout_prob": 0.1, "position_embedding_type": "absolute"}
LONGEST = 80  # more than a page of keys


def read(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], types[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write(path, tensors):
    header, bodies, at = {}, [], 0
    for name in sorted(tensors):
        body = tensors[name].tobytes()
        header[name] = {"dtype": {"f": "F16", "i": "I64"}[tensors[name].dtype.kind],
                        "shape": list(tensors[name].shape), "data_offsets": [at, at + len(body)]}
        bodies.append(body)
        at += len(body)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(bodies))


def torch_leaves(tree, prefix=""):
    """(torch's name, path in the tree, transposed) of each parameter of Flax's BERT."""
    for key, value in tree.items():
        if isinstance(value, dict):
            for name, path, transposed in torch_leaves(value, prefix + key + "."):
                yield name, [key] + path, transposed
        else:
            yield prefix + ("bias" if key == "bias" else "weight"), [key], key == "kernel"


def model_of(config, tensors):
    model = FlaxBertModel(BertConfig(**config), dtype=jax.numpy.float64,
                          add_pooling_layer=False)
    tree = jax.tree_util.tree_map(np.asarray, dict(model.params))
    for name, path, transposed in torch_leaves(tree):
        values = tensors.get(name, tensors.get("bert." + name)).astype(np.float64)
        at = tree
        for key in path[:-1]:
            at = at[key]
        assert at[path[-1]].shape == (values.T if transposed else values).shape, name
        at[path[-1]] = values.T if transposed else values

    def rows_of(ids):
        return np.asarray(model(np.array([ids]), params=tree).last_hidden_state[0])
    return rows_of


def record(path, texts, embeddings, tolerance):
    rows = ["[" + ",".join(f"{value:.9g}" for value in row) + "]" for row in embeddings]
    path.write_text(f'{{"tolerance": {tolerance},\n "texts": {json.dumps(texts)},\n'
                    ' "embeddings": [\n  ' + ",\n  ".join(rows) + "]}\n")


def embed(folder, config, longest, pool, texts=TEXTS):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    rows_of = model_of(config, read(folder / "model.safetensors"))
    return [pool(rows_of(tokenizer.encode(text).ids)) for text in texts]


def unit_mean(rows):
    mean = rows.mean(0)
    return mean / np.linalg.norm(mean)


def tiny_tokenizer():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "!", "'"]
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary += list(letters) + ["##" + letter for letter in letters]
    vocabulary += ["the", "of", "word", "long", "##ing", "##ment", "paris", "0", "1", "##0", "##1"]
    vocabulary = vocabulary[:TINY["vocab_size"]]
    special = [{"id": i, "content": vocabulary[i], "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True} for i in range(5)]
    begin, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    first, second = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    return {
        "version": "1.0",
        # Of a batch: not what one text is cut or filled to.
        "truncation": {"max_length": 7, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
                    "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True,
                       "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [begin, first, end],
            "pair": [begin, first, end, second, end],
            "special_tokens": {
                name: {"id": name, "ids": [vocabulary.index(name)], "tokens": [name]}
                for name in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {token: i for i, token in enumerate(vocabulary)}}}


def make_tiny(folder):
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)

    def dump(name, value):
        (folder / name).write_text(json.dumps(value, indent=1) + "\n")
    dump("config.json", TINY)
    dump("tokenizer.json", tiny_tokenizer())
    dump("tokenizer_config.json", {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
                                   "pad_token": "[PAD]", "model_max_length": 512})
    dump("sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    dump("modules.json", [{"idx": i, "name": str(i), "path": path,
                           "type": "sentence_transformers.models." + kind}
                          for i, (path, kind) in enumerate(modules)])
    dump("1_Pooling/config.json",
         {"word_embedding_dimension": 32, "pooling_mode_cls_token": False,
          "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
          "pooling_mode_mean_sqrt_len_tokens": False})
    random = np.random.default_rng(7)
    model = FlaxBertModel(BertConfig(**TINY), add_pooling_layer=False)
    tensors = {"bert.embeddings.position_ids": np.arange(96, dtype=np.int64)[None]}
    tree = jax.tree_util.tree_map(np.asarray, dict(model.params))
    for name, path, transposed in torch_leaves(tree):
        at = tree
        for key in path:
            at = at[key]
        shape = at.T.shape if transposed else at.shape
        values = random.normal(0, 0.3, shape) + (path[-1] == "scale")
        tensors["bert." + name] = values.astype(np.float16)
    tensors["bert.pooler.dense.bias"] = np.zeros(32, np.float16)
    tensors["cls.predictions.bias"] = np.zeros(72, np.float16)
    write(folder / "model.safetensors", tensors)


def main():
    out = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        folder = pathlib.Path(sys.argv[2])
        config = json.loads((folder / "config.json").read_text())
        sentences = json.loads((folder / "sentence_bert_config.json").read_text())
        embeddings = embed(folder, config, sentences["max_seq_length"], unit_mean)
        record(out / "minilm.json", TEXTS, embeddings, 1e-6)
        return
    folder = out / "encoder"
    make_tiny(folder)
    record(out / "encoder_mean.json", TEXTS, embed(folder, TINY, LONGEST, unit_mean), 1e-6)
    few = TEXTS[:4]
    first = embed(folder, TINY, LONGEST, lambda rows: rows[0], few)
    record(out / "encoder_first.json", few, first, 1e-5)
    largest = embed(folder, TINY | {"hidden_act": "gelu_new"}, LONGEST, lambda rows: rows.max(0))
    record(out / "encoder_max_gelu_new.json", TEXTS, largest, 1e-5)


main()
