"""Makes tests/data/language/bpe_merges.json: what the `tokenizers` library learns from bpe_text.txt.

    python tests/language/make_bpe_merges.py tests/data/language    (tokenizers 0.23.3)
"""
import json
import sys

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def train(folder, pre, vocabulary, specials):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre
    tokenizer.train([folder + "/bpe_text.txt"], trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, special_tokens=specials, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocabulary": vocabulary, "specials": specials,
            "merges": [" ".join(m) for m in model["merges"]],
            "tokens": sorted(model["vocab"], key=model["vocab"].get)}


def main(folder):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(QWEN2), behavior="isolated")
    page = {
        "gpt-2": train(folder, pre_tokenizers.ByteLevel(add_prefix_space=False), 420, ["<|end|>"]),
        "qwen2": train(folder, pre_tokenizers.Sequence([split, byte_level]), 350, ["<s>", "</s>"]),
    }
    with open(folder + "/bpe_merges.json", "w", encoding="utf-8") as file:
        json.dump(page, file, ensure_ascii=False, indent=0)
        file.write("\n")


main(sys.argv[1])
