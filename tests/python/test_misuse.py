"""What looks like one thing and would mean another: it means the first, or is refused in words."""

import pathlib
import re
import subprocess

import numpy as np
import pytest
import torch

import heed
import heed.torch

ROOT = pathlib.Path(__file__).parents[2]
RANDOM = np.random.default_rng(0)


def draw(*shape: int, dtype=np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


X = draw(1, 4, 9, 8)
LAST = np.ascontiguousarray(X[:, :, -1:])


# --- causal, window -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [0, 1, 5, 1.0, np.int64(1), [9], torch.tensor(True)], ids=repr)
def test_causal_is_not_a_number(causal) -> None:
    """1 was an offset, by which every query saw the next one's key."""
    with pytest.raises(ValueError, match=r'attention: causal is .*, expected True, False, "top_left" or "bottom_right"'):
        heed.attention(X, X, X, causal=causal)


@pytest.mark.parametrize(
    ("causal", "meant"),
    [("casual", "True"), ("causal", "True"), ("bottom-right", "'bottom_right'"), ("topleft", "'top_left'"), ("sideways", None)],
)
def test_a_misspelt_alignment_gets_a_suggestion(causal, meant) -> None:
    expected = f"key n; did you mean {meant}\\?$" if meant else "key n$"
    with pytest.raises(ValueError, match=expected) as refused:
        heed.attention(X, X, X, causal=causal)
    assert ("did you mean" in str(refused.value)) == (meant is not None)


@pytest.mark.parametrize("alignment", [True, np.True_, None, 1.0, ["a"]], ids=repr)
def test_an_alignment_is_not_a_truth_value(alignment) -> None:
    for make in (heed.causal, lambda alignment: heed.prefix(3, alignment), lambda alignment: heed.sliding_window(1, 1, alignment)):
        with pytest.raises(ValueError, match='alignment is .*, expected "square", "top_left", "bottom_right", a number of'):
            make(alignment)


def test_causal_may_be_numpys_boolean_or_none() -> None:
    everything, causal = heed.attention(X, X, X), heed.attention(X, X, X, causal=True)
    for yes, no in ((np.True_, np.False_), (np.bool_(True), None)):
        np.testing.assert_array_equal(heed.attention(X, X, X, causal=yes), causal)
        np.testing.assert_array_equal(heed.attention(X, X, X, causal=no), everything)


def test_a_windows_sides_are_whole_numbers() -> None:
    expected = heed.attention(X, X, X, window=(3, 3))
    for window in (3, np.int64(3), (np.int32(3), 3), [3, np.uint8(3)]):
        np.testing.assert_array_equal(heed.attention(X, X, X, window=window), expected)
    for window in (-1, (3, -1), (1, 2, 3), (1,), (), 1.5, "31", True, (True, 2), np.array([1, 2])):
        with pytest.raises(ValueError, match=r"attention: window is .*, expected \(left, right\) or one number") as caught:
            heed.attention(X, X, X, window=window)
        assert "kUnbounded" not in str(caught.value)
    with pytest.raises(ValueError, match="sliding_window: right is -1, expected at least 0, or None for no bound"):
        heed.sliding_window(None, -1)


def test_alibi_measures_from_where_the_mask_puts_the_query() -> None:
    """A cache of nine keys and its last query: the slope of its own key is none."""
    slopes = heed.alibi_slopes(4)
    expected = heed.attention(X, X, X, causal=True, alibi_slopes=slopes)[:, :, -1:]
    aligned = {"causal": "bottom_right"}
    for options in (aligned, {"mask": heed.causal("bottom_right")}, aligned | {"query_offset": 8}, aligned | {"window": 8}):
        found = heed.attention(LAST, X, X, alibi_slopes=slopes, **options)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
        double = (x.astype(np.float64) for x in (LAST, X, X))
        found = heed.reference.attention(*double, alibi_slopes=slopes, **options).out
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    # Several sequences, each with its own lengths.
    packed = (np.ascontiguousarray(x[0].swapaxes(0, 1)) for x in (np.concatenate([LAST, LAST], 2), X, X))
    found = heed.attention_packed(*packed, [0, 1, 2], [0, 9, 9], alibi_slopes=slopes, **aligned)
    np.testing.assert_allclose(found[0], expected[0, :, 0], rtol=0, atol=1e-6)


# --- functions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, "yes", np.array(None), 1j], ids=repr)
def test_a_function_returns_numbers(result) -> None:
    with pytest.raises(ValueError, match="where: the function returned .*, expected booleans that broadcast to"):
        heed.attention(X, X, X, mask=heed.where(lambda *_: result))
    with pytest.raises(ValueError, match="score_mod: the function returned .*, expected scores that broadcast to"):
        heed.attention(X, X, X, score_mod=lambda *_: result)


def test_a_mask_of_scores_is_not_one_of_booleans() -> None:
    with pytest.raises(ValueError, match="where: the function returned an array of float64, expected booleans"):
        heed.where(lambda b, h, q_idx, kv_idx: np.where(kv_idx <= q_idx, 0, -np.inf)).allow((3, 3))


def test_any_byte_but_0_is_true() -> None:
    """NumPy takes a byte of 7 for true; to C++ it is no boolean at all."""
    ones = np.tril(np.ones((9, 9), bool))
    sevens = (ones.astype(np.uint8) * 7).view(bool)

    def where(array: np.ndarray) -> heed.Mask:
        return heed.where(lambda b, h, q_idx, kv_idx: array[q_idx, kv_idx])

    for mask in (where, heed.allow):
        np.testing.assert_array_equal(heed.attention(X, X, X, mask=mask(sevens)), heed.attention(X, X, X, mask=mask(ones)))
    hidden = (1 - ones.astype(np.uint8)).view(bool)
    seven_times = ((1 - ones.astype(np.uint8)) * 7).view(bool)
    np.testing.assert_array_equal(
        heed.attention(X, X, X, mask=heed.block(seven_times)), heed.attention(X, X, X, mask=heed.block(hidden))
    )


# --- arrays ---------------------------------------------------------------------------------------------------------


def test_the_sign_of_a_negative_tensor_counts() -> None:
    """PyTorch notes it beside the memory."""
    x = torch.randn(1, 2, 5, 8, dtype=torch.complex64)
    plain = x.real.contiguous()
    for negative in (torch._neg_view(plain), x.conj().imag):
        assert negative.is_neg()
        value = negative.resolve_neg().contiguous()
        expected = heed.attention(plain, plain, value)
        torch.testing.assert_close(heed.torch.scaled_dot_product_attention(plain, plain, negative), expected, rtol=0, atol=0)
        if negative.stride(-1) == 1:
            torch.testing.assert_close(heed.attention(plain, plain, negative), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("dtype", "name"), [(">f4", ">f4"), (object, "object"), (np.longdouble, r"float\d+"), ("U1", "<U1")], ids=repr
)
def test_an_array_of_another_type_is_named(dtype, name: str) -> None:
    other = np.zeros((1, 1, 3, 4)).astype(dtype)
    for call in (lambda: heed.attention(other, other, other), lambda: heed.additive(other)):
        with pytest.raises(ValueError, match=f"is a ndarray of dtype {name}, expected"):
            call()


TENSOR = torch.zeros(1, 1, 3, 4, requires_grad=True)
RECORDED = {
    "attention: query.*call heed.torch.scaled_dot_product_attention": lambda: heed.attention(TENSOR, TENSOR, TENSOR),
    "attention_packed: query.*call heed.torch.attention_packed": lambda: heed.attention_packed(*[TENSOR[0]] * 3, [0, 1]),
    "attention_packed: bias.*call heed.torch.attention_packed": lambda: heed.attention_packed(
        *[TENSOR[0].detach()] * 3, [0, 1], bias=TENSOR
    ),
    "attention: sinks.*call heed.torch.attention_packed": lambda: heed.attention(*[X] * 3, sinks=TENSOR[0, 0, 0]),
    "linear_attention: query.*call heed.torch.linear_attention": lambda: heed.linear_attention(*[TENSOR] * 3),
    "feature_map_attention: query.*call heed.torch.feature_map_attention": lambda: heed.feature_map_attention(*[TENSOR] * 3),
    "rotary_embedding: x.*call heed.torch.rotary_embedding": lambda: heed.rotary_embedding(
        TENSOR, *[torch.ones(3, 2)] * 2, pairing="halves"
    ),
    r"attention_statistics: query.*pass query.detach\(\)$": lambda: heed.attention_statistics(TENSOR, TENSOR),
    r"show: weights.*pass weights.detach\(\)$": lambda: heed.show(TENSOR),
}


@pytest.mark.parametrize("message", RECORDED)
def test_what_records_gradients_is_named(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RECORDED[message]()


def test_pytorchs_causal_masks_have_no_elements() -> None:
    bias = torch.nn.attention.bias.causal_upper_left(9, 9)
    with pytest.raises(ValueError, match='additive: array is a .*CausalBias, which has no elements: heed.causal\\("top_left"\\)'):
        heed.additive(bias)


OTHERS = {
    r"show: tokens\[0\] is 1, expected a str": lambda: heed.show(X[0, 0], tokens=[1] * 9),
    r"show: key_tokens\[1\] is None, expected a str": lambda: heed.show(X, X, key_tokens=["a", None]),
    r"plan: query\[0\] is 1.5, expected a whole number": lambda: heed.plan((1.5, 4, 9, 8), X, X),
    r"plan: key\[3\] is 'a', expected a whole number": lambda: heed.plan(X, [1, 4, 9, "a"], X),
    r"attention_packed: cu_seqlens_q is \[0, 1.5\], expected": lambda: heed.attention_packed(X[0], X[0], X[0], [0, 1.5]),
    "attention_packed: cu_seqlens_k is 3, expected": lambda: heed.attention_packed(X[0], X[0], X[0], [0, 4], 3),
}


@pytest.mark.parametrize("message", OTHERS)
def test_misuse_is_a_value_error_that_says_what_was_expected(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OTHERS[message]()


# --- installing -----------------------------------------------------------------------------------------------------


def test_a_failed_installation_names_the_remedy() -> None:
    """What pip prints at the end, and that there is such a thing to type."""
    said = re.search(r'messages\.after-failure = """(.*?)"""', (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert said is not None
    command = re.search(r"scripts/install-dependencies wheel", said[1])
    assert command is not None
    checked = subprocess.run(["bash", "-n", ROOT / command[0].split()[0]], check=False)
    assert checked.returncode == 0
    groups = (ROOT / command[0].split()[0]).read_text()
    assert all(f"[{group}]=" in groups for group in command[0].split()[1:])
