"""The logarithm of the softmax's denominator in two parts: gradients and merged results where a float32 is too coarse for
it, compared with double."""

import copy
import pickle

import numpy as np
import pytest
import torch

import heed
import heed.torch


def draw(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def equal_scores(size: float) -> list[np.ndarray]:
    """query, key and value, of which all scores are `size` where scale is 1: whatever a float32 makes of it, every weight
    is 1/3."""
    query = np.ones((1, 2, 4, 8), np.float32)
    return [query, np.full((1, 2, 3, 8), size / 8, np.float32), draw(1, 2, 3, 5, seed=0)]


GRAD_OUT = draw(1, 2, 4, 5, seed=1)
NAMES = ("query", "key", "value")

# A float32 lse of 2.7e3 is off by up to 1.2e-4, one of 1e8 by up to 4.
large = pytest.mark.parametrize("size", [2.7e3, -2.7e3, 1e8])


def gradients_in_double(operands: list[np.ndarray]) -> tuple[torch.Tensor, ...]:
    doubles = [torch.from_numpy(x).double().requires_grad_() for x in operands]
    query, key, value = doubles
    out = torch.softmax(query @ key.transpose(-2, -1), dim=-1) @ value
    return torch.autograd.grad(out, doubles, torch.from_numpy(GRAD_OUT).double())


def assert_gradients(found, size: float, operands: list[np.ndarray]) -> None:
    for name, gradient, right in zip(NAMES, found, gradients_in_double(operands), strict=True):
        # The gradient of a query is a sum of keys with weights that add up to 0.
        bound = 1e-6 * (abs(size) if name == "query" else 1)
        np.testing.assert_allclose(np.asarray(gradient), right.numpy(), rtol=0, atol=bound, err_msg=name)


def packed(array: np.ndarray) -> np.ndarray:
    """[1, heads, length, dim] as [length, heads, dim], and back."""
    return np.ascontiguousarray(array[0].swapaxes(0, 1))


@large
def test_gradients_of_arrays(size: float) -> None:
    operands = equal_scores(size)
    made = heed.attention(*operands, scale=1.0, return_lse=True)
    found = heed.attention_backward(GRAD_OUT, *operands, *made, lse_low=made.lse_low, scale=1.0)
    assert_gradients(found[:3], size, operands)


def test_an_lse_may_come_without_its_low_part() -> None:
    operands = equal_scores(2.7e3)
    made = heed.attention(*operands, scale=1.0, return_lse=True)
    with_low = heed.attention_backward(GRAD_OUT, *operands, *made, lse_low=made.lse_low, scale=1.0)
    without = heed.attention_backward(GRAD_OUT, *operands, *made, scale=1.0)
    error = np.abs(without.value - with_low.value).max()
    assert 1e-5 < error < 2.7e3 * 2**-24 * np.abs(with_low.value).max()


@large
def test_gradients_of_packed_arrays(size: float) -> None:
    operands = equal_scores(size)
    one_behind_the_other = [packed(x) for x in operands]
    made = heed.attention_packed(*one_behind_the_other, [0, 4], [0, 3], scale=1.0, return_lse=True)
    arguments = (packed(GRAD_OUT), *one_behind_the_other, *made, [0, 4], [0, 3])
    found = heed.attention_packed_backward(*arguments, lse_low=made.lse_low, scale=1.0)
    assert_gradients([gradient.swapaxes(0, 1)[None] for gradient in found[:3]], size, operands)


def attention_packed(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, scale: float) -> torch.Tensor:
    tokens = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    return heed.torch.attention_packed(*tokens, [0, 4], [0, 3], scale=scale).transpose(0, 1)[None]


@large
@pytest.mark.parametrize(
    "attend",
    [
        heed.torch.scaled_dot_product_attention,
        torch.compile(heed.torch.scaled_dot_product_attention, backend="eager", fullgraph=True),
        attention_packed,
    ],
    ids=["one call", "compiled", "packed"],
)
def test_gradients_that_autograd_records(attend, size: float) -> None:
    operands = equal_scores(size)
    tensors = [torch.from_numpy(x).requires_grad_() for x in operands]
    found = torch.autograd.grad(attend(*tensors, scale=1.0), tensors, torch.from_numpy(GRAD_OUT))
    assert_gradients(found, size, operands)


def test_parts_are_merged_with_what_their_lse_lacks() -> None:
    query, key, value = equal_scores(2.7e3)
    parts = [
        heed.attention(query, key[:, :, at], value[:, :, at], scale=1.0, return_lse=True)
        for at in (slice(0, 2), slice(2, 3))
    ]
    whole = heed.attention(query, key, value, scale=1.0, return_lse=True)
    merged = heed.merge_attention(*parts)
    for name in ("out", "lse", "lse_low"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=0, atol=1e-6)
    # Tuples carry no low part of the lse.
    assert np.abs(heed.merge_attention(*map(tuple, parts)).out - whole.out).max() > 1e-5
    wrong = heed.AttentionOutput(*parts[0], parts[0].lse_low.astype(np.float64))
    with pytest.raises(ValueError, match="lse_low of part 0 is float64, expected float32"):
        heed.merge_attention(wrong)


def test_a_cache_gives_the_same() -> None:
    query, key, value = equal_scores(2.7e3)
    whole = heed.attention(query[:, :, :3], key, value, scale=1.0, causal=True, return_lse=True)
    sequence = heed.KvSequence(heed.KvPool(2, 8, 5))
    sequence.append(key, value)
    found = heed.attend(query[:, :, :3], sequence, scale=1.0, causal=True, return_lse=True)
    several = heed.attend(packed(query)[:3], [sequence], [0, 3], scale=1.0, causal=True, return_lse=True)
    assert np.abs(whole.lse_low).max() > 1e-5
    np.testing.assert_array_equal(found.lse_low, whole.lse_low)
    np.testing.assert_array_equal(several.lse_low, whole.lse_low[0])


def test_the_result_unpacks_as_a_tuple() -> None:
    query, key, value = equal_scores(2.7e3)
    made = heed.attention(query, key, value, return_lse=True, weights_of=[(0, 0, 0)])
    out, lse, weights = made
    assert made.out is out and made.lse is lse and weights.shape == (1, 3)
    assert made.lse_low.shape == lse.shape and made.lse_low.dtype == lse.dtype
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert isinstance(again, heed.AttentionOutput) and len(again) == 3
        np.testing.assert_array_equal(again.lse_low, made.lse_low)


def test_what_does_not_belong_to_the_lse() -> None:
    operands = equal_scores(1.0)
    made = heed.attention(*operands, return_lse=True)
    for low, message in (
        (made.lse_low.astype(np.float64), "attention_backward: lse_low is float64, expected float32 as the query"),
        (made.lse_low[:, :, 1:], r"forward.lse_low has shape \[1, 2, 3\], expected \[1, 2, 4\]"),
    ):
        with pytest.raises(ValueError, match=message):
            heed.attention_backward(GRAD_OUT, *operands, *made, lse_low=low)


def half_operands(dtype: torch.dtype) -> list[torch.Tensor]:
    return [torch.from_numpy(draw(1, 2, 60, 8, seed=seed)).to(dtype) for seed in range(4)]


HALF = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


@HALF
def test_what_half_precision_lacks(dtype: torch.dtype) -> None:
    grad_out, *operands = half_operands(dtype)
    made = heed.attention(*operands, return_lse=True)
    assert made.out_low.shape == made.out.shape and made.out_low.dtype == dtype
    whole = heed.attention(*(x.float() for x in operands), return_lse=True)
    assert whole.out_low is None
    assert heed.attention(*operands, return_lse=True, precision="exact").out_low is None
    if dtype == torch.float16:
        assert torch.equal(made.out_low, (whole.out - made.out.float()).half())
    with_low = heed.attention_backward(grad_out, *operands, *made, lse_low=made.lse_low, out_low=made.out_low)
    without = heed.attention_backward(grad_out, *operands, *made, lse_low=made.lse_low)
    for name, one, other in zip(NAMES, with_low, without):
        torch.testing.assert_close(one, other, msg=name, rtol=0, atol=float(one.abs().max()) * torch.finfo(dtype).eps)
    again = pickle.loads(pickle.dumps(made))
    assert torch.equal(again.out_low, made.out_low) and torch.equal(again.lse_low, made.lse_low)


@HALF
def test_autograd_keeps_what_half_precision_lacks(dtype: torch.dtype) -> None:
    grad_out, *operands = half_operands(dtype)
    made = heed.attention(*operands, return_lse=True)
    expected = heed.attention_backward(grad_out, *operands, *made, lse_low=made.lse_low, out_low=made.out_low)
    tensors = [x.clone().requires_grad_() for x in operands]
    compiled = torch.compile(heed.torch.scaled_dot_product_attention, backend="eager", fullgraph=True)
    for attend in (heed.torch.scaled_dot_product_attention, compiled, heed.torch.attention):
        for found, right in zip(torch.autograd.grad(attend(*tensors), tensors, grad_out), expected[:3]):
            assert torch.equal(found, right)


def test_what_does_not_belong_to_out() -> None:
    grad_out, *operands = half_operands(torch.float16)
    made = heed.attention(*operands, return_lse=True)
    for low, message in (
        (made.out_low.float(), "attention_backward: out_low is float32, expected float16 as the query"),
        (made.out_low[:, :, 1:], r"forward.out_low has shape \[1, 2, 59, 8\], expected \[1, 2, 60, 8\]"),
    ):
        with pytest.raises(ValueError, match=message):
            heed.attention_backward(grad_out, *operands, *made, out_low=low)
