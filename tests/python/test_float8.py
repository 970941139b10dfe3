"""Weights of eight bits in safetensors files, compared with PyTorch's."""

import pathlib
import subprocess

import heed
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
import transformers

from gguf_files import DECODER, ENDS

TYPES = {"float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}


@pytest.mark.parametrize("name", TYPES)
def test_every_number(build: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    stored = torch.arange(256, dtype=torch.uint8).view(TYPES[name])
    safetensors.torch.save_file({"w": stored}, tmp_path / "m.safetensors")
    program = build / "tests/python/probe/checkpoint_probe"
    subprocess.run([program, tmp_path / "m.safetensors", tmp_path / "out"], check=True, timeout=300)
    found = safetensors.numpy.load_file(tmp_path / "out")["w"]
    expected = stored.to(torch.float32).numpy()
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found.view("u4")[~nan], expected.view("u4")[~nan])


@pytest.mark.parametrize("name", TYPES)
def test_models(tmp_path: pathlib.Path, name: str) -> None:
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, **ENDS)).eval()
    model.save_pretrained(tmp_path)
    weights = {key: value.to(TYPES[name]) if value.ndim == 2 else value.bfloat16() for key, value in model.state_dict().items()}
    weights.pop("model.rotary_emb.inv_freq", None)
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model.load_state_dict({key: value.float() for key, value in weights.items()})
    found = heed.models.load(tmp_path).logits([1, 2, 3, 20, 11])
    with torch.no_grad():
        expected = model(torch.tensor([[1, 2, 3, 20, 11]])).logits[0].numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

