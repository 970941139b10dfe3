"""Models with more ids than their tokenizer has tokens, as padded embeddings make them, and with fewer."""

import pathlib

import heed
import pytest
import tokenizers
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

pytest.importorskip("gguf")

from gguf_files import GgufModel, tokenizer_keys  # noqa: E402

IDS = 40  # ids of the model


def words(count: int) -> PreTrainedTokenizerFast:
    vocabulary = {"[UNK]": 0, **{f"w{i}": i for i in range(1, count)}}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def folder(path: pathlib.Path, tokens: int) -> PreTrainedTokenizerFast:
    torch.manual_seed(0)
    sizes = {"vocab_size": IDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    config = LlamaConfig(**sizes, num_attention_heads=4, eos_token_id=None, bos_token_id=None)
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer = words(tokens)
    tokenizer.save_pretrained(path)
    return tokenizer


def drawn(model: heed.models.Model, prompt: str) -> heed.models.Generated:
    """A text in which tokens are about equally likely."""
    pieces: list[str] = []
    result = model.generate(prompt, max_tokens=50, temperature=50.0, seed=1, on_text=pieces.append)
    assert "".join(pieces) == result.text
    ids = model.encode(prompt)
    assert model.decode(ids) + result.text == model.decode(ids + result.ids)
    return result


def test_more_ids_in_a_folder(tmp_path: pathlib.Path) -> None:
    tokenizer = folder(tmp_path, 20)
    model = heed.models.load(tmp_path)
    result = drawn(model, "w1 w2")
    assert len(result.ids) == 50
    assert sum(id >= 20 for id in result.ids) > 10
    assert "w1 w2" + result.text == tokenizer.decode(tokenizer.encode("w1 w2") + result.ids, skip_special_tokens=True)
    assert model.decode([3, 20, 39, 4]) == "w3 w4"
    assert model.logits([1, 39]).shape == (2, IDS)
    with pytest.raises(ValueError, match="the id is -1"):
        model.decode([-1])


def test_fewer_ids_in_a_folder(tmp_path: pathlib.Path) -> None:
    folder(tmp_path, 60)
    model = heed.models.load(tmp_path)
    assert drawn(model, "w1 w2").ids
    assert model.decode([50]) == "w50"
    with pytest.raises(ValueError, match=r"ids\[1\] is 50, expected one of \[0, 40\)"):
        model.generate("w1 w50")


def test_more_ids_in_a_gguf_file(tmp_path: pathlib.Path) -> None:
    model = heed.models.load(GgufModel("llama", tmp_path).write(tokenizer_keys(30)))
    result = drawn(model, "CAB")
    known = [id for id in result.ids if id < 30]
    assert 10 < len(known) < 45
    assert result.text == model.decode(known)
    assert len(result.text) == len(known) + known.count(29)  # id 29 is "AB"


def test_fewer_ids_in_a_gguf_file(tmp_path: pathlib.Path) -> None:
    model = heed.models.load(GgufModel("llama", tmp_path).write(tokenizer_keys(60)))
    assert drawn(model, "CA").ids
    with pytest.raises(ValueError, match=r"ids\[1\] is 59, expected one of \[0, 40\)"):
        model.generate("CAB")


def test_unused_tokens_of_a_gguf_file(tmp_path: pathlib.Path) -> None:
    """Converters fill up with tokens of the type 5 what a model has more ids than tokens."""
    keys = tokenizer_keys()
    keys["tokenizer.ggml.token_type"] = [1] * 30 + [5] * 9 + [1]
    model = heed.models.load(GgufModel("llama", tmp_path).write(keys))
    assert model.decode([2, 30, 38, 39]) == "CAB"
    result = drawn(model, "CAB")
    assert any(30 <= id < 39 for id in result.ids)
