"""Every tensor of GGUF files that the library gguf knows, in a file of each architecture: used, or refused by name."""

import re

import heed
import numpy as np
import pytest

gguf = pytest.importorskip("gguf")

from gguf_files import ARCHITECTURES, GgufModel, is_close, member_of  # noqa: E402

IDS = [1, 7, 12, 7, 30, 39, 4, 12, 2, 25, 18, 3]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def file(request, tmp_path_factory) -> GgufModel:
    return GgufModel(request.param, tmp_path_factory.mktemp("gguf"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> GgufModel:
    return GgufModel("llama", tmp_path_factory.mktemp("gguf"))


LONG_ROPE = ("rope_factors_long.weight", "rope_factors_short.weight")  # test_gguf_families.py has them


def test_every_tensor_is_used_or_refused(file: GgufModel) -> None:
    kinds = set(gguf.TENSOR_NAMES)
    if file.architecture != "llama":  # saves time: the others use types that one of the architectures has
        kinds = {kind for other in ARCHITECTURES for kind in gguf.MODEL_TENSORS[gguf.MODEL_ARCH[member_of(other)]]}
    names = {gguf.TENSOR_NAMES[kind].format(bid=0) + ".weight" for kind in kinds} - file.tensors.keys()
    names -= {"output.weight", *LONG_ROPE} | ({"rope_freqs.weight"} if file.architecture == "llama" else set())
    assert len(names) > (300 if file.architecture == "llama" else 10)
    for name in sorted(names):
        with pytest.raises(RuntimeError, match=f"tensor '?{re.escape(name)}"):
            heed.models.load(file.write(tensors={name: np.ones(3, np.float32)}))


SO_ARE_ALL = {
    ("stablelm", "blk.0.ffn_norm.weight"): "blk.0.ffn_norm.bias",
    ("falcon", "blk.0.attn_norm_2.weight"): "blk.0.attn_norm_2.bias",
}


def test_every_tensor_is_needed(file: GgufModel) -> None:
    """Those that the graph has biases of, with their biases; a missing head is that of the tokens."""
    for name in file.tensors.keys() - {"output.weight", "token_types.weight"}:
        # Where the first layer tells whether there is such a norm, the others are too many.
        named = SO_ARE_ALL.get((file.architecture, name), name)
        with pytest.raises(RuntimeError, match=re.escape(named)):
            heed.models.load(file.write(tensors={name: None}))
    base = file.expected(IDS)
    for name in file.tensors:
        changed = file.tensors[name] * np.linspace(0.5, 1.5, file.tensors[name].shape[-1], dtype=np.float32)
        # Without rotation a bias of keys adds the same number to all scores of a query.
        is_idle = file.architecture == "bert" and name.endswith("attn_k.bias")
        assert is_close(file.found(IDS, tensors={name: changed}), base) == is_idle, name


def test_divisors_of_llama(llama: GgufModel) -> None:
    divisors = np.array([1, 2, 4, 8], np.float32)
    assert not is_close(llama.found(IDS, tensors={"rope_freqs.weight": divisors}), llama.expected(IDS))


EXTRA = ["attn_q.bias", "attn_output.bias", "ffn_down.bias", "attn_norm.bias", "attn_q.scale"]


@pytest.mark.parametrize("extra", EXTRA)
def test_biases_that_a_graph_lacks(llama: GgufModel, extra: str) -> None:
    """Llama's products may have biases, each kind in all layers; its norms have none."""
    name = f"blk.1.{extra}"
    with pytest.raises(RuntimeError, match=re.escape(name)):
        heed.models.load(llama.write(tensors={name: np.ones(32, np.float32)}))
