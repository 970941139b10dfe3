"""Tokenizers of GGUF files whose model is "llama" (SentencePiece's BPE, by scores) beside two others: the rule of
llama.cpp and SentencePiece, in the plainest way, and the library `tokenizers` with the merges that transformers makes of
the scores. The vocabulary is one that the test trains."""

import json
import pathlib
import random
import subprocess

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors, trainers

gguf = pytest.importorskip("gguf")
convert = pytest.importorskip("transformers.convert_slow_tokenizer")

ROOT = pathlib.Path(__file__).parents[2]
SPECIAL = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def read_corpus() -> list[str]:
    return [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def scores() -> dict[str, float]:
    """Tokens in the order of their ids, with scores: special ones, bytes, then merged ones and characters as SentencePiece
    orders them."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, max_token_length=16)
    trained.train_from_iterator((line for text in read_corpus() for line in text.splitlines()), trainer)
    merges = [left + right for left, right in map(tuple, json.loads(trained.to_str())["model"]["merges"])]
    characters = [token for token in trained.get_vocab() if len(token) == 1]
    pieces = [*dict.fromkeys(merges), *sorted(set(characters) - set(merges))]
    pieces = [piece for piece in pieces if piece not in BYTES]
    return {token: 0.0 for token in [*SPECIAL, *BYTES]} | {piece: -float(i) for i, piece in enumerate(pieces)}


@pytest.fixture(scope="module")
def path(scores: dict[str, float], tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("gguf") / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(list(scores))
    writer.add_token_scores(list(scores.values()))
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (len(scores) - 259)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def library(scores: dict[str, float]) -> Tokenizer:
    """As transformers converts a Llama's vocabulary, from a GGUF file or SentencePiece's."""
    vocabulary = {token: i for i, token in enumerate(scores)}
    merges = convert.generate_merges(vocabulary, scores)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def merged_by_scores(text: str, scores: dict[str, float]) -> list[str]:
    """Of all neighbours that make a token those of the highest score become one, among equals the leftmost."""
    if not text:
        return []
    pieces = list("▁" + text.replace(" ", "▁"))
    while True:
        made = [(scores[a + b], -i) for i, (a, b) in enumerate(zip(pieces, pieces[1:])) if a + b in scores]
        if not made:
            break
        at = -max(made)[1]
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    bytes_of = [[p] if p in scores else [f"<0x{byte:02X}>" for byte in p.encode()] for p in pieces]
    return [token for part in bytes_of for token in part]


def drawn_texts() -> list[str]:
    draw = random.Random(3)
    words = [word for text in read_corpus() for word in text.split()]
    texts = []
    for _ in range(400):
        some = [draw.choice(words) for _ in range(draw.randint(1, 12))]
        texts.append(draw.choice([" ", "  ", "\n"]).join(some))
    for _ in range(200):
        texts.append("".join(chr(draw.choice([draw.randrange(32, 127), draw.randrange(0xA1, 0x3100)])) for _ in range(9)))
    return [*texts, "", " ", "  a", "a  ", "\t\n", "▁", "猫が好き", "👩‍👩‍👧", "e\u0301", "aaaaaaaaaaaaaaaa"]


@pytest.fixture(scope="module")
def ours(path: pathlib.Path, build: pathlib.Path):
    def ask(requests: list[dict]) -> list[dict]:
        program = build / "tests/python/probe/tokenizer_probe"
        lines = "\n".join(map(json.dumps, requests))
        result = subprocess.run([program, path], input=lines, capture_output=True, text=True, check=True, timeout=300)
        return [json.loads(line) for line in result.stdout.splitlines()]

    return ask


def test_ids_are_those_of_the_rule(ours, scores: dict[str, float]) -> None:
    tokens = list(scores)
    texts = drawn_texts()
    for text, found in zip(texts, ours([{"text": text, "parse": False} for text in texts]), strict=True):
        assert [tokens[i] for i in found["ids"]] == ["<s>", *merged_by_scores(text, scores)], repr(text)


def test_ids_are_those_of_the_library(ours, library: Tokenizer) -> None:
    texts = [*drawn_texts(), "a</s>b <s> c", "</s>", "<unk> x"]
    for text, found in zip(texts, ours([{"text": text} for text in texts]), strict=True):
        assert found["ids"] == library.encode(text).ids, repr(text)


def test_texts_come_back(ours, library: Tokenizer) -> None:
    texts = drawn_texts()
    ids = [library.encode(text).ids for text in texts]
    for text, some, found in zip(texts, ids, ours([{"ids": some} for some in ids]), strict=True):
        assert bytes.fromhex(found["bytes"]).decode() == library.decode(some)
        if not any(token in text for token in SPECIAL):  # special tokens are not text
            assert library.decode(some) == text.replace("▁", " ")
