"""The relatives of attention from Python, compared with their formulas in PyTorch and NumPy, in double."""

import numpy as np
import pytest
import torch

import heed

RANDOM = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape)


@pytest.mark.parametrize("pairing", ["halves", "neighbours"])
def test_rotary_embedding_multiplies_complex_numbers(pairing: str) -> None:
    x, ids = draw(2, 3, 5, 8), RANDOM.integers(0, 7, (2, 5))
    angles = draw(7, 3)
    out = heed.rotary_embedding(
        x, np.cos(angles), np.sin(angles), position_ids=ids, pairing=pairing, rotary_dim=6
    )
    first, second = (slice(0, 6, 2), slice(1, 6, 2)) if pairing == "neighbours" else (slice(0, 3), slice(3, 6))
    expected = x.copy()
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles[ids])[:, None]
    expected[..., first], expected[..., second] = turned.real, turned.imag
    np.testing.assert_allclose(out, expected, atol=1e-14)
    packed = x.transpose(0, 2, 1, 3).reshape(2, 5, 24)
    again = heed.rotary_embedding(
        packed, np.cos(angles), np.sin(angles), position_ids=ids, pairing=pairing, rotary_dim=6, num_heads=3
    )
    np.testing.assert_array_equal(again, out.transpose(0, 2, 1, 3).reshape(2, 5, 24))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("delta", [False, True])
def test_linear_attention_is_its_recurrence(gated: bool, delta: bool) -> None:
    query, key, value = draw(2, 4, 6, 5), draw(2, 2, 6, 5) / 3, draw(2, 2, 6, 7)
    state, decay, beta = draw(2, 2, 5, 7), -abs(draw(2, 2, 6, 1)), abs(draw(2, 2, 6))
    options = {"state": state} | ({"decay": decay} if gated else {}) | ({"beta": beta} if delta else {})
    s, expected = state.copy(), np.empty((2, 4, 6, 7))
    for t in range(6):
        if gated:
            s *= np.exp(decay[:, :, t])[..., None]
        written = value[:, :, t]
        if delta:
            written = beta[:, :, t, None] * (written - np.einsum("bhij,bhi->bhj", s, key[:, :, t]))
        s += key[:, :, t, :, None] * written[:, :, None]
        expected[:, :, t] = np.einsum("bhij,bhi->bhj", s.repeat(2, axis=1), query[:, :, t]) / np.sqrt(5)
    for compute in (heed.linear_attention, heed.reference.linear_attention):
        out, after = compute(query, key, value, **options)
        np.testing.assert_allclose(out, expected, atol=1e-13)
        np.testing.assert_allclose(after, s, atol=1e-13)
    floats = {name: x.astype(np.float32) for name, x in options.items()}
    out, _ = heed.linear_attention(*(torch.from_numpy(x).float() for x in (query, key, value)), **floats)
    assert isinstance(out, torch.Tensor) and out.dtype == torch.float32
    np.testing.assert_allclose(out, expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["elu+1", "relu"])
def test_feature_maps(name: str, causal: bool) -> None:
    query, key, value = (torch.from_numpy(draw(1, 2, 9, 4)) for _ in range(3))
    feature = torch.relu if name == "relu" else lambda x: torch.nn.functional.elu(x) + 1
    weights = feature(query) @ feature(key).transpose(-1, -2)
    if causal:
        weights = weights.tril()
    expected = (weights @ value / weights.sum(-1, keepdim=True)).nan_to_num()
    for convert, tolerance in ((torch.Tensor.double, 1e-13), (torch.Tensor.float, 1e-4)):
        out = heed.feature_map_attention(*map(convert, (query, key, value)), feature_map=name, causal=causal)
        torch.testing.assert_close(out.double(), expected, rtol=0, atol=tolerance)


def test_masks_of_caches() -> None:
    shape = (2, 1, 2, 4)
    mask = heed.causal([4, 3]) & heed.key_lengths([4, 3])
    assert mask.picture(shape, batch=0) == "###.\n####" and mask.picture(shape, batch=1) == "##..\n###."
    allowed = np.array([[True, False], [True, True]])
    assert heed.allow(allowed, kv_len=4).picture((2, 4)) == "#...\n##.."
    assert heed.additive(np.zeros((1, 3), np.float32), kv_len=4).picture((2, 4)) == "###.\n###."


def test_misuse_is_a_value_error() -> None:
    x = draw(1, 2, 3, 4)
    with pytest.raises(ValueError, match="query has 3 tokens but key 2"):
        heed.linear_attention(x, x[:, :, :2], x[:, :, :2])
    with pytest.raises(ValueError, match='feature_map is "tanh", expected "elu\\+1" or "relu"'):
        heed.feature_map_attention(x, x, x, feature_map="tanh")
    with pytest.raises(ValueError, match="prob_mod returned shape"):
        heed.reference.flex_attention(x, x, x, prob_mod=lambda weights: weights[0])
    with pytest.raises(ValueError, match="position_ids is float64, expected int64"):
        heed.rotary_embedding(x, x[0, 0], x[0, 0], pairing="halves", position_ids=np.zeros((1, 3)))
    for given, found in ({}, "not given"), ({"pairing": "half"}, '"half"'):
        with pytest.raises(ValueError, match=f'rotary_embedding: pairing is {found}, expected "halves" or "neighbours"'):
            heed.rotary_embedding(x, x[0, 0], x[0, 0], **given)
    with pytest.raises(ZeroDivisionError):
        heed.reference.flex_attention(x, x, x, score_mod=lambda scores: 1 // 0)
