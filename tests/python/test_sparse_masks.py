"""Masks joined by |, and the patterns of sparse attention, by formulas of NumPy."""

import gc
import weakref

import numpy as np
import pytest

import heed

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 4, 40, 8), np.float32)

# True for the keys k that a query at position p sees.
PATTERNS = {
    "global_tokens": (lambda at: heed.global_tokens(3, at), lambda p, k: (p < 3) | (k < 3)),
    "strided": (lambda at: heed.strided(4, at), lambda p, k: (p - k) % 4 == 0),
    "columns": (lambda at: heed.columns(5), lambda p, k: (k % 5 == 4) & (p == p)),
    "dilated": (lambda at: heed.dilated(2, 3, at), lambda p, k: (abs(p - k) <= 6) & ((p - k) % 3 == 0)),
    "longformer": (lambda at: heed.longformer(2, 1, at), lambda p, k: (abs(p - k) <= 2) | (p < 1) | (k < 1)),
    "sparse_transformer": (
        lambda at: heed.sparse_transformer(4, at),
        lambda p, k: (k <= p) & ((p - k < 4) | ((p - k) % 4 == 0)),
    ),
    "or": (
        lambda at: (heed.dilated(1, 7, at) & heed.causal(at)) | heed.sliding_window(0, 2, at) | heed.global_tokens(1, at),
        lambda p, k: (k == p - 7) | ((k >= p) & (k <= p + 2)) | (p < 1) | (k < 1),
    ),
    "and-or": (
        lambda at: (heed.strided(3, at) | heed.columns(4)) & heed.causal(at),
        lambda p, k: (((p - k) % 3 == 0) | (k % 4 == 3)) & (k <= p),
    ),
}
# Alignments, each with the number of queries and the position of query 0 among ten keys.
ALIGNMENTS = {"square": (10, 0), "top_left": (6, 0), "bottom_right": (6, 4), "offset": (6, 2)}


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("name", PATTERNS)
def test_pictures(name: str, alignment: str) -> None:
    make, sees = PATTERNS[name]
    q_len, first = ALIGNMENTS[alignment]
    mask = make(first if alignment == "offset" else alignment)
    expected = sees(np.arange(q_len)[:, None] + first, np.arange(10))
    np.testing.assert_array_equal(mask.allow((q_len, 10)), expected)
    assert mask.picture((q_len, 10)) == "\n".join("".join(".#"[seen] for seen in row) for row in expected.astype(int))


@pytest.mark.parametrize("name", PATTERNS)
def test_attention_is_that_of_the_same_booleans(name: str) -> None:
    mask = PATTERNS[name][0]("bottom_right")
    query = np.ascontiguousarray(X[:, :, 17:])
    found = heed.attention(query, X, X, mask=mask, return_lse=True)
    booleans = heed.allow(mask.allow((23, 40)))
    expected = heed.attention(query, X, X, mask=booleans, return_lse=True)
    for ours, theirs in zip(found, expected):
        np.testing.assert_array_equal(ours, theirs)
    assert np.abs(found.out - heed.attention(query, X, X)).max() > 1e-2
    gradients = [
        heed.attention_backward(query, query, X, X, *made, mask=which) for made, which in ((found, mask), (expected, booleans))
    ]
    for ours, theirs in zip(*(pair[:3] for pair in gradients)):
        np.testing.assert_array_equal(ours, theirs)


def test_names() -> None:
    assert str(heed.longformer(2, 1)) == str(heed.sliding_window(2, 2) | heed.global_tokens(1))
    assert str(heed.longformer(2, 1)) == "sliding_window(2, 2) | global_tokens(1)"
    assert str((heed.strided(3) | heed.columns(4)) & heed.causal()) == "(strided(3) | columns(4)) & causal"
    assert heed.longformer(window=2, num_global=1, alignment="top_left").picture((2, 3)) == "###\n###"
    assert str(heed.causal() | heed.Mask()) == "none"


@pytest.mark.parametrize("first", ["array", "function"])
def test_or_keeps_arrays_and_functions_alive(first: str) -> None:
    def visible(b, h, q_idx, kv_idx):
        return kv_idx == 3

    allowed = np.zeros((5, 5), bool)
    allowed[2, 4] = True
    alive = [weakref.ref(allowed), weakref.ref(visible)]
    masks = [heed.allow(allowed), heed.where(visible)]
    mask = masks[0] | masks[1] if first == "array" else masks[1] | masks[0]
    expected = allowed | (np.arange(5) == 3)
    del allowed, visible, masks
    gc.collect()
    assert all(held() is not None for held in alive)
    np.testing.assert_array_equal(mask.allow((5, 5)), expected)
    del mask
    gc.collect()
    assert all(held() is None for held in alive)


def test_what_a_function_of_either_side_raises_is_raised() -> None:
    def fails(*_):
        raise LookupError("no such key")

    for mask in (heed.where(fails) | heed.columns(3), heed.columns(3) | heed.where(fails)):
        with pytest.raises(LookupError, match="no such key"):
            heed.attention(X, X, X, mask=mask)


MISUSES = {
    r"additive\[3, 3\]: what an additive mask adds has no place in \|": lambda: heed.causal() | heed.additive(np.ones((3, 3))),
    "global_tokens: count is -1, expected at least 0": lambda: heed.global_tokens(-1),
    "strided: stride is 0, expected 1 to": lambda: heed.strided(0),
    "columns: stride is 0, expected 1 to": lambda: heed.columns(0),
    "dilated: window is -1, expected 0 to": lambda: heed.dilated(-1, 2),
    "dilated: step is 0, expected 1 to": lambda: heed.dilated(2, 0),
    "longformer: window is -1, expected at least 0$": lambda: heed.longformer(-1, 1),
    "strided: stride is 0, expected 1": lambda: heed.sparse_transformer(0),
    "longformer: alignment is 'left', expected \"square\"": lambda: heed.longformer(1, 1, "left"),
    "dilated: alignment is True, expected \"square\"": lambda: heed.dilated(1, 1, True),
    "where lengths differ, name the alignment": lambda: heed.strided(2).picture((2, 3)),
}


@pytest.mark.parametrize("message", MISUSES)
def test_misuse_is_a_value_error_with_the_librarys_words(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MISUSES[message]()


def test_a_mask_is_joined_with_masks_only() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        heed.causal() | np.ones((3, 3), bool).tolist()
