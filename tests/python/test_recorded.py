"""Gradients of attention's relatives and of packed sequences, by PyTorch's autograd and without it."""

import numpy as np
import pytest
import torch

import heed.torch

RANDOM = torch.Generator().manual_seed(0)


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=RANDOM, dtype=torch.float64).to(dtype).requires_grad_()


def assert_same(found, expected, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(list(found), list(expected), rtol=0, atol=tolerance)


# --- rotary embeddings ----------------------------------------------------------------------------------------------


def turned(x: torch.Tensor, angles: torch.Tensor, pairing: str) -> torch.Tensor:
    """The rotation of the first dimensions, in PyTorch."""
    width = 2 * angles.shape[-1]
    pairs, are_neighbours = x[..., :width], pairing == "neighbours"
    first, second = (pairs[..., ::2], pairs[..., 1::2]) if are_neighbours else pairs.chunk(2, -1)
    parts = (first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos())
    both = torch.stack(parts, -1).flatten(-2) if are_neighbours else torch.cat(parts, -1)
    return torch.cat([both, x[..., width:]], -1)


@pytest.mark.parametrize("pairing", ["halves", "neighbours"])
def test_rotary_embedding(pairing: str) -> None:
    x, angles = draw(2, 3, 5, 8), draw(7, 3).detach()
    options = {"pairing": pairing, "rotary_dim": 6, "offset": 2}

    def attend(x: torch.Tensor) -> torch.Tensor:
        return heed.torch.rotary_embedding(x, angles.cos(), angles.sin(), **options)

    assert torch.autograd.gradcheck(attend, x)
    grad_out = draw(2, 3, 5, 8).detach()
    expected = torch.autograd.grad(turned(x, angles[2:], pairing), x, grad_out)
    assert_same(torch.autograd.grad(attend(x), x, grad_out), expected)
    plain = heed.rotary_embedding_backward(grad_out.numpy(), angles.cos().numpy(), angles.sin().numpy(), **options)
    assert_same([torch.from_numpy(plain)], expected)
    # Half precision is rotated back in float32 and rounded once.
    half = x.detach().bfloat16().requires_grad_()
    (found,) = torch.autograd.grad(attend(half), half, grad_out.bfloat16())
    assert found.dtype == torch.bfloat16
    (wanted,) = torch.autograd.grad(turned(x, angles[2:], pairing), x, grad_out.bfloat16().double())
    assert_same([found.double()], [wanted], 2**-6)


# --- linear attention -----------------------------------------------------------------------------------------------


def linear(query, key, value, decay, beta, state, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The recurrence, in PyTorch."""
    group, outs = query.shape[1] // key.shape[1], []
    for t in range(query.shape[2]):
        k, v = key[:, :, t, :, None], value[:, :, t, None]
        if decay is not None:
            state = state * decay[:, :, t, :, None].exp()
        if beta is not None:
            v = beta[:, :, t, None, None] * (v - (state * k).sum(-2, keepdim=True))
        state = state + k * v
        read = state.repeat_interleave(group, 1)
        outs.append(scale * (read * query[:, :, t, :, None]).sum(-2))
    return torch.stack(outs, 2), state


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule: str) -> None:
    query, key, value, state = draw(2, 4, 4, 3), draw(2, 2, 4, 3), draw(2, 2, 4, 5), draw(2, 2, 3, 5)
    decay = draw(2, 2, 4, 3) if "gated" in rule else None
    beta = draw(2, 2, 4) if "delta" in rule else None
    if decay is not None:
        decay.data.abs_().neg_()  # the error of an unbounded state would be unbounded
    inputs = (query, key, value, decay, beta, state)

    def attend(query, key, value, decay, beta, state):
        return heed.torch.linear_attention(query, key, value, decay=decay, beta=beta, state=state, scale=0.7)

    assert torch.autograd.gradcheck(attend, inputs)
    grads = [draw(2, 4, 4, 5).detach(), draw(2, 2, 3, 5).detach()]
    given = [x for x in inputs if x is not None]
    expected = torch.autograd.grad(linear(*inputs, 0.7), given, grads)
    assert_same(torch.autograd.grad(attend(*inputs), given, grads), expected, 1e-11)
    arrays = [None if x is None else x.detach().numpy() for x in inputs]
    options = dict(zip(("decay", "beta", "state"), arrays[3:]))
    plain = heed.linear_attention_backward(
        grads[0].numpy(), *arrays[:3], grad_state=grads[1].numpy(), scale=0.7, **options
    )
    assert (plain.decay is None, plain.beta is None) == (decay is None, beta is None)
    assert_same([torch.from_numpy(x) for x in plain if x is not None], expected, 1e-11)
    halves = [x.detach().half().requires_grad_() for x in (query, key, value)]
    found = torch.autograd.grad(heed.torch.linear_attention(*halves)[0].sum(), halves)
    assert all(gradient.dtype == torch.float16 for gradient in found)


def test_linear_attention_with_more_heads_of_values() -> None:
    """As in Qwen3-Next, whose layer repeats queries and keys."""
    query, key, value, state = draw(2, 2, 4, 3), draw(2, 2, 4, 3), draw(2, 6, 4, 5), draw(2, 6, 3, 5)
    decay, beta = draw(2, 6, 4, 1), draw(2, 6, 4)
    decay.data.abs_().neg_()
    # Longer keys and larger rates let the state grow without bound.
    beta.data.sigmoid_()
    key.data /= key.data.norm(dim=-1, keepdim=True)
    inputs = (query, key, value, decay, beta, state)

    def attend(query, key, value, decay, beta, state):
        return heed.torch.linear_attention(query, key, value, decay=decay, beta=beta, state=state, scale=0.7)

    assert torch.autograd.gradcheck(attend, inputs)
    repeated = (x.repeat_interleave(3, 1) for x in (query, key))
    expected = linear(*repeated, value, decay, beta, state, 0.7)
    found = attend(*inputs)
    assert found[0].shape == (2, 6, 4, 5) and found[1].shape == (2, 6, 3, 5)
    assert_same(found, expected)
    plain = [x.detach() for x in inputs]
    options = dict(zip(("decay", "beta", "state"), plain[3:]))
    assert_same(heed.reference.linear_attention(*plain[:3], scale=0.7, **options), expected)
    grads = [draw(2, 6, 4, 5).detach(), draw(2, 6, 3, 5).detach()]
    assert_same(torch.autograd.grad(found, inputs, grads), torch.autograd.grad(expected, inputs, grads), 1e-11)
    floats = [x.detach().float() for x in inputs]
    assert_same([x.double() for x in attend(*floats)], expected, 1e-5)


# --- feature maps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["elu+1", "relu"])
def test_feature_maps(name: str, causal: bool, normalized: bool) -> None:
    query, key, value = draw(2, 4, 6, 4), draw(2, 2, 6 if causal else 9, 4), draw(2, 2, 6 if causal else 9, 5)
    inputs = (query, key, value)
    options = {"feature_map": name, "causal": causal, "normalized": normalized}
    feature = torch.relu if name == "relu" else lambda x: torch.nn.functional.elu(x) + 1
    weights = feature(query) @ feature(key).repeat_interleave(2, 1).transpose(-1, -2)
    weights = weights.tril() if causal else weights
    if normalized:
        sums = weights.sum(-1, keepdim=True)
        weights = torch.where(sums > 0, weights / sums.where(sums > 0, torch.ones(())), 0.0)
    out, grad_out = weights @ value.repeat_interleave(2, 1), draw(2, 4, 6, 5).detach()
    expected = torch.autograd.grad(out, inputs, grad_out)
    found = heed.torch.feature_map_attention(*inputs, **options)
    assert_same([found], [out])
    assert_same(torch.autograd.grad(found, inputs, grad_out), expected, 1e-11)
    arrays = [x.detach().float().numpy() for x in inputs]
    plain = heed.feature_map_attention_backward(grad_out.float().numpy(), *arrays, **options)
    for array, gradient in zip(plain, expected):
        scale = gradient.abs().max().item()
        np.testing.assert_allclose(array, gradient.numpy(), rtol=0, atol=2e-5 * scale)


# --- packed sequences -----------------------------------------------------------------------------------------------

QUERIES, KEYS = [0, 3, 3, 8], [0, 4, 5, 11]


def alone(operands):
    """One sequence after the other, each as a batch of one, and where it lies."""
    query, key, value = operands
    for q, k in zip(zip(QUERIES, QUERIES[1:]), zip(KEYS, KEYS[1:])):
        parts = (query[slice(*q)], key[slice(*k)], value[slice(*k)])
        yield tuple(part.transpose(0, 1)[None] for part in parts), slice(*q), slice(*k)


def packed_operands(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [draw(*shape, dtype=dtype) for shape in ((8, 4, 16), (11, 2, 16), (11, 2, 5))]


@pytest.mark.parametrize("options", [{"causal": "bottom_right"}, {"softcap": 2.0, "query_offset": 1}], ids=["causal", "cap"])
def test_packed_sequences_are_computed_one_by_one(options: dict) -> None:
    operands = [x.detach().numpy() for x in packed_operands()]
    learned = {"sinks": np.linspace(-1, 1, 4, dtype=np.float32), "alibi_slopes": heed.alibi_slopes(4)}
    out, lse = heed.attention_packed(*operands, QUERIES, KEYS, return_lse=True, **options, **learned)
    assert out.shape == (8, 4, 5) and lse.shape == (4, 8)
    grad_out = draw(*out.shape, dtype=torch.float32).detach().numpy()
    boundaries = (np.array(QUERIES, np.int32), torch.tensor(KEYS, dtype=torch.int32))
    found = heed.attention_packed_backward(grad_out, *operands, out, lse, *boundaries, **options, **learned)
    sums = {"sinks": 0, "alibi_slopes": 0}
    tensors = [torch.from_numpy(x) for x in operands]
    for parts, q, k in alone(tensors):
        parts = [part.contiguous().numpy() for part in parts]
        one, one_lse = heed.attention(*parts, return_lse=True, **options, **learned)
        np.testing.assert_array_equal(out[q], one[0].swapaxes(0, 1))
        np.testing.assert_array_equal(lse[:, q], one_lse[0])
        grads = np.ascontiguousarray(grad_out[q].swapaxes(0, 1))[None]
        back = heed.attention_backward(grads, *parts, one, one_lse, **options, **learned)
        np.testing.assert_array_equal(found.query[q], back.query[0].swapaxes(0, 1))
        np.testing.assert_array_equal(found.key[k], back.key[0].swapaxes(0, 1))
        np.testing.assert_array_equal(found.value[k], back.value[0].swapaxes(0, 1))
        sums = {name: total + getattr(back, name) for name, total in sums.items()}
    for name, total in sums.items():
        np.testing.assert_allclose(getattr(found, name), total, atol=1e-5)
    assert found.bias is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_packed_sequences_are_recorded(dtype: torch.dtype) -> None:
    operands = packed_operands(dtype)
    bias, sinks = draw(4, 1, 1, dtype=torch.float32), draw(4, dtype=torch.float32)
    out = heed.torch.attention_packed(*operands, QUERIES, torch.tensor(KEYS), bias=bias, sinks=sinks)
    inputs = [*operands, bias, sinks]
    grad_out = draw(*out.shape, dtype=dtype).detach()
    found = torch.autograd.grad(out, inputs, grad_out)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    outs = []
    for (query, key, value), *_ in alone(exact[:3]):
        key, value = (x.repeat_interleave(2, 1) for x in (key, value))
        scores = query @ key.transpose(-1, -2) / 4 + exact[3]
        sink = exact[4][None, :, None, None].expand(*scores.shape[:-1], 1)
        weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        outs.append((weights @ value)[0].transpose(0, 1))
    expected = torch.autograd.grad(torch.cat(outs), exact, grad_out.double())
    tolerance = 2e-5 if dtype == torch.float32 else 0.05
    assert_same([out.double(), *(x.double() for x in found)], [torch.cat(outs), *expected], tolerance)
    assert all(gradient.dtype == tensor.dtype for gradient, tensor in zip(found, inputs))


# --- what is refused ------------------------------------------------------------------------------------------------


def test_there_is_no_gradient_of_a_gradient() -> None:
    x = draw(1, 1, 3, 4)
    out = heed.torch.feature_map_attention(x, x, x)
    with pytest.raises(RuntimeError, match="feature_map_attention has no gradient of a gradient"):
        torch.autograd.grad(out.sum(), x, create_graph=True)


def test_misuse_is_a_value_error_with_the_librarys_words() -> None:
    x = draw(1, 2, 3, 4)
    plain, tokens = x.detach().numpy(), np.zeros((7, 2, 4), np.float32)
    for message, call in {
        "cos or sin requires gradients": lambda: heed.torch.rotary_embedding(
            x, x[0, 0], x[0, 0], pairing="halves"
        ),
        "rotary_embedding: cos is a NoneType": lambda: heed.rotary_embedding(plain, None, None, pairing="halves"),
        "linear_attention_backward: grad_out has shape": lambda: heed.linear_attention_backward(
            plain[:, :, :2], plain, plain, plain
        ),
        'feature_map is "tanh"': lambda: heed.feature_map_attention_backward(
            plain, plain, plain, plain, feature_map="tanh"
        ),
        "feature_map_attention_backward: grad_out has shape": lambda: heed.feature_map_attention_backward(
            plain[:, :, :2], plain, plain, plain
        ),
        "query is float64, expected float32, float16 or bfloat16": lambda: heed.attention_packed(
            *[tokens.astype(np.float64)] * 3, [0, 7]
        ),
        "attention_packed: the boundaries of query end at 3, but it has 7 rows": lambda: heed.attention_packed(
            *[tokens] * 3, [0, 3]
        ),
        "score_mod is a function of Python's": lambda: heed.attention_packed_backward(
            tokens, *[tokens] * 3, tokens, tokens, [0, 7], score_mod=lambda score, *_: score
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    "name", ["attention_packed", "feature_map_attention", "linear_attention", "rotary_embedding"]
)
def test_examples_in_docstrings(name: str) -> None:
    lines = [line.strip()[4:] for line in getattr(heed.torch, name).__doc__.splitlines() if ">>>" in line]
    assert lines
    exec("\n".join(lines), {"heed": heed, "torch": torch})
