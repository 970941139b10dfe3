"""Frequencies of rotary embeddings, and embeddings with them, compared with those of transformers, live."""

import math
import re

import numpy as np
import pytest
import torch

import heed

transformers = pytest.importorskip("transformers")

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb  # noqa: E402
from transformers.models.phi.modeling_phi import PhiRotaryEmbedding  # noqa: E402

# The divisors of Phi-3 (vision, 128k) for its 48 pairs.
PHI3_SHORT = (
    [1.05] * 3 + [1.1] * 3 + [1.25] * 2 + [1.4, 1.45, 1.55, 1.85, 1.9] + [2.0] * 19 + [2.1] * 2 + [2.2] + [2.35] * 4
    + [2.4] * 2 + [2.65, 2.7, 2.9, 2.95] + [3.05] * 3
)  # fmt: skip
PHI3_LONG = [
    1.03, 1.05, 1.05, 1.08, 1.23, 1.23, 1.3, 1.45, 1.6, 1.65, 1.9, 2.86, 3.69, 5.42, 5.49, 5.49, 9.09, 11.58, 15.66, 15.77,
    15.79, 18.36, 21.99, 23.08, 30.01, 32.35, 32.59, 35.56, 39.95, 53.84, 56.2, 57.95, 59.29, 59.77, 59.92, 61.19, 61.96,
    62.5, 63.37, 63.48, 63.48, 63.66, 63.85, 64.08, 64.76, 64.8, 64.81, 64.81,
]  # fmt: skip

LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
QWEN_YARN = {
    "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768,
}  # fmt: skip
DEEPSEEK_YARN = {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096,
    "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.707, "mscale_all_dim": 1.0,
}  # fmt: skip
GPT_OSS_YARN = {
    "rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096,
    "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
}  # fmt: skip
PHI3 = {
    "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": PHI3_SHORT, "long_factor": PHI3_LONG,
    "original_max_position_embeddings": 4096,
}  # fmt: skip

# The scaling from the model's configuration, head_dim, max_position_embeddings and the part of rotated dimensions.
MODELS = {
    "llama-2-7b": ({"rope_type": "default", "rope_theta": 10000.0}, 128, 4096, 1.0),
    "longchat-7b-16k": ({"rope_type": "linear", "rope_theta": 10000.0, "factor": 8.0}, 128, 16384, 1.0),
    "dynamic-ntk": ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 128, 4096, 1.0),
    "llama-3.1-8b": (LLAMA3, 128, 131072, 1.0),
    "llama-3.2-1b": (LLAMA3 | {"factor": 32.0}, 64, 131072, 1.0),
    "qwen2-7b-yarn": (QWEN_YARN, 128, 131072, 1.0),
    "deepseek-v2-yarn": (DEEPSEEK_YARN, 64, 163840, 1.0),
    "gpt-oss-20b": (GPT_OSS_YARN, 64, 131072, 1.0),
    "yarn-attention-factor": (QWEN_YARN | {"attention_factor": 1.3}, 128, 131072, 1.0),
    "phi-3-128k": (PHI3, 96, 131072, 1.0),
    "phi-3-attention-factor": (PHI3 | {"attention_factor": 1.4}, 96, 131072, 1.0),
    "partial-default": ({"rope_type": "default", "rope_theta": 10000.0}, 128, 4096, 0.25),
    "partial-linear": ({"rope_type": "linear", "rope_theta": 10000.0, "factor": 8.0}, 128, 16384, 0.5),
    "partial-dynamic": ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}, 80, 2048, 0.4),
    "partial-llama3": (LLAMA3, 128, 131072, 0.5),
    "partial-yarn": (QWEN_YARN, 128, 131072, 0.5),
    "phi-4-mini-partial-longrope": (PHI3, 128, 131072, 0.75),
}
LENGTHS = [1, 4096, 4097, 30000, 131072]


def make_config(name: str):
    parameters, head_dim, max_len, share = MODELS[name]
    return transformers.LlamaConfig(
        hidden_size=2 * head_dim, num_attention_heads=2, head_dim=head_dim, max_position_embeddings=max_len,
        rope_parameters=parameters | {"partial_rotary_factor": share},
    )  # fmt: skip


def of_transformers(name: str, length: int) -> tuple[np.ndarray, float]:
    config, rope_type = make_config(name), MODELS[name][0]["rope_type"]
    if rope_type == "default":
        inv_freq, attention_factor = PhiRotaryEmbedding.compute_default_rope_parameters(config, seq_len=length)
    else:
        inv_freq, attention_factor = ROPE_INIT_FUNCTIONS[rope_type](config, torch.device("cpu"), seq_len=length)
    return inv_freq.double().numpy(), float(attention_factor)


def of_heed(name: str, length: int) -> heed.RotaryFrequencies:
    parameters, head_dim, max_len, share = MODELS[name]
    added = {}
    if parameters["rope_type"] == "dynamic":
        added = {"original_max_position_embeddings": max_len}
    if parameters["rope_type"] == "longrope":
        added = {"factor": max_len / parameters["original_max_position_embeddings"]}
    rotary_dim = len(parameters.get("short_factor", [])) * 2 or int(head_dim * share)
    return heed.rotary_frequencies(rotary_dim, length=length, **parameters, **added)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", MODELS)
def test_are_those_of_transformers(name: str, length: int) -> None:
    expected, attention_factor = of_transformers(name, length)
    found = of_heed(name, length)
    assert found.inv_freq.dtype == np.float64 and found.inv_freq.shape == expected.shape
    np.testing.assert_allclose(found.inv_freq, expected, rtol=1e-6, atol=0)
    assert math.isclose(found.attention_factor, attention_factor, rel_tol=1e-12)


def test_the_models_differ() -> None:
    """What is compared above would not do if a scaling had no effect."""
    for name, (parameters, _, _, _) in MODELS.items():
        found = of_heed(name, 30000)
        plain = heed.rotary_frequencies(2 * len(found.inv_freq), rope_theta=parameters["rope_theta"])
        assert (parameters["rope_type"] == "default") == np.allclose(found.inv_freq, plain.inv_freq, rtol=1e-3)
    for name in ("dynamic-ntk", "phi-3-128k"):
        assert not np.allclose(of_heed(name, 4096).inv_freq, of_heed(name, 4097).inv_freq, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["llama-2-7b", "llama-3.1-8b", "qwen2-7b-yarn"])
def test_embeddings_are_those_of_transformers(name: str) -> None:
    config = make_config(name)
    query, key = torch.randn(2, 1, 2, 50, config.head_dim, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(70, 120)[None]
    expected = apply_rotary_pos_emb(query, key, *LlamaRotaryEmbedding(config)(query, ids))
    inv_freq, attention_factor = of_heed(name, 120)
    angles = np.arange(120)[:, None] * inv_freq
    caches = [(attention_factor * part).astype(np.float32) for part in (np.cos(angles), np.sin(angles))]
    for x, wanted in zip((query, key), expected):
        found = heed.rotary_embedding(x, *caches, pairing="halves", position_ids=ids.numpy())
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-4)  # transformers' angles are float32


def test_none_is_not_given_and_older_names_are_known() -> None:
    given = of_heed("qwen2-7b-yarn", 1)
    again = heed.rotary_frequencies(128, **QWEN_YARN, attention_factor=None, beta_fast=None, mscale=None)
    np.testing.assert_array_equal(again.inv_freq, given.inv_freq)
    assert again.attention_factor == given.attention_factor
    phi3 = PHI3 | {"rope_type": "su", "factor": 32}
    np.testing.assert_array_equal(
        heed.rotary_frequencies(96, length=9, **phi3).inv_freq, of_heed("phi-3-128k", 9).inv_freq
    )


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ('rope_type is "ntk", expected default, linear, dynamic, yarn', {"rope_type": "ntk"}),
        ('rope_type "default" has no parameter factor, expected none', {"factor": 2.0}),
        ('rope_type "linear" needs factor', {"rope_type": "linear"}),
        ('rope_type "yarn" needs original_max_position_embeddings', {"rope_type": "yarn", "factor": 2.0}),
        ('rope_type "linear" has no parameter beta_fast, expected factor', {"rope_type": "linear", "factor": 2, "beta_fast": 1}),
        ("factor is 'two', expected a number", {"rope_type": "linear", "factor": "two"}),
        ("short_factor is 2, expected a list of numbers", PHI3 | {"short_factor": 2}),
        ('rope_type "longrope" needs factor', PHI3),
        (
            "length is not given, but DynamicNtkScaling depends",
            {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 4096},
        ),
        ("LongRopeScaling::short_factor is 48, expected rotary_dim / 2 = 2", PHI3 | {"factor": 32.0, "length": 1}),
        ("original_max_position_embeddings is 8192.5, expected an integer", LLAMA3 | {"original_max_position_embeddings": 8192.5}),
        ("Llama3Scaling::factor is 0.5, expected a number, at least 1", LLAMA3 | {"factor": 0.5}),
        ("base (rope_theta) is -1, expected a positive number", {"rope_theta": -1.0}),
    ],
)
def test_misuse_is_a_value_error(message: str, arguments: dict) -> None:
    with pytest.raises(ValueError, match="rotary_frequencies: .*" + re.escape(message)):
        heed.rotary_frequencies(4, **arguments)
