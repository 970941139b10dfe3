"""What heed says of a model's files before it loads them."""

import json
import pathlib
import re
import subprocess

import gguf
import heed
import numpy as np
import pytest
import torch
import transformers

from gguf_files import DECODER, DEPTHS, ENDS, MODELS, GgufModel


def only(path: pathlib.Path) -> dict:
    (found,) = heed.models.describe(path)
    return found


@pytest.fixture(params=["llama", "gemma3", "gpt2", "bert"])
def file(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> GgufModel:
    return GgufModel(request.param, tmp_path)


def test_a_gguf_file(file: GgufModel) -> None:
    found = only(file.write())
    model = heed.models.load(file.write())
    assert (found["opens"], found["refusals"], found["kind"]) == (True, [], "gguf")
    assert found["architecture"] == file.architecture
    config = found["config"]
    assert {key: config[key] for key in ("family", "num_layers", "head_dim", "max_positions")} == {
        key: model.config[key] for key in ("family", "num_layers", "head_dim", "max_positions")
    }
    assert [layer["window"] for layer in config["layers"]] == model.config["windows"]
    assert len(config["layers"]) == DEPTHS[file.architecture]
    elements = sum(array.size for array in file.tensors.values())
    assert found["num_elements"] == elements
    assert found["num_bytes"] == 4 * elements
    assert found["tensors"] == [
        {"type": "F32", "tensors": len(file.tensors), "elements": elements, "bytes": 4 * elements, "is_read": True}
    ]
    assert found["num_tokens"] == model.config["vocab_size"]
    assert not found["has_chat_template"]


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    file = GgufModel("llama", tmp_path)
    found = only(file.write({"general.architecture": "mamba"}))
    assert found["architecture"] == "mamba"
    assert found["config"] is None
    assert "mamba" in found["refusals"][0]
    found = only(file.write({"tokenizer.ggml.model": "no such", "llama.vocab_size": 3}))
    assert len(found["refusals"]) == 2
    assert found["num_tokens"] is None
    found = only(file.write({"tokenizer.chat_template": "{% no such %}"}))
    assert found["has_chat_template"]
    assert len(found["refusals"]) == 1
    found = only(file.write(tensors={"blk.1.attn_q.weight": None}))
    assert "none of the" in found["refusals"][0]
    found = only(file.write(tensors={"blk.1.attn_q.weight": np.zeros((32, 33), np.float32)}))
    assert "has shape [32, 33], expected [32, 32]" in found["refusals"][0]
    blocks = np.zeros((40 * 32 // 256, 66), np.uint8)
    types = {"token_embd.weight": gguf.GGMLQuantizationType.IQ2_XXS}
    found = only(file.write(tensors={"token_embd.weight": blocks}, kinds=types))
    assert [(each["type"], each["is_read"]) for each in found["tensors"]] == [("F32", True), ("IQ2_XXS", False)]
    assert "IQ2_XXS" in found["refusals"][0]


def test_a_folder(tmp_path: pathlib.Path, build: pathlib.Path) -> None:
    torch.manual_seed(0)
    for name in ("one", "two"):
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, **ENDS)).bfloat16().save_pretrained(tmp_path / name)
    file = tmp_path / "two" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"hidden_act": "mish"}))
    (tmp_path / "notes.txt").write_text("")
    found = heed.models.describe(tmp_path)
    assert [pathlib.Path(each["path"]).name for each in found] == ["one", "two"]
    assert [each["opens"] for each in found] == [True, False]
    assert found[0]["architecture"] == found[1]["architecture"] == "LlamaForCausalLM"
    assert found[0]["tensors"][0]["type"] == "BF16"
    assert found[0]["num_tokens"] is None
    ran = subprocess.run([build / "heed", "models", "--json", tmp_path], capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in ran.stdout.splitlines()] == found
    ran = subprocess.run([build / "heed", "models", tmp_path], capture_output=True, text=True, check=True)
    assert "4 heads (2 of keys) of 8" in ran.stdout
    assert "opens it" in ran.stdout
    assert "hidden_act is \"mish\"" in ran.stdout


def test_a_damaged_model_does_not_hide_the_others(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, **ENDS)).save_pretrained(tmp_path / "whole")
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF\x03")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "modules.json").write_text("[")
    found = heed.models.describe(tmp_path)
    assert [pathlib.Path(each["path"]).name for each in found] == ["damaged.gguf", "empty", "modules", "whole"]
    assert [each["opens"] for each in found] == [False, False, False, True]
    assert all(len(each["refusals"]) == 1 for each in found[:3])


def test_what_is_no_model(tmp_path: pathlib.Path, build: pathlib.Path) -> None:
    (tmp_path / "notes.txt").write_text("text")
    for path in (tmp_path, tmp_path / "none", tmp_path / "notes.txt"):
        with pytest.raises((ValueError, RuntimeError, OSError)):
            heed.models.describe(path)
        ran = subprocess.run([build / "heed", "models", path], capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        assert ran.stdout == ""


def test_parts_of_a_file_are_one_model(tmp_path: pathlib.Path) -> None:
    file = GgufModel("llama", tmp_path)
    whole = file.write()
    expected = heed.models.load(whole).logits([1, 2, 3])
    names = sorted(file.tensors)
    parts = [names[:5], names[5:]]
    for i, kept in enumerate(parts):
        keys = {"split.no": i, "split.count": 2, "split.tensors.count": len(names)}
        others = {name: None for name in names if name not in kept}
        file.write(keys, others).rename(tmp_path / f"m-0000{i + 1}-of-00002.gguf")
    (found,) = heed.models.describe(tmp_path)
    assert found["num_files"] == 2
    assert found["opens"], found["refusals"]
    model = heed.models.load(tmp_path / "m-00001-of-00002.gguf")
    np.testing.assert_array_equal(model.logits([1, 2, 3]), expected)
    listed = subprocess.run("sha256sum m-*.gguf | sha256sum", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert model.sha256() == listed.stdout.split()[0]


def listed(text: str) -> set[str]:
    """The names after "expected" or "read are"."""
    return set(re.split(r", | or | and |GGUF's ", text)) - {""}


def test_the_documentation_lists_what_opens(tmp_path: pathlib.Path) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs/models.md").read_text()
    families = page.split("### Families")[1].split("###")[0]
    rows = [line.split("|")[1:3] for line in families.splitlines() if line.startswith("| `") and "model_type" not in line]
    file = GgufModel("llama", tmp_path)
    message = only(file.write({"general.architecture": "mamba"}))["refusals"][0]
    assert {name for _, cell in rows for name in re.findall("`(.*?)`", cell)} == listed(message.split("expected ")[1])
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER, **ENDS)).save_pretrained(tmp_path / "folder")
    config = tmp_path / "folder" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "rwkv"}))
    message = only(tmp_path / "folder")["refusals"][0]
    assert {name for cell, _ in rows for name in re.findall("`(.*?)`", cell)} == listed(message.split("expected ")[1])
    formats = page.split("### Formats of weights")[1].split("Their numbers")[0]
    types = {"token_embd.weight": gguf.GGMLQuantizationType.IQ2_XXS}
    message = only(file.write(tensors={"token_embd.weight": np.zeros((5, 66), np.uint8)}, kinds=types))["refusals"][0]
    assert set(re.findall("`(.*?)`", formats)) == listed(message.split("read are ")[1])
