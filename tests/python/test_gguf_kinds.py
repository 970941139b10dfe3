"""Tokenizers of GGUF files beside others: each name of tokenizer.ggml.pre beside the library `tokenizers` with the splits of
that family's own files; "t5" beside the rule of llama.cpp and SentencePiece in the plainest way; "bert" beside the
library's WordPiece."""

import functools
import json
import pathlib
import subprocess

import pytest

pytest.importorskip("tokenizers")
gguf = pytest.importorskip("gguf")
from tokenizers import models, normalizers, pre_tokenizers  # noqa: E402

import test_tokenizers as kinds  # noqa: E402
from character_maps import character_map, compatible_rules  # noqa: E402

NORMAL, UNKNOWN, CONTROL = gguf.TokenType.NORMAL, gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL


def written(path: pathlib.Path, model: str, tokens: list[str], types: list, **values) -> pathlib.Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for name, value in values.items():
        getattr(writer, f"add_{name}")(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def encoded(build: pathlib.Path, path: pathlib.Path, requests: list[dict]) -> list[dict]:
    program = build / "tests/python/probe/tokenizer_probe"
    lines = "\n".join(map(json.dumps, requests))
    result = subprocess.run([program, path], input=lines, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line) for line in result.stdout.splitlines()]


# The names of each family, and its splits; files of GGUF are not normalised, as in llama.cpp.
PRE = {
    "default gpt-2 phi-2 roberta-bpe mpt olmo jais exaone4 jina-v2-de": [kinds.GPT2],
    "smollm starcoder refact command-r codeshell exaone minerva-7b": [kinds.DIGITS, kinds.GPT2],
    "llama-bpe llama3 falcon3 pixtral lfm2 dbrx smaug-bpe glm4 chatglm-bpe": [kinds.LLAMA3],
    "qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan": [kinds.QWEN2],
    "tekken": kinds.FAMILIES["tekken"],
    "gpt-4o llama4": kinds.FAMILIES["gpt-4o"],
    "deepseek-llm": kinds.FAMILIES["deepseek-llm"][:-1] + [r"\p{N}+"],
    "deepseek-coder": kinds.FAMILIES["deepseek-coder"],
    "deepseek-v3 hunyuan-dense": kinds.FAMILIES["deepseek-v3"],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", kinds.GPT2, "[0-9][0-9][0-9]"],
    "bloom poro-chat": kinds.FAMILIES["bloom"],
    "viking": [*kinds.FAMILIES["bloom"], r"\p{N}"],
    "bailingmoe": kinds.FAMILIES["bailing"],
    "seed-coder": [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
}
IGNORES_MERGES = {"llama-bpe", "llama3", "falcon3", "pixtral", "lfm2", "tekken"}


@functools.cache
def vocabulary_of_bytes() -> tuple[list[str], list[str]]:
    """The tokens and merges of the vocabulary in test_tokenizers.py, without its added tokens."""
    model = json.loads(kinds.plain_bytes())["model"]
    return list(model["vocab"]), [" ".join(merge) for merge in model["merges"]]


@pytest.mark.parametrize("name", [name for names in PRE for name in names.split()])
def test_each_split_is_that_of_its_family(name: str, build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tokens, merges = vocabulary_of_bytes()
    types = [CONTROL] * 2 + [NORMAL] * (len(tokens) - 2)
    path = written(tmp_path / "v.gguf", "gpt2", tokens, types, tokenizer_pre=name, token_merges=merges, add_bos_token=False)
    splits = next(splits for names, splits in PRE.items() if name in names.split())
    library = kinds.family(splits)
    library.model = models.BPE(
        {token: i for i, token in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges], ignore_merges=name in IGNORES_MERGES
    )
    texts = kinds.drawn_texts(21, 60)
    texts = [text for text in texts if not any(added in text for added in ["<user>", "Tool", "<left>", "<right>"])]
    for text, found in zip(texts, encoded(build, path, [{"text": text} for text in texts]), strict=True):
        assert found["ids"] == library.encode(text).ids, repr(text)


def replaced(text: str, rules: dict[str, str]) -> str:
    """By the longest rule at each place."""
    made, at = "", 0
    while at < len(text):
        size = next((size for size in (3, 2, 1) if text[at : at + size] in rules), 0)
        made += rules[text[at : at + size]] if size else text[at]
        at += size or 1
    return made


def best_pieces(text: str, scores: dict[str, float], unknown: float) -> list[str]:
    """Of the sequences of pieces that make up a text the one of the greatest sum; "<unk>" for others."""
    best = [(0.0, 0, "")] + [(float("-inf"), 0, "")] * len(text)
    for at in range(len(text)):
        for end in range(at + 1, min(len(text), at + 20) + 1):
            piece = text[at:end]
            score = scores.get(piece, unknown if end == at + 1 else None)
            if score is not None and best[at][0] + score > best[end][0]:
                best[end] = (best[at][0] + score, at, piece if piece in scores else "<unk>")
    pieces, end = [], len(text)
    while end > 0:
        if not (pieces and pieces[-1] == best[end][2] == "<unk>"):
            pieces.append(best[end][2])
        end = best[end][1]
    return pieces[::-1]


@pytest.mark.parametrize(("has_prefix", "merges_spaces"), [(True, True), (True, False), (False, False)])
def test_t5_is_the_rule(has_prefix: bool, merges_spaces: bool, build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pieces = dict(kinds.pieces())
    tokens, rules = list(pieces), compatible_rules()
    types = [CONTROL, CONTROL, UNKNOWN, CONTROL] + [NORMAL] * (len(tokens) - 4)
    path = written(
        tmp_path / "v.gguf", "t5", tokens, types, token_scores=list(pieces.values()), precompiled_charsmap=character_map(rules),
        add_space_prefix=has_prefix, remove_extra_whitespaces=merges_spaces, unk_token_id=2, eos_token_id=1,
    )  # fmt: skip
    scores = {piece: score for piece, score in list(pieces.items())[4:]}
    special = tokens[:4]
    texts = [text for text in kinds.drawn_texts(22, 300) if not any(token in text for token in special)]
    for text, found in zip(texts, encoded(build, path, [{"text": text} for text in texts]), strict=True):
        normal = replaced(text, rules)
        if merges_spaces:
            normal = "".join("▁" + word for word in normal.split(" ") if word)
        else:
            normal = normal.replace(" ", "▁")
            if has_prefix and normal.strip("▁"):
                normal = "▁" + normal
        expected = best_pieces(normal, scores, min(scores.values()) - 10)
        assert [tokens[i] for i in found["ids"]] == [*expected, "</s>"], repr(text)
    found = encoded(build, path, [{"text": text} for text in ["a</s>b", "<unk>"]])
    assert [1 in answer["ids"][:-1] for answer in found] == [True, False]
    assert bytes.fromhex(encoded(build, path, [{"ids": [tokens.index("▁"), tokens.index("a")]}])[0]["bytes"]) == (b"a" if has_prefix else b" a")


def test_bert_is_the_word_piece_of_the_library(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    library = kinds.word_piece(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    vocabulary = sorted(library.get_vocab(), key=library.token_to_id)
    marked = [token if token[0] == "[" and token[-1] == "]" else token[2:] if token.startswith("##") else "▁" + token for token in vocabulary]
    types = [CONTROL] * 5 + [NORMAL] * (len(marked) - 5)
    path = written(
        tmp_path / "v.gguf", "bert", marked, types, unk_token_id=1, sep_token_id=3, pad_token_id=0, mask_token_id=4, token_type_count=2,
    )  # fmt: skip
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        encoded(build, path, [])
    assert "tokenizer.ggml.bos_token_id" in refusal.value.stderr
    path = written(
        tmp_path / "v.gguf", "bert", marked, types, unk_token_id=1, sep_token_id=3, pad_token_id=0, mask_token_id=4, bos_token_id=2, token_type_count=2,
    )  # fmt: skip
    texts = [text for text in kinds.drawn_texts(23, 300) if "[" not in text and "▁" not in text]
    ids = [library.encode(text).ids for text in texts]
    for text, expected, found in zip(texts, ids, encoded(build, path, [{"text": text} for text in texts]), strict=True):
        assert found["ids"] == expected, repr(text)
    for some, found in zip(ids, encoded(build, path, [{"ids": some} for some in ids]), strict=True):
        assert bytes.fromhex(found["bytes"]).decode() == library.decode(some)


def test_broken_files_are_refused_by_name(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tokens, types = ["<unk>", "</s>", "a"], [UNKNOWN, CONTROL, NORMAL]
    good = {"token_scores": [0.0, 0.0, -1.0], "unk_token_id": 0, "eos_token_id": 1}
    cut = character_map({"a": "b"})[:-3]
    for changes, problem in [
        ({"token_scores": [0.0, float("nan"), -1.0]}, "tokenizer.ggml.scores[1] is nan"),
        ({"token_scores": [0.0, float("-inf"), -1.0]}, "tokenizer.ggml.scores[1] is -inf"),
        ({"token_scores": [0.0]}, "tokenizer.ggml.scores has 1 values for 3 tokens"),
        ({"precompiled_charsmap": cut}, "tokenizer.ggml.precompiled_charsmap"),
        ({"unk_token_id": 3}, "tokenizer.ggml.unknown_token_id"),
        ({"add_space_prefix": False, "remove_extra_whitespaces": True}, "tokenizer.ggml.add_space_prefix"),
    ]:
        path = written(tmp_path / "v.gguf", "t5", tokens, types, **(good | changes))
        with pytest.raises(subprocess.CalledProcessError) as refusal:
            encoded(build, path, [])
        assert problem in refusal.value.stderr
