"""heed's BLEU against sacrebleu's, on the same tokens."""

import json
import pathlib
import random
import subprocess

import pytest
import sacrebleu

Texts = list[list[str]]


def noisy(rng: random.Random, text: list[str], error: float) -> list[str]:
    """The text with tokens replaced, left out and added."""
    result = []
    for token in text:
        if rng.random() < error / 3:
            result.append(rng.choice("abcdefg"))
        if rng.random() >= error / 3:
            result.append(rng.choice("abcdefg") if rng.random() < error / 3 else token)
    return result


def drawn(seed: int, count: int, longest: int, error: float) -> tuple[Texts, Texts]:
    rng = random.Random(seed)
    references = [rng.choices("abcdefg", k=rng.randint(1, longest)) for _ in range(count)]
    return [noisy(rng, text, error) for text in references], references


# Hypotheses and references: good, bad, too short, too long, without matches, without tokens.
CASES: dict[str, tuple[Texts, Texts]] = {
    "good": drawn(1, 50, 20, 0.2),
    "bad": drawn(2, 50, 20, 1.5),
    "short_texts": drawn(3, 30, 4, 0.5),
    "single": ([["the", "cat", "sat", "on", "it"]], [["the", "cat", "sat", "on", "the", "mat"]]),
    "clipped": ([["the"] * 7], [["the", "cat", "is", "on", "the", "mat"]]),
    "too_long": ([["a", "b", "c", "d", "e", "f"]], [["a", "b", "c", "d"]]),
    "too_short": ([["a", "b", "c", "d"]], [["a", "b", "c", "d", "e", "f", "g"]]),
    "no_bigram": ([["a", "x", "b", "y", "c"]], [["a", "b", "c", "d", "e"]]),
    "no_match": ([["x", "y", "z", "u"]], [["a", "b", "c", "d"]]),
    "perfect": ([["a", "b", "c", "d", "e"]], [["a", "b", "c", "d", "e"]]),
    "perfect_but_short": ([["a", "b"]], [["a", "b"]]),
    "empty": ([[]], [["a", "b"]]),
}
OPTIONS = [(True, False), (True, True), (False, False), (False, True)]


@pytest.fixture(scope="module")
def found(build: pathlib.Path) -> dict[tuple, dict]:
    keys = [(name, smooths, effective) for name in CASES for smooths, effective in OPTIONS]
    cases = [
        {
            "hypotheses": CASES[name][0],
            "references": CASES[name][1],
            "smooths": smooths,
            "effective_order": effective,
        }
        for name, smooths, effective in keys
    ]
    program = build / "tests/python/probe/bleu_probe"
    result = subprocess.run(
        program, input=json.dumps(cases), capture_output=True, text=True, check=True, timeout=300
    )
    return dict(zip(keys, json.loads(result.stdout)))


@pytest.mark.parametrize("smooths,effective", OPTIONS)
@pytest.mark.parametrize("name", CASES)
def test_bleu_agrees(name: str, smooths: bool, effective: bool, found: dict) -> None:
    metric = sacrebleu.BLEU(
        tokenize="none",
        force=True,
        smooth_method="exp" if smooths else "none",
        effective_order=effective,
    )
    hypotheses, references = ([" ".join(text) for text in texts] for texts in CASES[name])
    expected = metric.corpus_score(hypotheses, [references])
    bleu = found[name, smooths, effective]
    assert bleu["score"] == pytest.approx(expected.score, rel=1e-12, abs=1e-12)
    assert bleu["brevity_penalty"] == pytest.approx(expected.bp, rel=1e-12)
    if expected.score > 0:
        assert bleu["precisions"] == pytest.approx(expected.precisions, rel=1e-12)
