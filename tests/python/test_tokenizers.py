"""heed's tokenizers against the library whose files they read: ids, ranges and decoded bytes of the same texts."""

import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import unicodedata

import pytest

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import (  # noqa: E402
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from character_maps import character_map, compatible_rules  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CORPUS = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))] + [
    "Ünïcödé été naïve Straße ŒUVRE don't WE'LL I'd 12345 3,14 猫が好き 고양이 кошка बिल्ली 👩‍👩‍👧"
] * 20


def trained(tokenizer: Tokenizer, trainer: trainers.Trainer) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def word_piece(normalizer: normalizers.Normalizer, splits: pre_tokenizers.PreTokenizer) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splits
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False)
    trained(tokenizer, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def byte_pairs(splits: pre_tokenizers.PreTokenizer, normalizer: normalizers.Normalizer | None = None, **options) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splits
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=["<|endoftext|>", "<|im_start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained(tokenizer, trainer)
    tokenizer.add_tokens(
        [
            AddedToken("<user>", normalized=False),
            AddedToken("Tool", single_word=True, normalized=True),
            AddedToken("<left>", lstrip=True, normalized=False),
            AddedToken("<right>", rstrip=True, normalized=False),
        ]
    )
    return tokenizer


def cut_by(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def digits_then_bytes() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def roberta() -> Tokenizer:
    tokenizer = byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokenizer.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0), ("<|im_start|>", 1))
    return tokenizer


def llama3() -> Tokenizer:
    tokenizer = byte_pairs(cut_by(LLAMA3), ignore_merges=True)
    frame = processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A <|endoftext|>:1 $B:1", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), frame])
    return tokenizer


def characters(**options) -> Tokenizer:
    """BPE over characters, as of models made with SentencePiece."""
    vocabulary = {"<unk>": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    for token in ["▁", "a", "b", "c", "é", "▁a", "ab", "▁ab", "猫"]:
        vocabulary[token] = len(vocabulary)
    merges = [("▁", "a"), ("a", "b"), ("▁a", "b")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", **options))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = TEKKEN.replace("]+|[^", f"]+{ENGLISH}|[^").replace(r"]*|\p{N}|", rf"]*{ENGLISH}|\p{{N}}{{1,3}}|")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
HAN = "[一-龥ࠀ-一가-퟿]+"
LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼ"
    r"ℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
# The pre-tokenizers of families, as their files have them.
DIGITS = pre_tokenizers.Digits(individual_digits=True)
FAMILIES = {
    "tekken": [TEKKEN],
    "gpt-4o": [GPT4O],
    "deepseek-llm": [r"[\r\n]", LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", HAN, DIGITS],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, DIGITS],
    "deepseek-v3": [
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "falcon": [pre_tokenizers.Punctuation("contiguous"), GPT2, pre_tokenizers.Digits(), "[0-9][0-9][0-9]"],
    "bloom": [r" ?[^(\s|[.,!?…。，、।۔،])]+"],
    "bailing": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ],
}


@functools.cache
def plain_bytes() -> str:
    return byte_pairs(cut_by(LLAMA3)).to_str()


def family(steps: list, **changes) -> Tokenizer:
    """BPE over bytes with one trained vocabulary, and texts that are cut at one pattern after another."""
    tokenizer = Tokenizer.from_str(plain_bytes())
    splits = [pre_tokenizers.Split(Regex(step), "isolated") if isinstance(step, str) else step for step in steps]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    for name, value in changes.items():
        setattr(tokenizer, name, value)
    return tokenizer


def clip() -> Tokenizer:
    """Words that end with a mark, as of CLIP."""
    splits = pre_tokenizers.Split(Regex(CLIP), "removed", invert=True)
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([splits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS[:4], trainer)
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return tokenizer


SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]


@functools.cache
def pieces() -> tuple[tuple[str, float], ...]:
    """The pieces of a unigram model. Their scores are so round that sums are exact: of sums that are equal but for rounding it
    would depend on how the library reads decimal numbers which one is greater."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=900, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([*CORPUS[:3], CORPUS[-1]], trainer)
    return tuple((piece, round(score * 1024) / 1024) for piece, score in json.loads(tokenizer.to_str())["model"]["vocab"])


@functools.cache
def rules() -> bytes:
    return character_map(compatible_rules())


def unigram(normalizer: list, splits: pre_tokenizers.PreTokenizer, mark: pre_tokenizers.Metaspace, more: tuple = (), **options) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram([*pieces(), *more], unk_id=2, **options))
    tokenizer.normalizer = normalizers.Sequence(normalizer)
    tokenizer.pre_tokenizer = splits
    tokenizer.decoder = decoders.Metaspace(mark.replacement, mark.prepend_scheme, mark.split)
    tokenizer.add_special_tokens([*SPECIAL, AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 3), ("</s>", 1)]
    )
    return tokenizer


def marked(scheme: str = "always", split: bool = True) -> pre_tokenizers.Metaspace:
    return pre_tokenizers.Metaspace("▁", scheme, split)


def t5() -> Tokenizer:
    return unigram([normalizers.Precompiled(rules())], pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marked()]), marked())


def xlm_roberta() -> Tokenizer:
    steps = [normalizers.Precompiled(rules()), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    return unigram(steps, marked(), marked())


def albert() -> Tokenizer:
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase(), normalizers.Precompiled(rules()), normalizers.Replace(Regex(" {2,}"), " ")]
    return unigram(steps, marked(), marked())


def first() -> Tokenizer:
    """With a mark before the text alone, and bytes of unknown characters."""
    bytes_of = tuple((f"<0x{byte:02X}>", 0.0) for byte in range(256))
    return unigram([normalizers.Nmt(), normalizers.Strip()], marked("first", False), marked("first", False), bytes_of, byte_fallback=True)


def word_level() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("a"), pre_tokenizers.Whitespace()])
    tokenizer.train_from_iterator(CORPUS[:4], trainers.WordLevelTrainer(vocab_size=900, special_tokens=["<unk>"], show_progress=False))
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = characters(byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def folding() -> normalizers.Normalizer:
    return normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])


MAKERS = {
    "bert-uncased": lambda: word_piece(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()),
    "bert-cased": lambda: word_piece(normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()),
    "bert-accents": lambda: word_piece(
        normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False), pre_tokenizers.BertPreTokenizer()
    ),
    "words": lambda: word_piece(folding(), pre_tokenizers.Whitespace()),
    "punctuation": lambda: word_piece(
        normalizers.Replace("ß", "ss"),
        pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Digits()]
        ),
    ),
    "gpt2": lambda: byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "gpt2-split": lambda: byte_pairs(cut_by(GPT2)),
    "smollm": lambda: byte_pairs(digits_then_bytes()),
    "roberta": roberta,
    "llama3": llama3,
    "qwen2": lambda: byte_pairs(cut_by(QWEN2), normalizers.NFC()),
    "nfkc": lambda: byte_pairs(cut_by(QWEN2), normalizers.NFKC()),
    "nfkd": lambda: byte_pairs(cut_by(QWEN2), normalizers.NFKD()),
    "literal": lambda: byte_pairs(
        pre_tokenizers.Sequence(
            [pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    ),
    "fallback": lambda: characters(byte_fallback=True),
    "unknown": characters,
    "fused": lambda: characters(fuse_unk=True),
    "gemma": gemma,
    "command-r": lambda: family([DIGITS, GPT2], normalizer=normalizers.NFC()),
    "bytes-first": lambda: family([], normalizer=normalizers.ByteLevel(), pre_tokenizer=pre_tokenizers.Split(Regex("Ġ?[^Ġ]+"), "contiguous")),
    "clip": clip,
    "t5": t5,
    "xlm-roberta": xlm_roberta,
    "albert": albert,
    "never": lambda: unigram([normalizers.NFKC()], marked("never"), marked("never")),
    "first": first,
    "word-level": word_level,
} | {name: functools.partial(family, steps) for name, steps in FAMILIES.items()}


def real_ones() -> dict[str, pathlib.Path]:
    folders = [ROOT / "build/models", pathlib.Path(os.environ.get("HEED_MODELS", "/nonexistent"))]
    return {f"{path.parent.name}": path for folder in folders for path in sorted(folder.rglob("tokenizer.json"))}


# Kinds whose parts are mostly those of the others: they read a quarter of the texts, or with --exhaustive all.
LATER = {*FAMILIES, "gemma", "command-r", "bytes-first", "clip", "t5", "xlm-roberta", "albert", "never", "first", "word-level"}


class Pair:
    """A tokenizer as both libraries have it, and its number among all of them."""

    def __init__(self, name: str, path: pathlib.Path, program: pathlib.Path, number: int = 0, is_exhaustive: bool = False) -> None:
        self.name, self.number, self.path, self.program = name, number, path, program
        self.part = 4 if name in LATER and not is_exhaustive else 1
        self.theirs = Tokenizer.from_file(str(path))
        self.prefix = PREFIXES.get(name, "\0")  # no token begins with NUL
        self.theirs.no_padding()
        self.theirs.no_truncation()

    def ours(self, requests: list[dict]) -> list[dict]:
        lines = "\n".join(json.dumps(request) for request in requests)
        result = subprocess.run(
            [self.program, self.path], input=lines, capture_output=True, text=True, check=True, timeout=300
        )
        return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="session", params=[*MAKERS, *real_ones()])
def pair(
    request: pytest.FixtureRequest, build: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, is_exhaustive: bool
) -> Pair:
    path = real_ones().get(request.param)
    if path is None:
        path = tmp_path_factory.mktemp(request.param) / "tokenizer.json"
        MAKERS[request.param]().save(str(path))
    return Pair(request.param, path, build / "tests/python/probe/tokenizer_probe", request.param_index, is_exhaustive)


WORDS = (
    "the cat Straße don't WE'LL it's I'D we've 'S 'ſ 12 1234567 3.14 naïve e\u0301te\u0301 İstanbul ΑΣ 猫 ねこ 고양이 한글 "
    "बिल्ली \u0301 \u200d \u00a0 \u3000 \t \n \r\n \n\n   ! ?? ... <|endoftext|> <|im_start|> <user> <left> <right> Tool Tools "
    "[MASK] [SEP] </s> <mask> ▁ `` '' ﬁ ² ½ Ⅳ Ⓐ 👩‍👩‍👧 🇩🇪 \u0085 \u2028 \ufeff \ufffd a_b a--b (x) {y} $5 ^ ~ `k` ##ing \U0001f600 \x00 \x07 ᄀ\u1161\u11a8"
).split(" ")


def drawn_texts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)

    def word() -> str:
        kind = rng.random()
        if kind < 0.6:
            return rng.choice(WORDS)
        if kind < 0.8:
            return rng.choice(CORPUS[:-1])[(at := rng.randrange(2000)) : at + rng.randrange(20)]
        values = [rng.choice([rng.randrange(0x20, 0x800), rng.randrange(0x3000, 0xA000)]) for _ in range(rng.randrange(4))]
        return "".join(chr(value) for value in values if unicodedata.ucd_3_2_0.category(chr(value)) != "Cn")

    return ["".join(word() + rng.choice(["", " ", "  ", "\n"]) for _ in range(rng.randrange(12))) for _ in range(count)]


def byte_ranges(text: str, ranges: list[tuple[int, int]]) -> list[list[int]]:
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode()))
    return [[starts[begin], starts[end]] for begin, end in ranges]


def whole_characters(text: str, ranges: list[list[int]]) -> list[list[int]]:
    """heed gives the bytes of a token, the library the characters that these bytes are part of."""
    data = text.encode()

    def is_inside(at: int) -> bool:
        return at < len(data) and data[at] & 0xC0 == 0x80

    result = []
    for begin, end in ranges:
        while begin < end and is_inside(begin):
            begin -= 1
        while begin < end and is_inside(end):
            end += 1
        result.append([begin, end])
    return result


# Intended differences of ranges: the range of a composed character in heed contains all of its parts, and reordered
# marks each have their own. A token that is only a space put before the text has no range. White space trimmed off a
# token that begins with such a space differs too.
UNIGRAM = {"t5", "xlm-roberta", "albert", "never", "first"}
COMPOSING = {"qwen2", "nfkc", "nfkd", "command-r", "clip", *UNIGRAM}
PREFIXES = {"roberta": "Ġ", "fallback": "▁", "unknown": "▁", "fused": "▁"} | dict.fromkeys(UNIGRAM, "▁")


def is_composed(text: str) -> bool:
    by_character = "".join(unicodedata.normalize("NFKC", character) for character in text)
    return unicodedata.normalize("NFC", text) != text or unicodedata.normalize("NFKC", text) != by_character


def is_reordered(text: str) -> bool:
    return unicodedata.normalize("NFKD", text) != "".join(unicodedata.normalize("NFKD", character) for character in text)


def differences(pair: Pair, texts: list[str], ranges: bool = True, **options) -> list[tuple[str, str]]:
    special, parse = options.get("special", True), options.get("parse", True)
    if len(texts) > 5000:  # the library's encodings are large
        parts = [texts[begin : begin + 5000] for begin in range(0, len(texts), 5000)]
        return [case for part in parts for case in differences(pair, part, ranges, **options)]
    pair.theirs.encode_special_tokens = not parse
    expected = pair.theirs.encode_batch(texts, add_special_tokens=special)
    found = pair.ours([{"text": text, "special": special, "parse": parse} for text in texts])
    result = []
    for text, ours, theirs in zip(texts, found, expected, strict=True):
        if ours["ids"] != theirs.ids or ours["types"] != theirs.type_ids:
            result.append((text, f"{ours['ids']} is not {theirs.ids}"))
            continue
        if not ranges or (pair.name in COMPOSING and (is_composed(text) or is_reordered(text))):
            continue
        # Of characters that a normaliser removes or joins, the library gives their neighbours' ranges.
        if pair.name in UNIGRAM and pair.theirs.normalizer.normalize_str(text) != text:
            continue
        triples = zip(theirs.tokens, whole_characters(text, ours["ranges"]), byte_ranges(text, theirs.offsets), strict=True)
        # The library gives each byte of unknown characters all of them.
        is_other = (pair.prefix, "<0x") if pair.name == "first" else pair.prefix
        wrong = [triple for triple in triples if triple[1] != triple[2] and not triple[0].startswith(is_other)]
        result.extend((text, f"{token}: {ours_of} is not {theirs_of}") for token, ours_of, theirs_of in wrong)
    return result


def test_random_texts(pair: Pair) -> None:
    assert differences(pair, drawn_texts(1, 1500 // pair.part)) == []


def test_without_special_tokens(pair: Pair) -> None:
    texts = drawn_texts(2, 300 // pair.part)
    if pair.name in UNIGRAM:  # there the library finds a special token in a text as any other
        texts = [text for text in texts if not any(token in text for token in SPECIAL)]
    assert differences(pair, texts, special=False, parse=False) == []


def test_untrusted_texts_have_no_special_tokens(pair: Pair) -> None:
    special = set(pair.ours([{"about": True}])[0]["special"]) - {pair.theirs.token_to_id("<unk>"), pair.theirs.token_to_id("[UNK]")}
    texts = [pair.theirs.id_to_token(id) for id in special] + ["a</s>b", "＜/s＞", "<s><s>"]
    for found in pair.ours([{"text": text, "special": False, "parse": False} for text in texts]):
        assert not special & set(found["ids"])


def test_long_texts(pair: Pair, is_exhaustive: bool) -> None:
    """Each tokenizer reads a fifth of the pages or less, or with --exhaustive all."""
    step = 5 * pair.part
    pages = CORPUS if is_exhaustive else CORPUS[pair.number % step :: step]
    text = " ".join(pages) + "a" * 3000 + " " * 3000 + "\n" * 300
    assert differences(pair, [text, "é" * 5000, "猫 " * 5000], ranges=pair.name not in COMPOSING) == []


# All code points below U+3100 and some others. The Unicode tables are of different versions: the library uses several
# (8 for BERT's queries, newer ones for others), heed uses utf8proc's. Code points whose category is the same in Unicode
# 3.2 and Python's version must be split equally. Each tokenizer reads a quarter of them, or with --exhaustive all.
def test_code_points(pair: Pair, is_exhaustive: bool) -> None:
    known = unicodedata.ucd_3_2_0
    values = [value for value in range(sys.maxunicode + 1) if not 0xD800 <= value < 0xE000 and (value < 0x3100 or value % 128 == 0)]
    if not is_exhaustive:
        values = values[pair.number % (4 * pair.part) :: 4 * pair.part]
    wrong = differences(pair, [f"a{chr(value)}b {chr(value)} '{chr(value)}" for value in values], ranges=False)
    assert [case for case in wrong if known.category(case[0][1]) == unicodedata.category(case[0][1]) != "Cn"] == []


def test_decoding(pair: Pair) -> None:
    rng = random.Random(3)
    size = pair.theirs.get_vocab_size()
    lists = [[rng.randrange(size) for _ in range(rng.randrange(8))] for _ in range(500 // pair.part)]
    lists += [pair.theirs.encode(text).ids for text in drawn_texts(4, 200 // pair.part)]
    for skip in [True, False]:
        found = pair.ours([{"ids": ids, "skip": skip} for ids in lists])
        texts = [bytes.fromhex(answer["bytes"]).decode("utf-8", "replace") for answer in found]
        assert texts == [pair.theirs.decode(ids, skip_special_tokens=skip) for ids in lists]


def test_decoding_id_by_id(pair: Pair) -> None:
    """Behind every context: what the library gives of all ids, without what it gives of the context."""
    rng = random.Random(9)
    size = pair.theirs.get_vocab_size()
    lists = [[rng.randrange(size) for _ in range(rng.randrange(2, 12))] for _ in range(300 // pair.part)]
    lists += [pair.theirs.encode(text).ids for text in drawn_texts(10, 100 // pair.part)]
    cases = [(ids[:cut], ids[cut:]) for ids in lists for cut in {0, len(ids) // 2}]
    found = pair.ours([{"ids": ids, "context": context} for context, ids in cases])
    checked = 0
    for (context, ids), answer in zip(cases, found, strict=True):
        whole, before = pair.theirs.decode(context + ids), pair.theirs.decode(context)
        # Bytes of an incomplete character are shown differently from the final text.
        if "\ufffd" in whole + before or not whole.startswith(before):
            continue
        assert before + bytes.fromhex(answer["bytes"]).decode() == whole
        checked += 1
    assert checked > len(cases) // 5


def test_streams_of_whole_texts_are_those_of_the_library(pair: Pair) -> None:
    lists = [pair.theirs.encode(text).ids for text in drawn_texts(11, 60 // pair.part)]
    found = pair.ours([{"ids": ids, "context": []} for ids in lists])
    for ids, answer in zip(lists, found, strict=True):
        stream = decoders.DecodeStream(skip_special_tokens=True)
        theirs = "".join(stream.step(pair.theirs, i) or "" for i in ids)
        ours = bytes.fromhex(answer["bytes"]).decode("utf-8", "replace")
        assert ours.startswith(theirs)  # text that it still holds back is never returned by the library


# Tokens that take white space, and others that begin with it.
OVERLAPPING = [
    AddedToken("<|a", rstrip=True, normalized=False, special=True),
    AddedToken(" a", normalized=False),
    AddedToken("  ", normalized=False),
    AddedToken("b", lstrip=True, normalized=False),
    AddedToken("\n", lstrip=True, rstrip=True, normalized=False),
    AddedToken("|a|", single_word=True, rstrip=True, normalized=False),
]


def test_added_tokens_that_overlap(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tokenizer = Tokenizer(models.BPE({character: i for i, character in enumerate("<|ab cĠĊ")}, []))
    tokenizer.add_tokens(OVERLAPPING)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    overlapping = Pair("overlapping", tmp_path / "tokenizer.json", build / "tests/python/probe/tokenizer_probe")
    rng = random.Random(12)
    texts = ["<|a  ab", "<|a   b", "<|a\n b"]
    texts += ["".join(rng.choice(["<|a", " a", " ", "  ", "b", "\n", "|a|", "c"]) for _ in range(rng.randrange(9))) for _ in range(3000)]
    assert differences(overlapping, texts, ranges=False) == []
    assert differences(overlapping, texts, ranges=False, parse=False) == []


def test_pairs(pair: Pair) -> None:
    processor = json.loads(pair.path.read_text(encoding="utf-8")).get("post_processor") or {}
    if "pair" not in json.dumps(processor) and processor.get("type") != "RobertaProcessing":
        pytest.skip("this tokenizer has no form for pairs")
    pair.theirs.encode_special_tokens = False
    firsts, seconds = drawn_texts(5, 200 // pair.part), drawn_texts(6, 200 // pair.part)
    found = pair.ours([{"text": a, "pair": b} for a, b in zip(firsts, seconds, strict=True)])
    for ours, theirs in zip(found, pair.theirs.encode_batch(list(zip(firsts, seconds, strict=True))), strict=True):
        assert ours["ids"] == theirs.ids and ours["types"] == theirs.type_ids


def test_special_tokens(pair: Pair) -> None:
    about = pair.ours([{"about": True}])[0]
    added = pair.theirs.get_added_tokens_decoder()
    assert about["size"] == pair.theirs.get_vocab_size()
    assert about["special"] == sorted(id for id, token in added.items() if token.special)
