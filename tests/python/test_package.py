"""The Python package: arrays in and out, options, errors. What is computed is compared with the reference, which
test_reference.py holds to PyTorch."""

import array
import ast
import doctest
import gc
import inspect
import pathlib
import weakref

import numpy as np
import pytest
import torch

import heed

RANDOM = np.random.default_rng(0)


def draw(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


QUERY, KEY, VALUE = draw(2, 4, 7, 8), draw(2, 2, 9, 8), draw(2, 2, 9, 5)


def reference(query=QUERY, key=KEY, value=VALUE, **options) -> np.ndarray:
    doubles = (np.asarray(x, np.float64) for x in (query, key, value))
    return heed.reference.attention(*doubles, **options).out


def assert_close(found, expected, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=0, atol=tolerance)


# --- arrays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_arrays_come_back_as_numpy_arrays(dtype: type) -> None:
    operands = [x.astype(dtype) for x in (QUERY, KEY, VALUE)]
    out, lse = heed.attention(*operands, return_lse=True)
    assert isinstance(out, np.ndarray) and isinstance(lse, np.ndarray)
    assert out.dtype == dtype
    assert lse.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert_close(out, reference(*operands), 2e-3 if dtype == np.float16 else 1e-6)


@pytest.mark.parametrize(("dim", "targets"), [(33, ["AVX512_BF16", "NEON_BF16"]), (64, ["AVX512_BF16", "NEON_BF16", "AMX_BF16"])])
def test_exact_precision_is_that_of_floats(dim: int, targets: list[str]) -> None:
    query, key, value = (torch.randn(2, 4, 70, dim).bfloat16() for _ in range(3))
    floats = heed.attention(query.float(), key.float(), value.float(), causal=True)
    exact = heed.attention(query, key, value, causal=True, precision="exact")
    assert torch.equal(exact, floats.bfloat16())
    fast = heed.attention(query, key, value, causal=True)
    assert_close(fast.float(), floats, 2e-2)
    assert torch.equal(fast, exact) == (heed.attention_target() not in targets)
    with pytest.raises(ValueError, match="attention: precision is 'slow', expected 'fast' or 'exact'"):
        heed.attention(query, key, value, precision="slow")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_tensors_come_back_as_tensors(dtype: torch.dtype) -> None:
    operands = [torch.from_numpy(x).to(dtype) for x in (QUERY, KEY, VALUE)]
    out = heed.attention(*operands)
    assert isinstance(out, torch.Tensor) and out.dtype == dtype
    expected = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in operands), enable_gqa=True)
    assert_close(out.double(), expected, {torch.float16: 1e-3, torch.bfloat16: 1e-2}.get(dtype, 1e-6))


def test_a_parameter_is_a_tensor() -> None:
    parameter = torch.nn.Parameter(torch.from_numpy(QUERY))
    with torch.no_grad():
        assert isinstance(heed.attention(parameter, KEY, VALUE), torch.Tensor)


def test_a_tensor_without_elements_in_memory_is_refused() -> None:
    shape = (1, 1, 2, 4)
    with torch._subclasses.FakeTensorMode():
        made_up = torch.zeros(shape)
    for x in (torch.zeros(shape, device="meta"), torch.zeros(shape).to_sparse(), made_up):
        with pytest.raises(ValueError, match="expected an array in the processor's memory"):
            heed.attention(x, x, x)


def test_a_tensor_and_what_is_made_of_it_live_as_long_as_they_are_used() -> None:
    tensor = torch.from_numpy(QUERY.copy())
    alive = weakref.ref(tensor)
    out = heed.attention(tensor, tensor, tensor)
    expected = out.clone()
    bias = heed.additive(torch.zeros(QUERY.shape[-2]))
    del tensor
    gc.collect()
    assert alive() is None
    out += 1
    torch.testing.assert_close(out - 1, expected)
    assert "additive" in str(bias)
    before = resident_bytes()
    large = torch.zeros(1, 1, 8, 1 << 17)  # 4 MiB
    for _ in range(50):
        heed.attention(large, large, large, return_lse=True)
    assert resident_bytes() - before < 100 << 20


def test_nothing_is_copied() -> None:
    """What lies behind a window is not even read: an array whose pages nobody has touched takes no memory."""
    length = 1 << 22
    huge = np.zeros((1, 1, length, 64), np.float32)  # a gigabyte of address space
    before = resident_bytes()
    out = heed.attention(huge[:, :, :1], huge, huge, mask=heed.causal(1000))
    assert out.shape == (1, 1, 1, 64)
    assert resident_bytes() - before < 1 << 26


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_result_keeps_its_memory_alone() -> None:
    query = QUERY.copy()
    out = heed.attention(query, KEY, VALUE)
    expected = out.copy()
    alive = weakref.ref(query)
    del query
    gc.collect()
    assert alive() is None
    np.testing.assert_array_equal(out, expected)
    out[:] = 0  # it is writable


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
        lambda x: np.repeat(x, 3, axis=2)[:, :, ::3],
        lambda x: x[:, :, ::-1].copy()[:, :, ::-1],
        lambda x: np.asfortranarray(x.swapaxes(2, 3)).swapaxes(2, 3) if x.shape[3] == 1 else x,
        lambda x: np.pad(x, [(0, 0)] * 3 + [(2, 3)])[..., 2:-3],
    ],
    ids=["bthd", "steps", "reversed", "inner-of-one", "padded"],
)
def test_any_outer_strides(change) -> None:
    operands = [change(x) for x in (QUERY, KEY, VALUE)]
    np.testing.assert_array_equal(heed.attention(*operands), heed.attention(QUERY, KEY, VALUE))


def test_read_only_and_broadcast_arrays() -> None:
    key = np.broadcast_to(KEY[:1], KEY.shape)
    assert not key.flags.writeable
    np.testing.assert_array_equal(heed.attention(QUERY, key, VALUE), heed.attention(QUERY, key.copy(), VALUE))


def test_the_buffer_protocol() -> None:
    numbers = array.array("f", [1, 0, 0, 1])
    x = memoryview(numbers).cast("B").cast("f", (2, 2))
    out = heed.attention(x, x, x)
    assert isinstance(out, np.ndarray)
    assert_close(out, reference(*[np.asarray(x)] * 3))


def test_anything_with_dlpack() -> None:
    class Exporter:
        def __init__(self, held: np.ndarray) -> None:
            self.held = held

        def __dlpack__(self, **options):
            return self.held.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.held.__dlpack_device__()

    out = heed.attention(*map(Exporter, (QUERY, KEY, VALUE)))
    np.testing.assert_array_equal(out, heed.attention(QUERY, KEY, VALUE))


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_leading_dimensions_may_be_left_out(rank: int) -> None:
    index = (0,) * (4 - rank)
    out, lse = heed.attention(QUERY[index], KEY[index], VALUE[index], return_lse=True)
    full, full_lse = heed.attention(QUERY[:1, :1] if rank == 2 else QUERY[:1], KEY[:1, :1] if rank == 2 else KEY[:1],
                                    VALUE[:1, :1] if rank == 2 else VALUE[:1], return_lse=True)  # fmt: skip
    np.testing.assert_array_equal(out, full[index] if rank < 4 else heed.attention(QUERY, KEY, VALUE))
    np.testing.assert_array_equal(lse, full_lse[index] if rank < 4 else lse)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_parts_of_the_keys_are_merged(dtype: torch.dtype) -> None:
    query, key, value = (torch.from_numpy(x).to(dtype) for x in (QUERY, KEY, VALUE))
    parts = [
        heed.attention(query, key[:, :, keys], value[:, :, keys], return_lse=True)
        for keys in (slice(0, 2), slice(2, 2), slice(2, 8), slice(8, 9))
    ]
    out, lse = heed.merge_attention(*parts, num_threads=1)
    assert isinstance(out, torch.Tensor) and out.dtype == dtype and lse.dtype == parts[0][1].dtype
    expected, expected_lse = heed.attention(query, key, value, return_lse=True)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-6)
    assert_close(out.double(), expected.double(), tolerance)
    assert_close(lse.double(), expected_lse.double(), 1e-6)


def test_what_cannot_be_merged() -> None:
    out, lse = heed.attention(QUERY, KEY, VALUE, return_lse=True)
    for parts, message in (
        ((), "merge_attention: 0 parts, expected at least 1"),
        ((out, lse), r"merge_attention: part 0 is no tuple \(out, lse\)"),
        (((out, lse), (out,)), r"merge_attention: part 1 is no tuple \(out, lse\)"),
        (((out, lse), (out, lse.astype(np.float64))), "lse of part 1 is float64, expected float32"),
        (((out, lse), (out.astype(np.float16), lse)), "out of part 1 is float16, expected float32"),
        (((out, lse.swapaxes(0, 1)),), r"lse of part 0 has shape \[4, 2, 7\], expected \[2, 4, 7\]"),
    ):
        with pytest.raises(ValueError, match=message):
            heed.merge_attention(*parts)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 2, 0, 4), (2, 0, 3, 4), (2, 2, 3, 0)], ids=str)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_empty_arrays(shape: tuple[int, ...], kind) -> None:
    x = kind(np.zeros(shape, np.float32))
    assert tuple(heed.attention(x, x, x).shape) == shape


def test_no_keys_give_zero() -> None:
    out, lse = heed.attention(QUERY, KEY[:, :, :0], VALUE[:, :, :0], return_lse=True)
    assert not out.any() and (lse == -np.inf).all()


# --- options --------------------------------------------------------------------------------------------------------


OPTIONS = {
    "scale": {"scale": 0.3},
    "softcap": {"softcap": 2.0},
    "bias": {"bias": draw(4, 1, 9)},
    "bias-double": {"bias": draw(4, 1, 9, dtype=np.float64).round(3)},
    "alibi": {"alibi_slopes": heed.alibi_slopes(4)},
    "sinks": {"sinks": draw(4)},
    "causal": {"causal": "bottom_right"},
    "causal-top-left": {"causal": "top_left"},
    "causal-offset": {"mask": heed.causal(1)},
    "window": {"window": (2, 1), "causal": "top_left"},
    "dropout": {"dropout": 0.25, "seed": 3},
    "mask": {"mask": heed.key_lengths([5, 9]) & heed.block(np.eye(7, 9, dtype=bool))},
    "additive": {"mask": heed.additive(np.where(np.eye(7, 9) > 0, -np.inf, 1.5))},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_reach_the_library(name: str) -> None:
    found = heed.attention(QUERY, KEY, VALUE, **OPTIONS[name])
    assert_close(found, reference(**OPTIONS[name]))
    assert np.abs(found - heed.attention(QUERY, KEY, VALUE)).max() > 1e-2


def test_causal_and_window_are_the_masks_of_these_names() -> None:
    x = QUERY
    found = heed.attention(x, x, x, causal=True, window=3)
    mask = heed.causal() & heed.sliding_window(3, 3)
    np.testing.assert_array_equal(found, heed.attention(x, x, x, mask=mask))
    everything = heed.attention(x, x, x, window=(None, None))
    np.testing.assert_array_equal(everything, heed.attention(x, x, x))


def test_query_offset() -> None:
    last = heed.attention(QUERY, QUERY, QUERY, causal=True)[:, :, 6:]
    found = heed.attention(QUERY[:, :, 6:], QUERY, QUERY, causal=True, query_offset=6)
    np.testing.assert_array_equal(found, last)


def test_every_batch_entry_may_have_a_query_offset_of_its_own() -> None:
    keys, values = draw(2, 2, 30, 8), draw(2, 2, 30, 5)
    options = {"mask": heed.causal("top_left"), "alibi_slopes": heed.alibi_slopes(4)}
    found = heed.attention(QUERY, keys, values, query_offset=[23, 4], **options)
    for entry, offset in enumerate((23, 4)):
        alone = heed.attention(QUERY, keys, values, query_offset=offset, **options)
        np.testing.assert_array_equal(found[entry], alone[entry])
    pictures = [heed.causal("top_left").picture((2, 1, 2, 4), [2, 0], batch=entry) for entry in (0, 1)]
    assert pictures == ["###.\n####", "#...\n##.."]
    with pytest.raises(ValueError, match="attention: query_offset has 3 numbers but batch is 2"):
        heed.attention(QUERY, keys, values, query_offset=[1, 2, 3])


def test_a_tree_of_guesses_is_a_mask() -> None:
    mask = heed.tree([-1, 0, 0])
    assert str(mask) == "tree(-1, 0, 0)"
    assert mask.picture((3, 5)) == "###..\n####.\n###.#"
    offsets = heed.tree([-1, 0, 0], "top_left")
    assert offsets.picture((2, 1, 3, 5), [2, 0], batch=1) == "#....\n##...\n#.#.."
    with pytest.raises(ValueError, match=r"Mask::tree: parents\[1\] is 1, expected -1 or a node before it"):
        heed.tree([-1, 1])


def test_gradients_and_plans_take_the_same_options() -> None:
    options = {"causal": "bottom_right", "softcap": 3.0, "bias": draw(9), "sinks": draw(4)}
    operands = [x.astype(np.float64) for x in (QUERY, KEY, VALUE)]
    grad_out = draw(2, 4, 7, 5, dtype=np.float64)
    doubles = heed.attention(*operands, return_lse=True, **options)
    expected = heed.attention_backward(grad_out, *operands, *doubles, **options)
    floats = heed.attention(QUERY, KEY, VALUE, return_lse=True, **options)
    found = heed.attention_backward(grad_out.astype(np.float32), QUERY, KEY, VALUE, *floats, **options)
    assert found.alibi_slopes is None
    for name in ("query", "key", "value", "bias", "sinks"):
        assert getattr(found, name).dtype == np.float32
        assert_close(getattr(found, name), getattr(expected, name), 2e-5)

    plan = heed.plan(QUERY, KEY, VALUE, **options)
    np.testing.assert_array_equal(plan(QUERY, KEY, VALUE), floats[0])
    assert plan.target == heed.attention_target() and plan.target in str(plan)
    by_shape = heed.plan(QUERY.shape, KEY.shape, VALUE.shape, **options)
    assert by_shape.tiles() == plan.tiles()
    with pytest.raises(ValueError, match="q_len is 6, but 7 was planned"):
        plan(QUERY[:, :, :6], KEY, VALUE)
    in_double = heed.plan(*operands, **options)
    np.testing.assert_array_equal(in_double(*operands), doubles[0])
    assert "float64" in str(heed.plan(QUERY.shape, KEY.shape, VALUE.shape, dtype="float64", **options))
    with pytest.raises(ValueError, match="the tensors are float32, but float64 was planned"):
        in_double(QUERY, KEY, VALUE)


def test_weights_and_statistics() -> None:
    rows = [(1, 3, 6), (0, 0, 0), (1, 3, 6)]
    out, lse, weights = heed.attention(QUERY, KEY, VALUE, causal="top_left", return_lse=True, weights_of=rows)
    doubles = (QUERY.astype(np.float64), KEY.astype(np.float64), VALUE.astype(np.float64))
    steps = heed.reference.attention(*doubles, causal="top_left", keep=["weights", "masked"])
    assert steps.scores is None
    assert_close(out, steps.out)
    assert_close(lse, steps.lse)
    for row, (batch, head, query) in zip(weights, rows):
        assert_close(row, steps.weights[batch, head, query])
    np.testing.assert_array_equal(heed.attention_weights(QUERY, KEY, rows, causal="top_left"), weights)

    found = heed.attention_statistics(QUERY, KEY, top_k=2, causal="top_left")
    assert_close(found.key_mass.sum(), 2 * 4 * 7, 1e-4)
    np.testing.assert_array_equal(found.max_key, steps.weights.argmax(-1))
    np.testing.assert_array_equal(found.top_keys[..., 0], found.max_key)
    entropy = -np.sum(steps.weights * np.log(np.where(steps.weights > 0, steps.weights, 1)), -1)
    assert_close(found.entropy, entropy, 1e-5)


# --- masks ----------------------------------------------------------------------------------------------------------


def test_masks_combine_and_print_themselves() -> None:
    mask = heed.causal() & heed.sliding_window(2, None)
    assert str(mask) == "causal & sliding_window(2, unbounded)"
    assert repr(mask) == "<heed.Mask causal & sliding_window(2, unbounded)>"
    assert heed.causal().picture((3, 3)) == "#..\n##.\n###"
    assert str(heed.Mask()) == "none"
    np.testing.assert_array_equal(mask.allow((5, 5)), np.tri(5, dtype=bool) & ~np.tri(5, k=-3, dtype=bool))
    np.testing.assert_array_equal(np.isinf(heed.documents([0, 1, 3]).additive((3, 3))), [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    assert heed.prefix(2).allow((1, 1, 3, 3)).shape == (1, 1, 3, 3)
    np.testing.assert_array_equal(heed.rows([(0, 2), (1, 3)]).allow((2, 3)), [[1, 1, 0], [0, 1, 1]])
    ids = np.array([[5, 6, 0]])
    np.testing.assert_array_equal(heed.key_padding(ids, 0).allow((1, 1, 1, 3))[0, 0], [[1, 1, 0]])


def test_a_mask_keeps_its_array_alive() -> None:
    allowed = np.tri(7, 9, dtype=bool)
    mask = heed.allow(allowed) & heed.key_lengths([9, 9])
    expected = heed.attention(QUERY, KEY, VALUE, mask=mask)
    alive = weakref.ref(allowed)
    del allowed
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(heed.attention(QUERY, KEY, VALUE, mask=mask), expected)
    del mask
    gc.collect()
    assert alive() is None


# --- functions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_are_masks_and_score_modifications(dtype: type) -> None:
    operands = [x.astype(dtype) for x in (QUERY, KEY, VALUE)]
    strided = heed.where(lambda b, h, q_idx, kv_idx: ((q_idx + h + b) % 3 == kv_idx % 3) | (kv_idx == 0))
    cells = np.indices((2, 4, 7, 9))
    allowed = ((cells[2] + cells[1] + cells[0]) % 3 == cells[3] % 3) | (cells[3] == 0)
    np.testing.assert_array_equal(strided.allow((2, 4, 7, 9)), allowed)
    slopes = np.array([0.5, 0.25, 0.1, 0.0])

    def relative(score, b, h, q_idx, kv_idx):
        return np.where(b == 1, score, score * 0.5) - slopes[h] * np.abs(kv_idx - q_idx)

    found = heed.attention(*operands, mask=strided & heed.causal("bottom_right"), score_mod=relative)
    scores = heed.reference.attention(*(x.astype(np.float64) for x in operands), keep=["scores"]).scores
    scores = np.where(cells[0] == 1, scores, scores * 0.5) - slopes[cells[1]] * np.abs(cells[3] - cells[2])
    scores[~(allowed & (cells[3] <= cells[2] + 2))] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    assert_close(found, weights @ VALUE.astype(np.float64).repeat(2, 1))


def test_what_a_function_raises_is_raised() -> None:
    def fails(*_):
        raise LookupError("no such slope")

    for options in ({"score_mod": fails}, {"mask": heed.where(fails)}):
        for _ in range(2):
            with pytest.raises(LookupError, match="no such slope"):
                heed.attention(QUERY, KEY, VALUE, **options)
    with pytest.raises(LookupError):
        heed.where(fails).picture((3, 3))
    with pytest.raises(ValueError, match="broadcast"):
        heed.attention(QUERY, KEY, VALUE, score_mod=lambda score, *_: np.zeros(1000))
    # No state remains.
    heed.attention(QUERY, KEY, VALUE)


# --- errors ---------------------------------------------------------------------------------------------------------


MISUSES = {
    "attention: key head_dim is 3 but query head_dim is 8": lambda: heed.attention(QUERY, KEY[..., :3], VALUE),
    "attention: query is int64, expected float32": lambda: heed.attention(QUERY.astype(int), KEY, VALUE),
    "attention: query is complex64, expected": lambda: heed.attention(QUERY.astype(np.complex64), KEY, VALUE),
    "attention: key is float64, expected float32 as the query": lambda: heed.attention(QUERY, KEY.astype(float), VALUE),
    "attention: query is a list, expected an array": lambda: heed.attention([1.0], KEY, VALUE),
    "attention: value is a NoneType, expected an array": lambda: heed.attention(QUERY, KEY, None),
    r"attention: query has shape \[8\], expected at least 2": lambda: heed.attention(QUERY[0, 0, 0], KEY, VALUE),
    "expected 4 dimensions": lambda: heed.attention(QUERY[None], KEY, VALUE),
    "in its innermost dimension, expected 1": lambda: heed.attention(QUERY.swapaxes(2, 3), KEY, VALUE),
    "mask is a ndarray, expected a heed.Mask": lambda: heed.attention(QUERY, KEY, VALUE, mask=np.ones((7, 9), bool)),
    "causal: alignment is .left., expected": lambda: heed.causal("left"),
    "where lengths differ, name the alignment": lambda: heed.attention(QUERY, KEY, VALUE, causal=True),
    "allow: array is float32, expected bool": lambda: heed.allow(draw(3, 3)),
    r"Mask::allow: shape \[3, 3\] does not broadcast": lambda: heed.attention(
        QUERY, KEY, VALUE, mask=heed.allow(np.ones((3, 3), bool))
    ),
    "bias is int64, expected": lambda: heed.attention(QUERY, KEY, VALUE, bias=np.zeros(9, int)),
    "softcap is -1, expected 0": lambda: heed.attention(QUERY, KEY, VALUE, softcap=-1.0),
    "ThreadLimit": lambda: heed.attention(QUERY, KEY, VALUE, num_threads=0),
    r"rows\[0\].query is 7, expected": lambda: heed.attention(QUERY, KEY, VALUE, weights_of=[(0, 0, 7)]),
    "query is of half precision": lambda: heed.reference.attention(*(x.astype(np.float16) for x in (QUERY, KEY, VALUE))),
    'keep contains "wieghts"': lambda: heed.reference.attention(QUERY, KEY, VALUE, keep=["wieghts"]),
    "score_mod is a function of Python's": lambda: heed.attention_backward(
        VALUE, QUERY, KEY, VALUE, VALUE, VALUE, score_mod=lambda score, *_: score
    ),
    "requires gradients, which this function does not record": lambda: heed.attention(
        torch.from_numpy(QUERY).requires_grad_(), KEY, VALUE
    ),
}


@pytest.mark.parametrize("message", MISUSES)
def test_misuse_is_a_value_error_with_the_librarys_words(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MISUSES[message]()


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="casual"):
        heed.attention(QUERY, KEY, VALUE, casual=True)


# --- documentation --------------------------------------------------------------------------------------------------


def test_everything_public_is_documented() -> None:
    for name in heed.__all__:
        public = getattr(heed, name)
        if not isinstance(public, str):
            assert inspect.getdoc(public), name


@pytest.mark.parametrize(
    "module",
    [heed, heed._diagnose, heed._kv_cache, heed._operator, heed._relatives, heed._rotary, heed._show, heed.reference],
    ids=lambda module: module.__name__,
)
def test_examples_in_docstrings(module) -> None:
    names = {"heed": heed, "numpy": np, "x": draw(1, 8, 128, 64)}
    results = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0 and results.failed == 0


def test_the_stub_names_what_there_is() -> None:
    stub = ast.parse((pathlib.Path(heed.__file__).parent / "_heed.pyi").read_text(encoding="utf-8"))
    declared = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert declared == {name for name in dir(heed._heed) if not name.startswith("__")}
