"""Families whose layers differ, from GGUF files: SmolLM3 and Gemma 3 beside transformers, and what Gemma's keys mean; and
other models of families, whose tensors tell what they compute."""

import dataclasses
import pathlib
import re
from collections.abc import Callable
from typing import Any

import heed
import numpy as np
import pytest
import transformers

pytest.importorskip("gguf")

from gguf_files import DECODER, DEEP, ENDS, FALCON, PLAIN, GgufModel, is_close  # noqa: E402
from test_gguf_keys import IDS, known_keys  # noqa: E402


@pytest.fixture(scope="module", params=DEEP)
def file(request, tmp_path_factory) -> GgufModel:
    return GgufModel(request.param, tmp_path_factory.mktemp("gguf"))


def test_logits_are_those_of_transformers(file: GgufModel) -> None:
    assert is_close(file.found(IDS), file.expected(IDS))


def test_greedy_tokens_are_those_of_transformers(file: GgufModel) -> None:
    model = heed.models.load(file.write())
    ids = list(IDS)
    for _ in range(12):
        ids.append(int(np.argmax(file.expected(ids)[-1])))
    assert model.generate(IDS, max_tokens=12).ids == ids[len(IDS) :]


GEMMA3 = [
    ({"attention.sliding_window": 2}, {"sliding_window": 2}),
    ({"attention.sliding_window": None, "final_logit_softcapping": 2.0}, None),
    ({"final_logit_softcapping": 2.0}, {"final_logit_softcapping": 2.0}),
    ({"final_logit_softcapping": 0.0}, {}),
    ({"rope.freq_base_swa": 10000.0}, {}),
    ({"attention.layer_norm_rms_epsilon": 0.5}, {"rms_norm_eps": 0.5}),
]


def test_keys_of_gemma_3(tmp_path) -> None:
    file = GgufModel("gemma3", tmp_path)
    base = file.expected(IDS)
    for keys, settings in GEMMA3:
        found = file.found(IDS, {f"gemma3.{key}": value for key, value in keys.items()})
        if settings is None:
            assert not is_close(found, base), keys
            continue
        expected = file.expected(IDS, **settings)
        assert is_close(found, expected), keys
        assert is_close(base, expected) == (not settings), keys


def test_every_other_key_of_the_architecture_is_refused(file: GgufModel) -> None:
    of_llama = ("rope.", "attention.head", "attention.key_length", "attention.value_length", "attention.causal", "expert_")
    plain = {"block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size", "pooling_type"}
    idle = {"tensor_data_layout", "use_parallel_residual", "attention.layer_norm_epsilon"}
    own = {key.removeprefix(f"{file.architecture}.") for key in file.keys} | plain | idle
    own |= {"attention.sliding_window", *(key for keys, _ in GEMMA3 for key in keys)}
    others = {key.removeprefix("{arch}.") for key in known_keys() if key.startswith("{arch}.")}
    others = {key for key in others if not key.startswith(of_llama)} - own
    assert len(others) > 60
    for key in sorted(others):
        name = f"{file.architecture}.{key}".format(dense="dense_2")
        with pytest.raises((ValueError, RuntimeError), match=f"{re.escape(name)} is 7, expected"):
            heed.models.load(file.write({name: 7}))


@dataclasses.dataclass(frozen=True)
class Variant:
    """Another model of an architecture, and its keys that are not those of the table."""

    architecture: str
    make: Callable[[], Any]
    keys: dict[str, Any] = dataclasses.field(default_factory=dict)


VARIANTS = {
    # The name map of the library has its own places for Mixtral's.
    "llama, experts": Variant(
        "llama",
        lambda: transformers.MixtralForCausalLM(
            transformers.MixtralConfig(
                **DECODER, **ENDS, rms_norm_eps=1e-5, rope_theta=10000.0, num_local_experts=3, num_experts_per_tok=2
            )
        ),
        {"expert_count": 3, "expert_used_count": 2},
    ),
    "llama, heads wider than the embedding": Variant(
        "llama",
        lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, **ENDS, rms_norm_eps=1e-5, head_dim=16)),
        {"attention.key_length": 16, "attention.value_length": 16, "rope.dimension_count": 16},
    ),
    "gptneox, parts in turn": Variant(
        "gptneox",
        lambda: transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(**PLAIN, **ENDS, rotary_pct=0.5, use_parallel_residual=False)
        ),
        {"use_parallel_residual": False},
    ),
    "stablelm, biases": Variant(
        "stablelm",
        lambda: transformers.StableLmForCausalLM(
            transformers.StableLmConfig(**DECODER, **ENDS, partial_rotary_factor=0.5, use_qkv_bias=True)
        ),
    ),
    "stablelm, norms of heads": Variant(
        "stablelm",
        lambda: transformers.StableLmForCausalLM(
            transformers.StableLmConfig(
                **DECODER, **ENDS, partial_rotary_factor=0.5, qk_layernorm=True, use_parallel_residual=True
            )
        ),
        {"use_parallel_residual": True},
    ),
    "command-r, norms of heads": Variant(
        "command-r",
        lambda: transformers.CohereForCausalLM(
            transformers.CohereConfig(**DECODER, **ENDS, logit_scale=0.25, rope_theta=10000.0, use_qk_norm=True)
        ),
    ),
    "falcon, one key": Variant(
        "falcon",
        lambda: transformers.FalconForCausalLM(transformers.FalconConfig(**FALCON)),
        {"attention.head_count_kv": 1},
    ),
    "granite, biases": Variant(
        "granite",
        lambda: transformers.GraniteForCausalLM(
            transformers.GraniteConfig(
                **DECODER,
                **ENDS,
                rms_norm_eps=1e-5,
                embedding_multiplier=1.5,
                attention_multiplier=0.4,
                residual_multiplier=0.7,
                logits_scaling=1.25,
                attention_bias=True,
                mlp_bias=True,
            )
        ),
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_other_models_of_a_family(name: str, tmp_path: pathlib.Path) -> None:
    variant = VARIANTS[name]
    file = GgufModel(variant.architecture, tmp_path, variant.make, variant.keys)
    assert is_close(file.found(IDS), file.expected(IDS))


def test_one_product_for_query_key_and_value_of_phi(tmp_path: pathlib.Path) -> None:
    """Files have one or three."""
    file = GgufModel("phi2", tmp_path)
    expected = file.expected(IDS)
    for layer in range(2):
        for kind in ("weight", "bias"):
            parts = [file.tensors.pop(f"blk.{layer}.attn_{part}.{kind}") for part in "qkv"]
            file.tensors[f"blk.{layer}.attn_qkv.{kind}"] = np.concatenate(parts)
    assert is_close(file.found(IDS), expected)


SHORT, LONG = [1.0, 1.5], [2.0, 5.0]
LENGTH = 10  # of short texts


@pytest.fixture(scope="module")
def long_rope(tmp_path_factory) -> GgufModel:
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = transformers.Phi3Config(
        **DECODER,
        **ENDS,
        rms_norm_eps=1e-5,
        original_max_position_embeddings=LENGTH,
        rope_parameters={**rope, "short_factor": SHORT, "long_factor": LONG, "attention_factor": 1.25},
    )
    keys = {
        "attention.sliding_window": 0,
        "rope.scaling.original_context_length": LENGTH,
        "rope.scaling.attn_factor": 1.25,
    }
    file = GgufModel("phi3", tmp_path_factory.mktemp("gguf"), lambda: transformers.Phi3ForCausalLM(config), keys)
    for name, factors in {"short": SHORT, "long": LONG}.items():
        file.tensors[f"rope_factors_{name}.weight"] = np.array(factors, np.float32)
    return file


def test_long_rope_of_phi3(long_rope: GgufModel) -> None:
    for length in (LENGTH - 1, LENGTH, LENGTH + 1):
        assert is_close(long_rope.found(IDS[:length]), long_rope.expected(IDS[:length])), length
    # A text that grows longer is turned anew.
    ids = list(IDS[: LENGTH - 2])
    for _ in range(8):
        ids.append(int(np.argmax(long_rope.expected(ids)[-1])))
    assert heed.models.load(long_rope.write()).generate(IDS[: LENGTH - 2], max_tokens=8).ids == ids[LENGTH - 2 :]


BAD_LONG_ROPE = [
    ({"rope.scaling.type": "linear"}, {}, "phi3.rope.scaling.type is 'linear', expected longrope"),
    ({"rope.scaling.factor": 4.0}, {}, "phi3.rope.scaling.factor is 4, expected 1"),
    ({"rope.scaling.attn_factor": 0.0}, {}, "phi3.rope.scaling.attn_factor is 0, expected a positive number"),
    ({}, {"rope_factors_long.weight": None}, "rope_factors_long.weight"),
    ({}, {"rope_factors_short.weight": None}, "rope_factors_short.weight"),
    ({}, {"rope_factors_short.weight": np.ones(4, np.float32)}, r"rope_factors_short.weight has shape \[4\], expected \[2\]"),
    ({}, {"rope_factors_long.weight": np.zeros(2, np.float32)}, "rope_factors_long.weight holds 0, expected positive"),
]


@pytest.mark.parametrize(("keys", "tensors", "message"), BAD_LONG_ROPE)
def test_what_long_rope_lacks_is_refused(long_rope: GgufModel, keys, tensors, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        heed.models.load(long_rope.write({f"phi3.{key}": value for key, value in keys.items()}, tensors))
    same = long_rope.write({"phi3.rope.scaling.type": "longrope"})
    assert is_close(heed.models.load(same).logits(IDS), long_rope.expected(IDS))
