"""Learned relative positions: buckets and layers of transformers' T5, and Shaw's vectors by PyTorch's autograd."""

import gc
import weakref

import numpy as np
import pytest
import torch

import heed.torch

RANDOM = torch.Generator().manual_seed(0)
T5, CLIP = heed.RelativeBuckets.t5, heed.RelativeBuckets.clip


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=RANDOM, dtype=torch.float64).to(dtype)


def assert_same(found, expected, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def entries(buckets: heed.RelativeBuckets, q_len: int, kv_len: int, offset: int = 0) -> torch.Tensor:
    """[q_len, kv_len]: the entry of each distance."""
    return torch.tensor([[buckets(k - q - offset) for k in range(kv_len)] for q in range(q_len)])


# --- buckets --------------------------------------------------------------------------------------------------------


def test_buckets() -> None:
    near, far = CLIP(2), T5(32, 128)
    assert [near(distance) for distance in (-9, -2, -1, 0, 1, 2, 9)] == [0, 0, 1, 2, 3, 4, 4]
    assert (near.count, near.reach, far.count, far.reach) == (5, 2, 32, 128)
    assert str(T5()) == str(far) == "t5(32, 128)" and str(T5(bidirectional=False)) == "causal t5(32, 128)"
    assert repr(near) == "<heed.RelativeBuckets clip(2)>"
    assert CLIP(0)(-7) == 0


SIZES = [(32, 128), (32, 64), (64, 300), (16, 20), (8, 256), (6, 50), (4, 3), (128, 1000)]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("num_buckets", "max_distance"), SIZES)
def test_buckets_are_those_of_t5(num_buckets: int, max_distance: int, bidirectional: bool) -> None:
    layers = pytest.importorskip("transformers.models.t5.modeling_t5")
    distances = torch.arange(-300, 301)
    expected = layers.T5Attention._relative_position_bucket(distances, bidirectional, num_buckets, max_distance)
    buckets = T5(num_buckets, max_distance, bidirectional)
    assert [buckets(distance) for distance in distances.tolist()] == expected.tolist()
    assert len(set(expected.tolist())) > num_buckets // 2


# --- a layer of T5 --------------------------------------------------------------------------------------------------


def layer_of_t5(is_decoder: bool, dtype: torch.dtype):
    """A layer with random weights, of 4 heads of 8 dimensions, and its buckets."""
    transformers = pytest.importorskip("transformers")
    sizes = {"relative_attention_num_buckets": 16, "relative_attention_max_distance": 40}
    config = transformers.T5Config(d_model=24, d_kv=8, num_heads=4, dropout_rate=0.0, is_decoder=is_decoder, **sizes)
    config._attn_implementation = "eager"
    layer = transformers.models.t5.modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    for parameter in layer.parameters():
        parameter.data = draw(*parameter.shape) / 4
    return layer.to(dtype), T5(*sizes.values(), bidirectional=not is_decoder)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-5)], ids=["double", "float"])
@pytest.mark.parametrize("is_decoder", [False, True], ids=["encoder", "decoder"])
def test_a_layer_of_t5(is_decoder: bool, dtype: torch.dtype, tolerance: float) -> None:
    layer, buckets = layer_of_t5(is_decoder, dtype)
    x, length = draw(2, 75, 24, dtype=dtype), 75
    hidden = torch.full((length, length), -torch.inf, dtype=dtype).triu(1) if is_decoder else None
    expected = layer(x, mask=hidden)[0]
    table = layer.relative_attention_bias.weight  # [buckets, heads]
    grad_out = draw(*expected.shape, dtype=dtype)
    (expected_gradient,) = torch.autograd.grad(expected, table, grad_out)

    with torch.no_grad():
        operands = [part(x).view(2, length, 4, 8).transpose(1, 2) for part in (layer.q, layer.k, layer.v)]
        # The transposed table is read without a copy.
        options = {"scale": 1.0, "causal": is_decoder, "relative_bias": (table.T, buckets)}
        made = heed.attention(*operands, return_lse=True, **options)
        assert_same(layer.o(made.out.transpose(1, 2).reshape(2, length, 32)), expected, tolerance)
        grads = (grad_out @ layer.o.weight).view(2, length, 4, 8).transpose(1, 2)
        found = heed.attention_backward(grads, *operands, *made, lse_low=made.lse_low, **options)
        # A sum of as many as 150 gradients.
        assert_same(found.relative_bias.T, expected_gradient, 20 * tolerance)
        # Only the last query is at its position.
        position = {"causal": "bottom_right"} if is_decoder else {"query_offset": length - 1}
        alone = heed.attention(operands[0][:, :, -1:], *operands[1:], **options | position)
        assert_same(alone, made.out[:, :, -1:], tolerance)


# --- Shaw's vectors -------------------------------------------------------------------------------------------------


def shaw(query, key, value, key_table, value_table, bias_table, offset: int, hidden) -> torch.Tensor:
    """The definition, in PyTorch: one key and one value for each query and key."""
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    lengths = (query.shape[2], key.shape[2], offset)
    at = entries(CLOSE, *lengths)
    scale = query.shape[-1] ** -0.5
    scores = scale * query @ key.transpose(-1, -2)
    if key_table is not None:
        vectors = key_table[..., at, :].expand(query.shape[1], *at.shape, -1)
        scores = scores + scale * torch.einsum("bhqd,hqkd->bhqk", query, vectors)
    if bias_table is not None:
        scores = scores + bias_table[:, entries(FAR, *lengths)]
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    out = weights @ value
    if value_table is not None:
        vectors = value_table[..., at, :].expand(query.shape[1], *at.shape, -1)
        out = out + torch.einsum("bhqk,hqkd->bhqd", weights, vectors)
    return out


CLOSE, FAR = CLIP(3), T5(8, 20)
# Tables for keys of 8 and values of 5 dimensions and for scores: one per head for 4 heads, one for all heads, or none.
TABLES = {
    "both": [(4, CLOSE.count, 8), (4, CLOSE.count, 5), None],
    "shared": [(CLOSE.count, 8), (CLOSE.count, 5), None],
    "keys": [(4, CLOSE.count, 8), None, None],
    "values": [None, (CLOSE.count, 5), None],
    "with-bias": [(4, CLOSE.count, 8), (CLOSE.count, 5), (4, FAR.count)],
    "bias": [None, None, (4, FAR.count)],
}


def tables_of(shapes: list, dtype: torch.dtype = torch.float64) -> list[torch.Tensor | None]:
    return [None if shape is None else draw(*shape, dtype=dtype).requires_grad_() for shape in shapes]


def keywords(key_table, value_table, bias_table) -> dict:
    """The tables as heed takes them."""
    with_bias = {} if bias_table is None else {"relative_bias": (bias_table, FAR)}
    if key_table is None and value_table is None:
        return with_bias
    return with_bias | {"relative_vectors": (key_table, value_table, CLOSE)}


def arrays_of(tensors) -> list[np.ndarray | None]:
    return [None if x is None else x.detach().numpy() for x in tensors]


@pytest.mark.parametrize("name", TABLES)
def test_vectors_and_numbers_by_autograd(name: str) -> None:
    operands = [draw(2, 4, 9, 8), draw(2, 2, 30, 8), draw(2, 2, 30, 5)]
    inputs = [*(x.requires_grad_() for x in operands), *tables_of(TABLES[name])]
    mask = heed.sliding_window(18, 4, "top_left")
    hidden = ~torch.from_numpy(mask.allow((9, 30), 5))
    expected = shaw(*inputs, 5, hidden)
    grad_out = draw(*expected.shape)
    given = [x for x in inputs if x is not None]
    expected_gradients = torch.autograd.grad(expected, given, grad_out)

    arrays = arrays_of(inputs)
    options = keywords(*arrays[3:]) | {"mask": mask, "query_offset": 5}
    made = heed.attention(*arrays[:3], return_lse=True, **options)
    assert_same(torch.from_numpy(made.out), expected.detach())
    np.testing.assert_allclose(heed.reference.attention(*arrays[:3], **options).out, made.out, rtol=0, atol=1e-12)
    found = heed.attention_backward(grad_out.numpy(), *arrays[:3], *made, lse_low=made.lse_low, **options)
    of_tables = [found.relative_key, found.relative_value, found.relative_bias]
    assert [x is None for x in of_tables] == [x is None for x in arrays[3:]]
    assert (found.alibi_slopes, found.bias, found.sinks) == (None, None, None)
    gradients = [x for x in (*found[:3], *of_tables) if x is not None]
    assert_same([torch.from_numpy(x) for x in gradients], list(expected_gradients))


# --- every function that takes options ------------------------------------------------------------------------------

X = draw(1, 4, 40, 8, dtype=torch.float32).numpy()
LEARNED = keywords(*arrays_of(tables_of([(7, 8), (4, 7, 8), (4, 8)], torch.float32)))


def test_every_function_takes_them() -> None:
    options = LEARNED | {"causal": True}
    out, lse, weights = heed.attention(X, X, X, return_lse=True, weights_of=[(0, 2, 39)], **options)
    steps = heed.reference.attention(*[X.astype(np.float64)] * 3, keep=["weights", "modified", "scores"], **options)
    np.testing.assert_allclose(out, steps.out, rtol=0, atol=1e-5)
    np.testing.assert_allclose(weights[0], steps.weights[0, 2, 39], rtol=0, atol=1e-6)
    assert np.abs(steps.modified - steps.scores).max() > 0.1
    np.testing.assert_array_equal(heed.attention_weights(X, X, [(0, 2, 39)], **options), weights)
    statistics = heed.attention_statistics(X, X, **options)
    np.testing.assert_allclose(statistics.lse, lse, rtol=0, atol=1e-5)
    plan = heed.plan(X, X, X, **options)
    np.testing.assert_array_equal(plan(X, X, X), out)
    for term in ("relative_bias[t5(8, 20)]", "relative_keys[clip(3)]", "relative_values[clip(3)]"):
        assert term in str(plan)

    tokens = X[0].swapaxes(0, 1)
    packed = heed.attention_packed(tokens, tokens, tokens, [0, 15, 40], **options)
    parts = [np.ascontiguousarray(X[:, :, where]) for where in (slice(0, 15), slice(15, 40))]
    alone = [heed.attention(part, part, part, **options)[0].swapaxes(0, 1) for part in parts]
    np.testing.assert_array_equal(packed, np.concatenate(alone))
    sequence = heed.KvSequence(heed.KvPool(4, 8))
    sequence.append(X, X)
    np.testing.assert_array_equal(heed.attend(X[:, :, 37:], sequence, **options), out[:, :, 37:])


def test_a_page_has_the_weights_where_positions_matter() -> None:
    """From query and key alone it would draw others."""
    for name, option in LEARNED.items():
        page, plain = heed.show(X, X, **{name: option}).html, heed.show(X, X).html
        assert '"query"' in plain and '"query"' not in page


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_tables_of_other_types_are_copied(dtype: torch.dtype) -> None:
    tables = [table.detach().to(dtype) for table in tables_of(TABLES["with-bias"], torch.float32)]
    x = torch.from_numpy(X)
    value = x[..., :5].contiguous()
    found = heed.attention(x, x, value, **keywords(*tables))
    expected = heed.attention(x, x, value, **keywords(*(table.float() for table in tables)))
    assert_same(found, expected, 0.0)


def test_a_plan_keeps_its_tables_alive() -> None:
    table = np.full((4, 8), 0.5, np.float32)
    table[:, 0] = 2.0
    alive = weakref.ref(table)
    plan = heed.plan(X, X, X, relative_bias=(table, FAR))
    expected = heed.attention(X, X, X, relative_bias=(table, FAR))
    del table
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(plan(X, X, X), expected)
    del plan
    gc.collect()
    assert alive() is None


# --- packed sequences, recorded -------------------------------------------------------------------------------------

QUERIES, KEYS = [0, 3, 3, 12], [0, 4, 5, 30]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", TABLES)
def test_packed_sequences_record_tables(name: str, dtype: torch.dtype) -> None:
    operands = [draw(*shape, dtype=dtype).requires_grad_() for shape in ((12, 4, 8), (30, 2, 8), (30, 2, 5))]
    tables = tables_of(TABLES[name], dtype)
    # With a last dimension that is not contiguous.
    scattered = [None if table is None else table.transpose(-1, -2).contiguous().transpose(-1, -2) for table in tables]
    out = heed.torch.attention_packed(*operands, QUERIES, KEYS, **keywords(*scattered))
    inputs = [x for x in (*operands, *tables) if x is not None]
    grad_out = draw(*out.shape, dtype=dtype)
    found = torch.autograd.grad(out, inputs, grad_out)

    exact = [None if x is None else x.detach().double().requires_grad_() for x in (*operands, *tables)]
    outs = []
    for q, k in zip(zip(QUERIES, QUERIES[1:]), zip(KEYS, KEYS[1:])):
        rows = [x[slice(*at)].transpose(0, 1)[None] for x, at in zip(exact, (q, k, k))]
        if q[0] < q[1]:
            outs.append(shaw(*rows, *exact[3:], 0, torch.tensor(False))[0].transpose(0, 1))
    expected_out = torch.cat(outs)
    expected = torch.autograd.grad(expected_out, [x for x in exact if x is not None], grad_out.double())
    tolerance = 5e-5 if dtype == torch.float32 else 0.1
    assert_same(out.double(), expected_out, tolerance)
    for gradient, tensor, wanted in zip(found, inputs, expected):
        assert gradient.dtype == tensor.dtype and gradient.shape == tensor.shape
        assert_same(gradient.double(), wanted, tolerance)


def test_packed_gradients_are_the_sums_over_sequences() -> None:
    tokens = np.ascontiguousarray(X[0].swapaxes(0, 1))
    boundaries = [0, 15, 40]
    made = heed.attention_packed(tokens, tokens, tokens, boundaries, return_lse=True, **LEARNED)
    options = LEARNED | {"lse_low": made.lse_low}
    found = heed.attention_packed_backward(made.out, tokens, tokens, tokens, *made, boundaries, **options)
    sums = dict.fromkeys(("relative_bias", "relative_key", "relative_value"), 0.0)
    for where in (slice(0, 15), slice(15, 40)):
        x = np.ascontiguousarray(X[:, :, where])
        one = heed.attention(x, x, x, return_lse=True, **LEARNED)
        back = heed.attention_backward(one.out, x, x, x, *one, lse_low=one.lse_low, **LEARNED)
        sums = {name: total + getattr(back, name) for name, total in sums.items()}
    for name, total in sums.items():
        np.testing.assert_allclose(getattr(found, name), total, rtol=0, atol=1e-4)
    assert found.bias is None and found.sinks is None


# --- what is refused ------------------------------------------------------------------------------------------------

NUMBERS, VECTORS = LEARNED["relative_bias"][0], LEARNED["relative_vectors"][0]
RECORDED = torch.zeros(4, 8, requires_grad=True)
TRANSPOSED = np.zeros((8, 7), np.float32).T
MISUSES = {
    r"attention: relative_bias is a ndarray, expected \(table, buckets\), the last one a heed.RelativeBuckets": {
        "relative_bias": NUMBERS
    },
    r"attention: relative_bias is \(ndarray, int\), expected \(table, buckets\)": {"relative_bias": (NUMBERS, 8)},
    r"attention: relative_bias is \(ndarray, ndarray, RelativeBuckets\), expected \(table": {
        "relative_bias": (NUMBERS, NUMBERS, FAR)
    },
    r"attention: relative_vectors is \(ndarray, RelativeBuckets\), expected \(key, value, buckets\)": {
        "relative_vectors": (VECTORS, CLOSE)
    },
    "attention: relative_bias.table is a NoneType, expected an array": {"relative_bias": (None, FAR)},
    r"attention: relative_bias.table has shape \[4, 8\], expected \[4, 7\]": {"relative_bias": (NUMBERS, CLOSE)},
    r"attention: relative_vectors.value has shape \[4, 8\], expected \[7, 8\] or \[4, 7, 8\]": {
        "relative_vectors": (None, NUMBERS, CLOSE)
    },
    "attention: relative_vectors.key is int64, expected": {"relative_vectors": (np.zeros((7, 8), int), None, CLOSE)},
    "attention: relative_vectors.key has stride 7 in its innermost dimension, expected 1": {
        "relative_vectors": (TRANSPOSED, None, CLOSE)
    },
    "attention: relative_bias.table requires gradients.*or call heed.torch.attention_packed": {
        "relative_bias": (RECORDED, FAR)
    },
}


@pytest.mark.parametrize("message", MISUSES)
def test_misuse_is_a_value_error_that_says_what_was_expected(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        heed.attention(X, X, X, **MISUSES[message])


def test_buckets_that_cannot_be() -> None:
    for message, make in {
        "RelativeBuckets::clip: max_distance is -1, expected 0 to": lambda: CLIP(-1),
        "RelativeBuckets::t5: num_buckets is 7, expected 4 to .* and even": lambda: T5(7),
        "RelativeBuckets::t5: max_distance is 8, expected 9 to": lambda: T5(32, 8),
    }.items():
        with pytest.raises(ValueError, match=message):
            make()


def test_the_recorded_function_refuses_the_same() -> None:
    tokens = torch.zeros(7, 4, 8)
    with pytest.raises(ValueError, match=r"attention_packed: relative_bias is a Tensor, expected \(table, buckets\)"):
        heed.torch.attention_packed(tokens, tokens, tokens, [0, 7], relative_bias=RECORDED)
    x = draw(1, 1, 3, 8).requires_grad_()
    vectors = draw(7, 8).requires_grad_()
    with pytest.raises(ValueError, match="relative_vectors.key requires gradients"):
        heed.attention_weights(x.detach(), x.detach(), [(0, 0, 0)], relative_vectors=(vectors, None, CLOSE))
