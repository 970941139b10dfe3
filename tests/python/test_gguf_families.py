"""Families whose layers differ, from GGUF files: SmolLM3 and Gemma 3 beside transformers, and what Gemma's keys mean."""

import re

import heed
import numpy as np
import pytest

pytest.importorskip("gguf")

from gguf_files import DEEP, GgufModel, is_close  # noqa: E402
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
