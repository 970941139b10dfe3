"""Every format of weights in GGUF files: its floats to the bit, and models whose matrices are stored in it."""

import pathlib
import subprocess

import gguf
import heed
import numpy as np
import pytest
import safetensors.numpy

from gguf_files import GgufModel

# Where the Float16 scales and minimums of a block are.
SCALES = {
    "Q8_0": (0,),
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
    "MXFP4": (),
    "TQ1_0": (52,),
    "TQ2_0": (64,),
}
# Products with few rows read these stored weights, and sum in another order than those of floats.
READ_AS_STORED = ("Q8_0", "Q4_0", "Q4_1")


def decoded(blocks: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(all="ignore"):  # of scales that are no numbers
        return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype(np.float32)


@pytest.mark.parametrize("name", SCALES)
def test_floats(build: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = np.random.default_rng(0).integers(0, 256, (500, 3 * size), np.uint8)
    for i in range(size):
        blocks[:256, i] = np.roll(np.arange(256), 7 * i)  # each byte has every value
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    program = build / "tests/python/probe/checkpoint_probe"
    subprocess.run([program, tmp_path / "m.gguf", tmp_path / "out"], check=True, timeout=300)
    found = safetensors.numpy.load_file(tmp_path / "out")["w"]
    expected = decoded(blocks, name)
    assert found.shape == expected.shape
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found.view("u4")[~nan], expected.view("u4")[~nan])


def random_blocks(name: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Random bytes with scales that make weights of about 0.1."""
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = np.random.default_rng(seed).integers(0, 256, (rows * columns // elements, size), np.uint8)
    one = np.array([1], np.float16).view(np.uint8)
    for at in SCALES[name]:
        blocks[:, at : at + 2] = one
    if name == "MXFP4":
        blocks[:, 0] = 122
    scale = np.array([0.1 / decoded(blocks, name).std()], np.float16).view(np.uint8)
    for at in SCALES[name]:
        blocks[:, at : at + 2] = scale
    return blocks.reshape(rows, -1)


@pytest.mark.parametrize("name", SCALES)
def test_models(tmp_path: pathlib.Path, name: str) -> None:
    file = GgufModel("llama", tmp_path)
    keys = {
        "llama.embedding_length": 256,
        "llama.feed_forward_length": 512,
        "llama.rope.dimension_count": 64,
    }
    sizes = {32: 256, 56: 512, 16: 128, 40: 40}
    stored = {}
    floats = {}
    for seed, (tensor, array) in enumerate(file.tensors.items()):
        shape = [sizes[extent] for extent in array.shape]
        if len(shape) == 1:
            stored[tensor] = floats[tensor] = np.resize(array, shape)
        else:
            stored[tensor] = random_blocks(name, *shape, seed)
            floats[tensor] = decoded(stored[tensor], name)
    kinds = {tensor: gguf.GGMLQuantizationType[name] for tensor in stored if stored[tensor].ndim == 2}
    for count in (1, 5, 30):
        ids = [7 * i % 40 for i in range(count)]
        found = heed.models.load(file.write(keys, stored, kinds)).logits(ids)
        expected = heed.models.load(file.write(keys, floats)).logits(ids)
        assert np.isfinite(expected).all() and expected.std() > 0.01
        if name in READ_AS_STORED:
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())
        else:
            np.testing.assert_array_equal(found, expected)


def test_a_format_that_is_not_read(tmp_path: pathlib.Path) -> None:
    file = GgufModel("llama", tmp_path)
    kind = gguf.GGMLQuantizationType.IQ2_XS
    blocks = np.ones((40, gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
    with pytest.raises(RuntimeError, match="token_embd.weight' is of type IQ2_XS"):
        heed.models.load(file.write(tensors={"token_embd.weight": blocks}, kinds={"token_embd.weight": kind}))
