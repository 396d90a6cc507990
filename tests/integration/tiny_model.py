"""A Llama of 300,000 random parameters on disk, in the files of Hugging Face, whose replies have a form but no sense.

A random model goes on for ever. In this one every token says by itself what is likely to come next: a word of `WORDS`
after the colon that a prompt ends with, and after anything else the end, or what closes a JSON object where a grammar
forbids the end. What the attention makes of the prompt decides between the words.
"""

import json
import struct
from pathlib import Path

import numpy as np

__all__ = ["WORDS", "write_model"]

WORDS = ("Yes", "No")
_END = "</s>"
_CHAT = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}Reply:"
_HIDDEN, _HEADS, _LAYERS = 128, 2, 2
_LIKELY = {_END: 10.0, '"': 8.0, "}": 7.0, ",": 6.0, ":": 5.0, "{": 4.0}


def _bytes() -> list[str]:
    """Return the letter by which byte-level BPE writes each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(others)) for byte in range(256)]


def _write_tokenizer(folder: Path) -> list[str]:
    """Write a tokenizer of bytes and `WORDS`, and return its tokens."""
    merges = list(dict.fromkeys((word[:i], word[i]) for word in WORDS for i in range(1, len(word))))
    tokens = [*_bytes(), *(left + right for left, right in merges), _END]
    end = {"id": len(tokens) - 1, "content": _END, "special": True, "single_word": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{**end, "lstrip": False, "rstrip": False, "normalized": False}],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [list(merge) for merge in merges]},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": _END, "chat_template": _CHAT}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokens


def _weights(tokens: list[str]) -> dict[str, np.ndarray]:
    """Return the weights: the first two numbers of a token's embedding say whether it is a colon."""
    rng = np.random.default_rng(3)
    size = len(tokens)

    def drawn(*shape: int, scale: float = 1.0) -> np.ndarray:
        return rng.normal(0, scale, shape)

    embedding = drawn(size, _HIDDEN, scale=0.5)
    embedding[:, 0], embedding[:, 1] = 0, 8
    embedding[tokens.index(":"), :2] = 8, 0
    head = drawn(size, _HIDDEN, scale=0.02)
    head[:, :2] = 0
    for token, likely in _LIKELY.items():
        head[tokens.index(token), 1] = likely
    head[tokens.index("{"), 0] = 4
    head[list(b" \t\r\n"), :2] = -4
    cue = embedding[tokens.index(":")]
    for word in WORDS:
        drawn_to = head[tokens.index(word)]
        drawn_to -= cue * (drawn_to @ cue) / (cue @ cue)  # the colon itself is for none of them
        drawn_to *= 20
        drawn_to[0] = 10
    weights = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": np.ones(_HIDDEN)}
    for layer in range(_LAYERS):
        at = f"model.layers.{layer}"
        for name in "qkvo":
            matrix = drawn(_HIDDEN, _HIDDEN, scale=0.3 if name in "qk" else 0.15)
            if name == "o":
                matrix[:2] = 0
            weights[f"{at}.self_attn.{name}_proj.weight"] = matrix
        for name in ("gate", "up", "down"):
            weights[f"{at}.mlp.{name}_proj.weight"] = np.zeros((_HIDDEN, _HIDDEN))
        for name in ("input", "post_attention"):
            weights[f"{at}.{name}_layernorm.weight"] = np.ones(_HIDDEN)
    return weights


def write_model(folder: Path) -> None:
    """Write the model into a folder that exists."""
    tokens = _write_tokenizer(folder)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(tokens),
        "hidden_size": _HIDDEN,
        "intermediate_size": _HIDDEN,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "max_position_embeddings": 16384,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": tokens.index(_END),
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    # The form of safetensors: the length of a header of JSON, the header, the numbers.
    header, data = {}, b""
    for name, matrix in _weights(tokens).items():
        part = matrix.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": matrix.shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
