"""heed.torch.attention against attention that is written out in PyTorch: the output and every gradient."""

import math
from collections.abc import Callable

import pytest
import torch

import heed.torch

attention = heed.torch.attention

BATCH, HEADS, KV_HEADS, Q_LEN, KV_LEN, HEAD_DIM, VALUE_DIM = 2, 4, 2, 7, 9, 8, 5
BUCKETS = heed.RelativeBuckets.clip(2)
# heed's masks, and the keys that each query sees under them, for queries from this position on.
MASKS = {
    "none": (None, lambda i, j: j >= 0),
    "text": ("causal(bottom_right) & sliding_window(3, 0, bottom_right)", lambda i, j: (j <= i + 2) & (j >= i - 1)),
    "mask": (heed.causal(1), lambda i, j: j <= i + 1),
}


def draw(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def operands(seed: int = 0, layout: str = "bhnd") -> dict[str, torch.Tensor]:
    def tensor(number: int, heads: int, length: int, dim: int) -> torch.Tensor:
        if layout == "bnhd":
            return draw(seed + number, BATCH, length, heads, dim).transpose(1, 2)
        if layout == "bhdn":
            return draw(seed + number, BATCH, heads, dim, length).transpose(2, 3)
        return draw(seed + number, BATCH, heads, length, dim)

    return {
        "query": tensor(0, HEADS, Q_LEN, HEAD_DIM),
        "key": tensor(1, KV_HEADS, KV_LEN, HEAD_DIM),
        "value": tensor(2, KV_HEADS, KV_LEN, VALUE_DIM),
    }


# Optional inputs, all of which have gradients.
LEARNED = {
    "alibi_slopes": lambda: draw(3, HEADS).abs(),
    "bias": lambda: draw(4, HEADS, 1, KV_LEN),
    "sinks": lambda: draw(5, HEADS),
    "table": lambda: draw(6, HEADS, BUCKETS.count),
    "relative_key": lambda: draw(7, BUCKETS.count, HEAD_DIM),
    "relative_value": lambda: draw(8, HEADS, BUCKETS.count, VALUE_DIM),
    "float_mask": lambda: draw(9, BATCH, 1, Q_LEN, KV_LEN),
}


def plain(tensors: dict[str, torch.Tensor], sees: torch.Tensor, scale=None, softcap=0.0, offset=0, score_mod=None):
    """(out, lse, weights), step by step."""
    query, key, value = (tensors[name] for name in ("query", "key", "value"))
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    score = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    scaled = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        score = softcap * torch.tanh(score / softcap)
    i, j = torch.arange(query.shape[2])[:, None] + offset, torch.arange(key.shape[2])
    if score_mod is not None:
        b, h = (torch.arange(count) for count in score.shape[:2])
        score = score_mod(score, b[:, None, None, None], h[:, None, None], i, j).expand(score.shape)
    if "alibi_slopes" in tensors:
        score = score - tensors["alibi_slopes"][:, None, None] * (j - i).abs()
    for name in ("bias", "float_mask"):
        if name in tensors:
            score = score + tensors[name]
    near = (j - i).clamp(-2, 2) + 2
    if "table" in tensors:
        score = score + tensors["table"][:, near]
    if "relative_key" in tensors:
        score = score + torch.einsum("bhid,ijd->bhij", scaled, tensors["relative_key"][near])
    score = score.masked_fill(~sees, -math.inf)
    logits = score
    if "sinks" in tensors:
        sinks = tensors["sinks"][None, :, None, None].expand(*score.shape[:3], 1)
        logits = torch.cat([score, sinks], -1)
    lse = logits.logsumexp(-1)
    weights = torch.exp(score - lse[..., None])
    out = weights @ value
    if "relative_value" in tensors:
        out = out + torch.einsum("bhij,hijd->bhid", weights, tensors["relative_value"][:, near])
    return out, lse, weights


def fused(tensors: dict[str, torch.Tensor], mask, **options):
    given = dict(tensors)
    table, key, value = (given.pop(name, None) for name in ("table", "relative_key", "relative_value"))
    if table is not None:
        given["relative_bias"] = (table, BUCKETS)
    if key is not None or value is not None:
        given["relative_vectors"] = (key, value, BUCKETS)
    mask = given.pop("float_mask", mask)
    return attention(**given, mask=mask, **options)


def seen(name: str) -> torch.Tensor:
    return MASKS[name][1](torch.arange(Q_LEN)[:, None], torch.arange(KV_LEN)).expand(Q_LEN, KV_LEN)


BOOLEAN = draw(10, BATCH, 1, Q_LEN, KV_LEN) < 0.5
BOOLEAN[0, 0, 3] = False
# (learned, mask, visible keys, options of both, options of heed)
CASES = {
    "plain": ((), None, seen("none"), {}),
    "causal": ((), MASKS["mask"][0], seen("mask"), {"scale": 0.3}),
    "window": (("sinks",), MASKS["text"][0], seen("text"), {"softcap": 1.5}),
    "boolean": (("sinks",), BOOLEAN, BOOLEAN, {}),
    "alibi": (("alibi_slopes", "bias"), None, seen("none"), {"offset": 2}),
    "tables": (("table", "relative_key", "relative_value"), MASKS["mask"][0], seen("mask"), {}),
    "values": (("relative_value",), None, seen("none"), {}),
    "float": (("float_mask",), None, seen("none"), {}),
    "float and bias": (("float_mask", "bias"), None, seen("none"), {}),
    "everything": (tuple(LEARNED)[:-1], MASKS["mask"][0], seen("mask"), {"softcap": 2.0, "scale": 0.5}),
}


def loss_of(found: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Of everything, each element counting otherwise; what is minus infinity counts nothing."""
    parts = []
    for number, tensor in enumerate(found):
        factors = draw(20 + number, *tensor.shape).to(tensor.dtype)
        parts.append((torch.where(tensor.isfinite(), tensor, 0.0) * factors).sum())
    return sum(parts)


def results(attend: Callable, name: str, dtype: torch.dtype, learned_dtype: torch.dtype, with_lse=True, layout="bhnd"):
    """The output, lse and weights, and the gradients of all tensors."""
    learned, mask, sees, options = CASES[name]
    tensors = {key: x.to(dtype).requires_grad_() for key, x in operands(layout=layout).items()}
    tensors |= {key: LEARNED[key]().to(learned_dtype).requires_grad_() for key in learned}
    found = attend(tensors, mask, sees, options)
    found = tuple(found)[: 2 if with_lse else 1]
    gradients = torch.autograd.grad(loss_of(found), list(tensors.values()))
    return dict(zip(("out", "lse"), (x.detach() for x in found))) | dict(zip(tensors, gradients))


def by_heed(tensors, mask, _sees, options):
    options = dict(options)
    offset = options.pop("offset", 0)
    return fused(tensors, mask, return_lse=True, query_offset=offset, **options)


def by_pytorch(tensors, _mask, sees, options):
    return plain(tensors, sees, **options)


@pytest.mark.parametrize("name", CASES)
def test_double_agrees_to_its_last_digits(name: str) -> None:
    found = results(by_heed, name, torch.float64, torch.float64)
    expected = results(by_pytorch, name, torch.float64, torch.float64)
    for key, tensor in expected.items():
        finite = tensor.isfinite()
        assert torch.equal(found[key].isfinite(), finite), key
        difference = (found[key] - tensor)[finite].abs().max()
        assert difference <= 1e-12 * max(1.0, tensor[finite].abs().max()), key


def rounded(tensor: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    finite = expected.isfinite()
    return (tensor.double() - expected)[finite] / expected[finite].abs().max().clamp(min=1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_is_as_exact_as_pytorch(dtype: torch.dtype) -> None:
    """The root of the mean square error of all cases, at most twice that of PyTorch's steps in the same type."""
    ours: dict[str, list] = {}
    theirs: dict[str, list] = {}

    def given(attend):
        def rounding(tensors, mask, sees, options):
            exact = {key: x.to(dtype if key in ("query", "key", "value") else torch.float32) for key, x in tensors.items()}
            return attend({key: x.double() for key, x in exact.items()}, mask, sees, options)

        return rounding

    def cast(attend):
        def casting(tensors, mask, sees, options):
            found = attend({key: x.to(dtype) for key, x in tensors.items()}, mask, sees, options)
            return tuple(found)

        return casting

    for name in CASES:
        expected = results(given(by_pytorch), name, torch.float64, torch.float64)
        found = results(by_heed, name, dtype, torch.float32)
        steps = results(cast(by_pytorch), name, dtype, torch.float32)
        for key, tensor in expected.items():
            assert found[key].dtype == (dtype if key in ("out", "query", "key", "value") else torch.float32), key
            ours.setdefault(key, []).append(rounded(found[key], tensor))
            theirs.setdefault(key, []).append(rounded(steps[key], tensor))
    for key in ours:
        heed_error, pytorch_error = (torch.cat(x[key]).square().mean().sqrt() for x in (ours, theirs))
        assert 0 < heed_error <= 2 * pytorch_error, (key, float(heed_error), float(pytorch_error))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("return_lse", [False, True])
def test_gradients_are_differences(name: str, return_lse: bool) -> None:
    learned, mask, _, options = CASES[name]
    if name == "boolean" and return_lse:
        mask = mask.clone()
        mask[..., 0] = True  # the difference of infinite scores is NaN
    options = dict(options)
    offset = options.pop("offset", 0)
    tensors = {key: x[:1, :, :4, :3] if x.ndim == 4 else x for key, x in operands().items()}
    tensors |= {key: LEARNED[key]() for key in learned}
    tensors["value"] = operands()["value"][:1, :, :4]
    tensors["key"], tensors["query"] = (operands()[x][:1, :, :4] for x in ("key", "query"))
    if "bias" in tensors:
        tensors["bias"] = tensors["bias"][..., :4]
    if "float_mask" in tensors:
        tensors["float_mask"] = tensors["float_mask"][:1, :, :4, :4]
    if torch.is_tensor(mask):
        mask = mask[:1, :, :4, :4]

    def attend(*given: torch.Tensor):
        found = fused(dict(zip(tensors, given)), mask, query_offset=offset, return_lse=return_lse, **options)
        return tuple(found) if return_lse else found

    assert torch.autograd.gradcheck(attend, [x.contiguous().requires_grad_() for x in tensors.values()])


@pytest.mark.parametrize("layout", ["bnhd", "bhdn"])
def test_strides_change_nothing(layout: str) -> None:
    found = []
    for make in (lambda x: x, torch.Tensor.contiguous):
        leaves = {key: make(x.float()).requires_grad_() for key, x in operands(layout=layout).items()}
        out = attention(**leaves, mask=heed.causal(1))
        found.append([out.detach(), *torch.autograd.grad(loss_of((out,)), list(leaves.values()))])
    assert not operands(layout=layout)["query"].float().is_contiguous()
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_views_of_projections_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    seen_by_heed = []
    forward = heed._heed.attention

    class Recording:
        def __getattr__(self, name: str):
            return getattr(heed._heed, name)

        def attention(self, query, *rest):
            seen_by_heed.append((query.data_ptr(), query.stride()))
            return forward(query, *rest)

    monkeypatch.setattr(heed._attention, "_heed", Recording())
    x = torch.randn(2, 7, 4 * 8)
    view = x.view(2, 7, 4, 8).transpose(1, 2)
    attention(view, view, view)
    assert seen_by_heed == [(x.data_ptr(), view.stride())]


@pytest.mark.parametrize("rank", [2, 3])
def test_dimensions_in_front_may_be_missing(rank: int) -> None:
    x = draw(0, *(3, 6, 4)[-rank:]).requires_grad_()
    given = x[(None,) * (4 - rank)]
    for options in ({}, {"return_lse": True}):
        found, expected = (attention(y, y, y, causal=True, **options) for y in (x, given))
        if options:
            assert found.lse.shape == x.shape[:-1] and found.lse_low.shape == x.shape[:-1]
            found, expected = found.lse, expected.lse
        torch.testing.assert_close(found, expected.reshape(found.shape), rtol=0, atol=0)
        torch.testing.assert_close(
            *(torch.autograd.grad(out.square().sum(), x)[0] for out in (found, expected)), rtol=0, atol=1e-15
        )


def test_dropout() -> None:
    """The same weights fall in the backward pass; PyTorch's generator or the seed decides which."""
    query, key, value = (draw(number, 1, 2, 4, 3).requires_grad_() for number in range(3))

    def attend(*inputs: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return attention(*inputs, dropout=0.5)

    assert torch.autograd.gradcheck(attend, (query, key, value))
    first = attend(query, key, value)
    assert torch.equal(first, attend(query, key, value))
    assert not torch.equal(first, attention(query, key, value, dropout=0.5))
    seeded = [attention(query, key, value, dropout=0.5, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(seeded[0], seeded[1]) and not torch.equal(seeded[0], seeded[2])
    # The returned weights are those before dropout, and requesting them does not change the output.
    both = attention(query, key, value, dropout=0.5, seed=1, return_weights=True)
    assert torch.equal(both[0], seeded[0])
    torch.testing.assert_close(both[1].sum(-1), torch.ones(1, 2, 4, dtype=torch.float64))


# --- weights in the graph -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_weights(name: str) -> None:
    learned, mask, sees, options = CASES[name]
    tensors = {key: x.requires_grad_() for key, x in operands().items()}
    tensors |= {key: LEARNED[key]().requires_grad_() for key in learned}
    expected = plain(tensors, sees, **options)[::2]
    options = dict(options)
    found = fused(tensors, mask, query_offset=options.pop("offset", 0), return_weights=True, **options)
    gradients = [
        torch.autograd.grad(loss_of(both), list(tensors.values()), materialize_grads=True) for both in (found, expected)
    ]
    for one, other in zip((*found, *gradients[0]), (*expected, *gradients[1])):
        torch.testing.assert_close(one, other.nan_to_num(), rtol=0, atol=1e-12)


def diversity(weights: torch.Tensor) -> torch.Tensor:
    """How alike the heads are: the mean of the products of their weights."""
    return torch.einsum("bhij,bgij->hg", weights, weights).triu(1).sum() / weights.shape[2]


def test_heads_can_be_driven_apart() -> None:
    """A loss on the weights alone reaches the projections."""
    x = draw(0, 2, 6, 8)
    query, key = (draw(number, 8, 8).requires_grad_() for number in (1, 2))
    optimizer = torch.optim.SGD([query, key], lr=0.5)
    losses = []
    for _ in range(20):
        heads = [(x @ matrix).view(2, 6, 2, 4).transpose(1, 2) for matrix in (query, key)]
        _, weights = attention(*heads, heads[1].detach(), return_weights=True)
        optimizer.zero_grad()
        loss = diversity(weights)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.7 * losses[0]


# --- what is refused ------------------------------------------------------------------------------------------------


def test_there_is_no_gradient_of_a_gradient() -> None:
    x = draw(0, 1, 1, 3, 4).requires_grad_()
    with pytest.raises(RuntimeError, match="heed.torch.attention has no gradient of a gradient"):
        torch.autograd.grad(attention(x, x, x).sum(), x, create_graph=True)


def test_the_reference_has_no_gradient_of_an_lse(monkeypatch: pytest.MonkeyPatch) -> None:
    class ReferenceAlone:
        def __getattr__(self, name: str):
            return getattr(heed._heed, name)

        def attention_target(self) -> str:
            return "reference"

    monkeypatch.setattr(heed._attention, "_heed", ReferenceAlone())
    x = draw(0, 1, 1, 3, 4).requires_grad_()
    found = attention(x, x, x, return_lse=True)
    found.out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="heed.torch.attention: the lse has no gradient where no kernel computes"):
        found.lse.sum().backward()


def test_a_mask_that_changed_is_found() -> None:
    x, mask = draw(0, 1, 1, 3, 4).requires_grad_(), torch.ones(3, 3, dtype=torch.bool)
    out = attention(x, x, x, mask=mask)
    mask[0, 0] = False
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize(
    ("text", "misuse"),
    [
        ("heed.torch.attention: query is a list", lambda x: attention([1.0], x, x)),
        ("heed.torch.attention: key is on meta, expected cpu", lambda x: attention(x, x.to("meta"), x)),
        ("mask is a tensor of torch.int64, expected torch.bool, true = may attend",
         lambda x: attention(x, x, x, mask=torch.ones(3, 3, dtype=torch.int64))),
        ("there are score_mod_parameters, expected a score_mod", lambda x: attention(x, x, x, score_mod_parameters=[x])),
        (r"relative_bias is a Tensor, expected \(table, buckets\)", lambda x: attention(x, x, x, relative_bias=x)),
        ("value kv_len is 2 but key kv_len is 3", lambda x: attention(x, x, x[:, :, :2])),
    ],
)  # fmt: skip
@pytest.mark.parametrize("requires_grad", [False, True])
def test_misuse_is_a_value_error(text: str, misuse, requires_grad: bool) -> None:
    with pytest.raises(ValueError, match=text):
        misuse(draw(0, 1, 2, 3, 4).requires_grad_(requires_grad))


def test_example_in_docstring() -> None:
    lines = [line.strip()[4:] for line in attention.__doc__.splitlines() if ">>>" in line]
    assert len(lines) == 3
    exec("\n".join(lines), {"heed": heed, "torch": torch})
