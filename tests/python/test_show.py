"""heed.show: what the page is given."""

import base64
import json
import pathlib
import re
from html import unescape

import numpy as np
import pytest

import heed

RANDOM = np.random.default_rng(0)
QUERY, KEY = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 7, 8), (2, 2, 9, 8)))


def sentence_of(page: heed.Page) -> dict:
    """What the page's script reads."""
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.html, re.DOTALL)
    (sentence,) = json.loads(data[1])["sentences"]
    return sentence


def numbers_of(encoded: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(encoded), np.float32).reshape(shape)


def test_show_is_the_explorers_page(tmp_path: pathlib.Path) -> None:
    tokens = ["<the>", "cat", "sat"]
    query, key = QUERY[..., :3, :], KEY[..., :3, :]
    num_heads, head_dim = query.shape[1], query.shape[3]
    page = heed.show(query, key, tokens=tokens, causal=True, scale=0.5)
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    frame = page._repr_html_()
    assert "allow-same-origin" not in frame
    assert unescape(re.search('srcdoc="([^"]*)"', frame)[1]) == page.html
    sentence = sentence_of(page)
    assert sentence["tokens"] == tokens and sentence["mask"] == "causal" and sentence["scale"] == 0.5
    np.testing.assert_array_equal(numbers_of(sentence["query"], num_heads, 3, head_dim), query[0])
    rows = [(0, head, q) for head in range(num_heads) for q in range(3)]
    weights = heed.attention_weights(query, key, rows, causal=True, scale=0.5).reshape(num_heads, 3, 3)
    np.testing.assert_array_equal(numbers_of(sentence["weights"], num_heads, 3, 3), weights)


@pytest.mark.parametrize("option", ["softcap", "bias", "additive"])
def test_show_leaves_no_option_out(option: str) -> None:
    """What is more than products, scale and mask is shown as weights."""
    x = QUERY[1:, :, :4]
    options = {
        "softcap": {"softcap": 1.0, "causal": True},
        "bias": {"bias": np.eye(4)},
        "additive": {"mask": heed.additive(np.eye(4))},
    }[option]
    sentence = sentence_of(heed.show(x, x, head=1, **options))
    assert "query" not in sentence and sentence["headNames"] == ["head 1"]
    assert sentence["mask"] == ("causal" if option == "softcap" else "none")
    expected = reference_weights(x, **options)[:, 1]
    np.testing.assert_allclose(numbers_of(sentence["weights"], 1, 4, 4), expected, atol=1e-6)


def reference_weights(x: np.ndarray, **options) -> np.ndarray:
    return heed.reference.attention(x, x, x, keep=["weights"], **options).weights


def test_show_takes_weights_of_a_batch() -> None:
    """transformers returns attentions of each layer as [batch, num_heads, queries, keys]."""
    weights = RANDOM.random((2, 3, 4, 4), np.float32)
    for batch in (0, 1):
        sentence = sentence_of(heed.show(weights, batch=batch))
        np.testing.assert_array_equal(numbers_of(sentence["weights"], 3, 4, 4), weights[batch])
    sentence = sentence_of(heed.show(weights[1:], head=2))
    assert sentence["headNames"] == ["head 2"]
    np.testing.assert_array_equal(numbers_of(sentence["weights"], 1, 4, 4), weights[1, 2:])
    for misuse, options in {
        r"weights has shape \[1, 2, 3, 4, 4\], expected \[queries, keys\]": {"query": weights[None]},
        "batch is 2, of 2": {"query": weights, "batch": 2},
        "head is 3, of 3": {"query": weights, "head": 3},
        "weights are shown as they are, but causal was given": {"query": weights, "causal": True},
    }.items():
        with pytest.raises(ValueError, match=misuse):
            heed.show(**options)


def test_show_puts_queries_behind_keys_that_are_others() -> None:
    weights = np.array([[0.25, 0.75]], np.float32)
    sentence = sentence_of(heed.show(weights, tokens=["q"], key_tokens=["a", "b"]))
    assert sentence["tokens"] == ["a", "b", "q"]
    np.testing.assert_array_equal(numbers_of(sentence["weights"], 3, 3), [[0, 0, 0], [0, 0, 0], [0.25, 0.75, 0]])
    assert sentence_of(heed.show(QUERY, KEY[:, :, :1]))["tokens"][:2] == ["key 0", "query 0"]
    assert len(sentence_of(heed.show(QUERY, KEY[:, :, :0]))["tokens"]) == QUERY.shape[2]


def test_show_refuses_what_does_not_fit() -> None:
    for message, call in {
        "2 tokens, but 7 queries": lambda: heed.show(QUERY, KEY, tokens=["a", "b"]),
        "head is 9, of": lambda: heed.show(QUERY, KEY, head=9),
        "batch is -1, of": lambda: heed.show(QUERY, KEY, batch=-1),
        r"weights has shape \[3\]": lambda: heed.show(np.ones(3)),
        "softcap": lambda: heed.show(QUERY, KEY, softcap=-1.0),
        "tokens is empty": lambda: heed.show(QUERY[:, :, :0], KEY[:, :, :0]),
        "there are no heads": lambda: heed.show(QUERY[:, :0, :7], KEY[:, :0, :7]),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
