"""Positions of x-transformers beside heed's, live: whole attention layers with rotary embeddings, T5's bias and ALiBi."""

import functools

import numpy as np
import pytest
import torch

import heed

x_transformers = pytest.importorskip("x_transformers.x_transformers")

RANDOM = torch.Generator().manual_seed(0)
DIM, HEADS, HEAD_DIM, LENGTH = 24, 4, 8, 75


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=RANDOM, dtype=torch.float64).to(dtype)


def assert_same(found, expected, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def layer_of(causal: bool) -> torch.nn.Module:
    """A layer of 4 heads of 8 dimensions, in double, with random weights."""
    layer = x_transformers.Attention(DIM, dim_head=HEAD_DIM, heads=HEADS, causal=causal, flash=False)
    for parameter in layer.parameters():
        parameter.data = draw(*parameter.shape) / 4
    layer.attend.attn_fn = functools.partial(torch.softmax, dim=-1)  # its own function rounds to float32
    return layer.double()


def operands_of(layer: torch.nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Queries, keys and values [batch, heads, length, 8] as the layer projects them."""
    parts = (layer.to_q, layer.to_k, layer.to_v)
    return [part(x).unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2) for part in parts]


def joined(layer: torch.nn.Module, out: torch.Tensor) -> torch.Tensor:
    return layer.to_out(out.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("causal", [False, True])
def test_a_layer_with_bias_of_t5(causal: bool) -> None:
    layer, x = layer_of(causal), draw(2, LENGTH, DIM)
    buckets = heed.RelativeBuckets.t5(16, 40, bidirectional=not causal)
    # x-transformers multiplies its learned table by the square root of the head size.
    bias = x_transformers.RelativePositionBias(HEAD_DIM**0.5, causal, 16, 40, HEADS).double()
    bias.relative_attention_bias.weight.data = draw(16, HEADS)
    expected = layer(x, rel_pos=bias)
    grad_out = draw(*expected.shape)
    (expected_gradient,) = torch.autograd.grad(expected, bias.relative_attention_bias.weight, grad_out)

    with torch.no_grad():
        operands = operands_of(layer, x)
        options = {"causal": causal, "relative_bias": (bias.scale * bias.relative_attention_bias.weight.T, buckets)}
        made = heed.attention(*operands, return_lse=True, **options)
        assert_same(joined(layer, made.out), expected)
        grads = (grad_out @ layer.to_out.weight).unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)
        found = heed.attention_backward(grads, *operands, *made, lse_low=made.lse_low, **options)
        # A sum of as many as 150 gradients.
        assert_same(bias.scale * found.relative_bias.T, expected_gradient, 1e-10)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 3, 4, 6, 8, 12])
def test_slopes_of_alibi(heads: int, causal: bool) -> None:
    expected = x_transformers.AlibiPositionalBias(heads)
    np.testing.assert_allclose(heed.alibi_slopes(heads), expected.slopes.flatten(), rtol=1e-6)
    query, key, value = draw(2, heads, 9, HEAD_DIM), draw(2, heads, LENGTH, HEAD_DIM), draw(2, heads, LENGTH, HEAD_DIM)
    # The last query is at the position of the last key in both.
    bias = expected.double()(9, LENGTH)
    hidden = torch.ones(9, LENGTH, dtype=torch.bool).triu(LENGTH - 9 + 1) if causal else torch.zeros(9, LENGTH, dtype=torch.bool)
    scores = query @ key.transpose(-1, -2) * HEAD_DIM**-0.5 + bias
    position = {"causal": "bottom_right"} if causal else {"query_offset": LENGTH - 9}
    made = heed.attention(query, key, value, alibi_slopes=expected.slopes.flatten(), **position)
    assert_same(made, scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value)


def test_a_layer_with_alibi() -> None:
    layer, x = layer_of(causal=True), draw(2, LENGTH, DIM)
    bias = x_transformers.AlibiPositionalBias(HEADS).double()
    with torch.no_grad():
        made = heed.attention(*operands_of(layer, x), causal=True, alibi_slopes=bias.slopes.flatten())
        assert_same(joined(layer, made), layer(x, rel_pos=bias))


@pytest.mark.parametrize(("rotary_dim", "stretch"), [(HEAD_DIM, 1.0), (4, 1.0), (HEAD_DIM, 4.0)], ids=["all", "part", "linear"])
def test_a_layer_with_rotary_embeddings(rotary_dim: int, stretch: float) -> None:
    layer, x = layer_of(causal=True), draw(2, LENGTH, DIM)
    rotary = x_transformers.RotaryEmbedding(rotary_dim, interpolation_factor=stretch).double()
    with torch.no_grad():
        expected = layer(x, rotary_pos_emb=rotary.forward_from_seq_len(LENGTH))
        # Adjacent dimensions are a pair in x-transformers. Its frequencies were rounded to float32.
        angles = torch.arange(LENGTH, dtype=torch.float64)[:, None] * rotary.inv_freq / stretch
        query, key, value = operands_of(layer, x)
        turned = [
            heed.rotary_embedding(part, angles.cos(), angles.sin(), pairing="neighbours", rotary_dim=rotary_dim)
            for part in (query, key)
        ]
        assert_same(joined(layer, heed.attention(*turned, value, causal=True)), expected)


def test_frequencies_of_rotary_embeddings() -> None:
    for rotary_dim, base in ((8, 10000), (64, 10000), (128, 500000)):
        expected = x_transformers.RotaryEmbedding(rotary_dim, base=base).inv_freq
        inv_freq, factor = heed.rotary_frequencies(rotary_dim, rope_theta=base)
        assert factor == 1.0
        np.testing.assert_allclose(inv_freq, expected, rtol=2e-6)
