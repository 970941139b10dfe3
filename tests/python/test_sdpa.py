"""heed.torch.scaled_dot_product_attention against PyTorch's, live: forward and backward."""

import math
import random
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

import heed.torch

sdpa = heed.torch.scaled_dot_product_attention
pytorch_sdpa = F.scaled_dot_product_attention

Call = dict[str, object]

HALF = (torch.float16, torch.bfloat16)


def draw(
    seed: int,
    shape: tuple[int, ...] = (2, 4, 7, 9, 8),
    num_kv_heads: int | None = None,
    value_dim: int | None = None,
    mask: torch.Tensor | None = None,
    layout: str = "contiguous",
    **options: object,
) -> Call:
    """A call in float32. `shape` is batch, num_heads, q_len, kv_len, head_dim."""
    batch, num_heads, q_len, kv_len, head_dim = shape
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    value_dim = head_dim if value_dim is None else value_dim
    generator = torch.Generator().manual_seed(seed)

    def tensor(heads: int, length: int, dim: int) -> torch.Tensor:
        if layout == "contiguous":
            return torch.randn(batch, heads, length, dim, generator=generator)
        if layout == "bthd":
            return torch.randn(batch, length, heads, dim, generator=generator).transpose(1, 2)
        if layout == "inner":
            return torch.randn(batch, heads, dim, length, generator=generator).transpose(2, 3)
        return torch.randn(batch, heads, 2 * length, dim, generator=generator)[:, :, ::2]

    call: Call = {
        "query": tensor(num_heads, q_len, head_dim),
        "key": tensor(kv_heads, kv_len, head_dim),
        "value": tensor(kv_heads, kv_len, value_dim),
        "grad_out": torch.randn(batch, num_heads, q_len, value_dim, generator=generator),
    }
    if mask is not None:
        call["attn_mask"] = mask
    if kv_heads != num_heads:
        call["enable_gqa"] = True
    return call | options


def boolean_mask(seed: int, *shape: int) -> torch.Tensor:
    """About every third query sees nothing at all."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < 0.7
    blind = torch.rand(shape[:-1], generator=generator) < 0.3
    return mask & ~blind[..., None]


def float_mask(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    added = torch.randn(shape, generator=generator)
    return added.masked_fill(~boolean_mask(seed, *shape), -math.inf)


def grid() -> list[Call]:
    calls = []
    for seed, q_len in enumerate((1, 3, 16, 65)):
        for kv_len in (1, 7, 33, 130):
            for is_causal in (False, True):
                shape = (1 + seed % 2, 2, q_len, kv_len, (8, 3, 64, 1)[seed])
                calls.append(draw(seed, shape, value_dim=(8, 5)[kv_len % 2], is_causal=is_causal))
    for num_heads, num_kv_heads in ((4, 1), (4, 2), (6, 3), (5, 1)):
        for is_causal in (False, True):
            shape = (2, num_heads, 9, 9, 8)
            calls.append(draw(num_heads, shape, num_kv_heads, is_causal=is_causal))
    for seed, mask_shape in enumerate([(9,), (7, 1), (7, 9), (4, 7, 9), (2, 1, 1, 9), (2, 4, 7, 9)]):
        calls.append(draw(seed, mask=boolean_mask(seed, *mask_shape)))
        calls.append(draw(seed, mask=float_mask(seed, *mask_shape)))
    calls.append(draw(0, mask=torch.zeros(7, 9, dtype=torch.bool)))
    calls.append(draw(0, mask=torch.full((7, 9), -math.inf)))
    calls += [draw(seed, scale=scale) for seed, scale in enumerate((0.01, 1.0, -0.5, 0.0))]
    for layout in ("bthd", "inner", "steps"):
        calls.append(draw(1, (2, 4, 9, 9, 8), 2, layout=layout, is_causal=True))
    for shape in ((0, 2, 3, 4, 2), (2, 2, 0, 4, 2), (2, 2, 3, 0, 2), (2, 0, 3, 4, 2)):
        calls.append(draw(2, shape))
    calls.append(draw(2, (2, 2, 3, 4, 2), value_dim=0))
    return calls


def random_calls(count: int) -> list[Call]:
    calls = []
    for seed in range(count):
        drawn = random.Random(seed)
        kv_heads = drawn.choice((1, 2, 3))
        heads = kv_heads * drawn.choice((1, 1, 2, 3))
        batch, q_len, kv_len = drawn.choice((1, 2)), drawn.randint(1, 80), drawn.randint(1, 150)
        mask_shape = (batch, drawn.choice((1, heads)), drawn.choice((1, q_len)), kv_len)
        mask = drawn.choice((None, None, boolean_mask(seed, *mask_shape), float_mask(seed, *mask_shape)))
        calls.append(
            draw(
                seed,
                (batch, heads, q_len, kv_len, drawn.randint(1, 70)),
                kv_heads,
                drawn.randint(1, 70),
                mask=mask,
                layout=drawn.choice(("contiguous", "bthd", "inner", "steps")),
                is_causal=mask is None and drawn.random() < 0.5,
                scale=drawn.choice((None, 0.3)),
            )
        )
    return calls


def run(attend, call: Call, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The output and every gradient."""
    arguments = dict(call)
    grad_out = arguments.pop("grad_out").to(dtype)
    names = ["query", "key", "value"]
    mask = arguments.get("attn_mask")
    if mask is not None and mask.is_floating_point():
        names.append("attn_mask")
    inputs = {name: arguments[name].detach().to(dtype).requires_grad_() for name in names}
    out = attend(**arguments | inputs)
    gradients = torch.autograd.grad(out, list(inputs.values()), grad_out, materialize_grads=True)
    found = {"out": out.detach()} | dict(zip((f"grad_{name}" for name in names), gradients))
    assert all(tensor.dtype == dtype for tensor in found.values())
    return found


def pytorch_math(**arguments: object) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return pytorch_sdpa(**arguments)


def error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference, relative to the largest element where that exceeds 1."""
    assert found.shape == expected.shape
    assert not found.isnan().any()
    if expected.numel() == 0:
        return 0.0
    return float((found.double() - expected).abs().max() / max(1.0, float(expected.abs().max())))


def rounded(call: Call, dtype: torch.dtype) -> Call:
    return {
        name: value.to(dtype).float() if torch.is_tensor(value) and value.is_floating_point() else value
        for name, value in call.items()
    }


@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
def test_is_as_exact_as_pytorch(dtype: torch.dtype) -> None:
    """At most twice PyTorch's own error against double on the same numbers, each the worst over all calls.

    The gradient of a mask is compared by the root of the mean square over all calls. It is weight * (grad_out . value - delta),
    where a weight near 1 leaves the difference of two nearly equal numbers. heed takes delta from grad_out . out, so that no
    second pass over the keys is needed; PyTorch sums what it subtracts from, whose rounding then goes away. How much the worst
    call shows of that depends on the BLAS kernels behind PyTorch: 3 times its error on a Zen 4, less than twice on an Intel.
    PyTorch computes bfloat16 in float32 here. Where heed multiplies it in pairs, everything is compared by that root: delta is that
    of weights that were rounded (docs/semantics.md), for which the worst call may be three times as wrong.
    """
    in_pairs = dtype == torch.bfloat16 and heed.attention_target().endswith("_BF16")
    found: dict[str, list[tuple[float, float]]] = {}
    for drawn in grid() + random_calls(200):
        call = rounded(drawn, dtype)
        expected = run(pytorch_math, call, torch.float64)
        ours = run(sdpa, call, dtype)
        theirs = run(pytorch_math, call, dtype)
        for name, right in expected.items():
            found.setdefault(name, []).append((error(ours[name], right), error(theirs[name], right)))
    for name, pairs in found.items():
        errors = torch.tensor(pairs)
        averages = in_pairs or name == "grad_attn_mask"
        heed_error, pytorch_error = (errors.square().mean(0).sqrt() if averages else errors.amax(0)).tolist()
        assert 0 < heed_error <= 2 * pytorch_error, name
        if in_pairs:
            heed_error, pytorch_error = errors.amax(0).tolist()
            assert heed_error <= 3 * pytorch_error, name


def test_double_agrees_to_its_last_digits() -> None:
    for call in grid() + random_calls(20):
        expected = run(pytorch_math, call, torch.float64)
        for name, found in run(sdpa, call, torch.float64).items():
            assert error(found, expected[name]) <= 1e-13, name


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 3, 4), (2, 1, 3, 2)], ids=str)
def test_any_number_of_leading_dimensions(leading: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(*leading, 5, 8, generator=generator)
    key = torch.randn(*leading, 7, 8, generator=generator)
    mask = torch.rand(*leading, 5, 7, generator=generator) < 0.7
    expected = pytorch_sdpa(query, key, key, mask)
    torch.testing.assert_close(sdpa(query, key, key, mask), expected)


def test_leading_dimensions_broadcast() -> None:
    query, key = torch.randn(4, 2, 5, 8), torch.randn(1, 2, 7, 8)
    torch.testing.assert_close(sdpa(query, key, key), pytorch_math(query=query, key=key, value=key))
    grouped = torch.randn(4, 6, 5, 8)
    found = sdpa(grouped, key, key, enable_gqa=True)
    keys = key.expand(4, 2, 7, 8)
    torch.testing.assert_close(found, pytorch_math(query=grouped, key=keys, value=keys, enable_gqa=True))


def test_a_mask_and_is_causal_both_count() -> None:
    """As in PyTorch's fused kernel; its math backend refuses both at once."""
    call = draw(4, mask=boolean_mask(4, 7, 9))
    operands = [call[name] for name in ("query", "key", "value")]
    mask = call["attn_mask"] & torch.ones(7, 9, dtype=torch.bool).tril()
    found = sdpa(*operands, call["attn_mask"], is_causal=True)
    torch.testing.assert_close(found, pytorch_sdpa(*operands, mask))


def test_lengths_that_differ_are_refused() -> None:
    """PyTorch's fused kernel reads past the end."""
    x = torch.randn(1, 2, 4, 8)
    with pytest.raises(ValueError, match="value kv_len is 3 but key kv_len is 4"):
        sdpa(x, x, x[:, :, :3])


def test_what_pytorch_refuses_is_refused_in_its_words() -> None:
    x = torch.randn(1, 2, 4, 8)
    misuses = [
        {"attn_mask": torch.ones(4, 4, dtype=torch.int32)},
        {"attn_mask": torch.ones(4, 3, dtype=torch.bool)},
        {"key": torch.randn(1, 2, 4, 9)},
        {"key": x.double()},
        {"key": x[:, :1].expand(1, 3, 4, 8), "enable_gqa": True},
    ]
    for misuse in misuses:
        arguments = {"query": x, "key": x, "value": x} | misuse
        with pytest.raises(RuntimeError) as theirs:
            pytorch_sdpa(**arguments)
        with pytest.raises(RuntimeError) as ours:
            sdpa(**arguments)
        assert str(ours.value) == str(theirs.value)


def test_what_heed_lacks_pytorch_computes_and_says_so_once() -> None:
    nested = torch.nested.nested_tensor([torch.randn(2, 3, 8), torch.randn(2, 5, 8)])
    with pytest.warns(UserWarning, match="heed does not compute attention of nested"):
        found = sdpa(nested, nested, nested)
    for one, x in zip(found.unbind(), nested.unbind()):
        torch.testing.assert_close(one, pytorch_sdpa(x, x, x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdpa(nested, nested, nested)


def test_dropout_is_decided_by_pytorchs_generator() -> None:
    query, key = torch.randn(2, 4, 64, 8), torch.randn(2, 4, 256, 8)
    # Values that read out the weights, 32 keys at a time, to show which were dropped.
    value = torch.zeros(2, 4, 256, 256) + torch.eye(256)
    weights = sdpa(query, key, value)

    def dropped(seed: int, probability: float = 0.25) -> torch.Tensor:
        torch.manual_seed(seed)
        return sdpa(query, key, value, dropout_p=probability)

    first, again, other = dropped(1), dropped(1), dropped(2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert abs((first == 0).double().mean() - 0.25) < 0.01
    kept = first != 0
    torch.testing.assert_close(first[kept], weights[kept] / 0.75)
    assert not dropped(1, 1.0).any()


def test_gradients_fall_where_the_weights_fell() -> None:
    call = draw(5, (1, 2, 5, 6, 4))
    query, key, value = (call[name].double().requires_grad_() for name in ("query", "key", "value"))

    def attend(*inputs: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return sdpa(*inputs, dropout_p=0.5)

    assert torch.autograd.gradcheck(attend, (query, key, value))


def test_gradients_of_some_inputs_alone() -> None:
    call = draw(7, mask=float_mask(7, 7, 9))
    arguments = {name: call[name] for name in ("query", "key", "value", "attn_mask")}
    everything = run(sdpa, call, torch.float32)
    for name in ("key", "attn_mask"):
        leaf = arguments[name].clone().requires_grad_()
        sdpa(**arguments | {name: leaf}).backward(call["grad_out"])
        torch.testing.assert_close(leaf.grad, everything[f"grad_{name}"])


def operator_arguments(seed: int, mask: torch.Tensor | None, dropout_p: float) -> tuple:
    call = draw(seed, (2, 4, 5, 6, 8), 2)
    tensors = [call[name].requires_grad_() for name in ("query", "key", "value")]
    drawn = torch.tensor(7) if dropout_p else None
    return (*tensors, mask, drawn, dropout_p, "top_left" if mask is None else None, None)


@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
@pytest.mark.parametrize(
    "mask", [None, boolean_mask(0, 5, 6), torch.ones(4, 1, 6).requires_grad_()], ids=["none", "bool", "float"]
)
def test_operator_is_registered_as_pytorch_wants(mask: torch.Tensor | None, dropout_p: float) -> None:
    arguments = operator_arguments(0, mask, dropout_p)
    torch.library.opcheck(torch.ops.heed.scaled_dot_product_attention, arguments)


def test_backward_operator_is_registered_as_pytorch_wants() -> None:
    query, key, value, *rest = operator_arguments(0, None, 0.0)
    tensors = [x.detach() for x in (query, key, value)]
    out, *others = torch.ops.heed.scaled_dot_product_attention(*tensors, *rest)
    arguments = (torch.ones_like(out), *tensors, out, *others, *rest, False)
    torch.library.opcheck(torch.ops.heed.scaled_dot_product_attention_backward, arguments)


def test_compiles_into_one_graph() -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def compiled(query, key, value, mask):
        return sdpa(query, key, value, mask).sin()

    call = draw(3, mask=boolean_mask(3, 7, 9))
    inputs = [call[name].requires_grad_() for name in ("query", "key", "value")]
    expected = sdpa(*inputs, call["attn_mask"]).sin()
    found = compiled(*inputs, call["attn_mask"])
    torch.testing.assert_close(found, expected)
    of_both = (torch.autograd.grad(out.sum(), inputs) for out in (found, expected))
    torch.testing.assert_close(*of_both)


class Watch(TorchDispatchMode):
    """Counts the operators that go by."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_short_way_around_pytorchs_dispatcher_changes_nothing(dtype: torch.dtype) -> None:
    call = draw(8, mask=float_mask(8, 7, 9))
    plain = run(sdpa, call, dtype)
    with Watch() as watch:
        watched = run(sdpa, call, dtype)
    assert {name for name in watch.seen if "heed" in name} == {
        "heed.scaled_dot_product_attention.default",
        "heed.scaled_dot_product_attention_backward.default",
    }
    for name, tensor in plain.items():
        torch.testing.assert_close(watched[name], tensor, rtol=0, atol=0)
    with Watch() as watch, torch.no_grad():
        sdpa(*(call[name] for name in ("query", "key", "value")))
    assert watch.seen == ["heed.scaled_dot_product_attention.default"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_weights_of_short_sequences_are_kept_for_gradients(dtype: torch.dtype) -> None:
    call = draw(4, (2, 3, 40, 50, 32))
    tensors = [call[name].to(dtype).requires_grad_() for name in ("query", "key", "value")]
    grad_out = call["grad_out"].to(dtype)

    def gradients(attend) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(attend(*tensors), tensors, grad_out)

    def by_the_operator(*tensors: torch.Tensor) -> torch.Tensor:
        return torch.ops.heed.scaled_dot_product_attention(*tensors, None, None, 0.0, "top_left", None)[0]

    found = gradients(lambda *tensors: sdpa(*tensors, is_causal=True))
    torch.testing.assert_close(found, gradients(by_the_operator))

    def kept(*tensors: torch.Tensor, **options: object) -> torch.Tensor | None:
        return sdpa(*tensors, **options).grad_fn.saved_tensors[-1]

    assert kept(*tensors).numel() > 2 * 3 * 40 * 50
    assert kept(*(tensor[:, :, :8] for tensor in tensors)) is None
    assert kept(*tensors, dropout_p=0.5) is None


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_usual_call_goes_a_short_way_to_the_same_bits(is_causal: bool) -> None:
    call = draw(3, (2, 4, 9, 9, 8))
    tensors = [call["query"], call["key"], call["value"]]
    causal = "top_left" if is_causal else None
    short = heed.torch.compute_usual(*tensors, causal, None)
    long = torch.ops.heed.scaled_dot_product_attention(*tensors, None, None, 0.0, causal, None)[0]
    assert torch.equal(short, long)
    for unusual in (
        tensors[0].clone().requires_grad_(),
        torch.nn.Parameter(tensors[0], requires_grad=False),
        torch.view_as_complex(torch.stack([tensors[0]] * 2, -1)).conj().imag,
        tensors[0][0],
        tensors[0][:, :2],
        tensors[0].double(),
        tensors[0].int(),
        tensors[0][:, :, :0],
        tensors[0].transpose(2, 3),
    ):
        assert heed.torch.compute_usual(unusual, *tensors[1:], causal, None) is None


def test_there_is_no_gradient_of_a_gradient() -> None:
    x = torch.randn(1, 1, 3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(sdpa(x, x, x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no gradient of a gradient"):
        gradient.sum().backward()


def test_casts_where_autocast_does() -> None:
    x = torch.randn(1, 2, 5, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert sdpa(x, x, x).dtype == pytorch_sdpa(x, x, x).dtype == torch.bfloat16


def heed_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Records the shapes of queries that heed is given."""
    calls: list[tuple] = []

    class Recording:
        def __getattr__(self, name: str):
            found = getattr(heed._heed, name)
            return recorded(found) if name in ("attention", "attention_for_backward") else found

    def recorded(forward):
        def attend(query, *rest):
            calls.append(tuple(query.shape))
            return forward(query, *rest)

        return attend

    monkeypatch.setattr(heed._sdpa, "_heed", Recording())
    return calls


def twins(make) -> list[torch.nn.Module]:
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(make())
    return models


def encoder() -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def train(model: torch.nn.Module, forward) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = forward(model).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def encode(model: torch.nn.Module) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(3, 10, 16, generator=generator)
    padding = torch.arange(10) >= torch.tensor([[10], [7], [4]])
    return model(tokens, src_key_padding_mask=padding)


def attend(model: torch.nn.Module) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(3, 10, 16, generator=generator)
    memory = torch.randn(3, 6, 16, generator=generator)
    hidden = torch.arange(6) > torch.arange(10)[:, None]
    return model(query, memory, memory, attn_mask=hidden, need_weights=False)[0]


MODULES = {
    "TransformerEncoder": (encoder, encode),
    "MultiheadAttention": (lambda: torch.nn.MultiheadAttention(16, 4, batch_first=True), attend),
}


@pytest.mark.parametrize("name", MODULES)
def test_replaces_pytorchs_in_its_own_modules(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, forward = MODULES[name]
    theirs, ours = twins(make)
    calls = heed_calls(monkeypatch)
    expected = train(theirs, forward)
    assert not calls
    with heed.torch.enabled():
        found = train(ours, forward)
        assert calls
        torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
        calls.clear()
        with torch.no_grad():
            inferred = forward(ours.eval())
        assert calls
    assert F.scaled_dot_product_attention is pytorch_sdpa
    with torch.no_grad():
        torch.testing.assert_close(inferred, forward(theirs.eval()), atol=1e-5, rtol=1e-5)


def test_is_undone_as_often_as_done() -> None:
    fastpath = torch.backends.mha.get_fastpath_enabled()
    heed.torch.enable()
    heed.torch.enable()
    with heed.torch.enabled():
        pass
    assert F.scaled_dot_product_attention is sdpa
    heed.torch.disable()
    heed.torch.disable()
    assert F.scaled_dot_product_attention is pytorch_sdpa
    assert torch.backends.mha.get_fastpath_enabled() == fastpath
