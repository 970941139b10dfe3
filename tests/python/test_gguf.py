"""GGUF files of the library gguf and shards of transformers, read by heed to the bit."""

import pathlib
import subprocess

import numpy
import pytest
import safetensors.torch
import torch


def floats(
    build: pathlib.Path, source: pathlib.Path, folder: pathlib.Path
) -> dict[str, torch.Tensor]:
    """What heed reads at `source`."""
    target = folder / "out"
    program = build / "tests/python/probe/checkpoint_probe"
    result = subprocess.run([program, source, target], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return safetensors.torch.load_file(target)


def test_gguf(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    gguf = pytest.importorskip("gguf")
    random = numpy.random.default_rng(0)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_array("tokenizer.ggml.tokens", ["a", "größe", ""])
    expected = {}
    for kind in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"):
        kind = gguf.GGMLQuantizationType[kind]
        array = (random.standard_normal((5, 96)) * 3).astype(numpy.float32)
        stored = gguf.quants.quantize(array, kind)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        expected[kind.name] = gguf.quants.dequantize(stored, kind).astype(numpy.float32)
    writer.add_tensor("row", random.standard_normal(3).astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = floats(build, tmp_path / "m.gguf", tmp_path)
    assert found.keys() == expected.keys() | {"row"}
    for name, array in expected.items():
        assert found[name].shape == array.shape, name
        assert numpy.array_equal(found[name].numpy().view("u4"), array.view("u4")), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shards(build: pathlib.Path, tmp_path: pathlib.Path, dtype: torch.dtype) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=False,
    )
    model = transformers.LlamaForCausalLM(config).to(dtype)
    model.save_pretrained(tmp_path / "one")
    model.save_pretrained(tmp_path / "many", max_shard_size="10KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 2
    for folder in ("one", "many"):
        found = floats(build, tmp_path / folder, tmp_path)
        expected = model.state_dict()
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert torch.equal(found[name], tensor.float()), name
