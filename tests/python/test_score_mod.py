"""Gradients through score_mod of PyTorch's operations, against attention that is written out in PyTorch."""

from collections.abc import Callable

import pytest
import torch

import heed.torch
from test_torch_attention import draw, loss_of, plain

attention = heed.torch.attention

# Functions of a score and of learned parameters.
FUNCTIONS: dict[str, tuple[Callable, tuple[tuple[int, ...], ...]]] = {
    "distance": (lambda score, b, h, i, j: score - 0.1 * (j - i).abs() * (1 + h), ()),
    "squared": (lambda score, b, h, i, j: score + 0.2 * score**2, ()),
    "hidden": (lambda score, b, h, i, j: torch.where((i - j) % 3 != 1, score, -torch.inf), ()),
    "slopes": (lambda score, b, h, i, j, slopes: score - slopes[h] * (j - i).abs(), ((4,),)),
    "table": (lambda score, b, h, i, j, table: score + table[h, (j - i).clamp(-3, 3) + 3], ((4, 7),)),
    "gate": (lambda score, b, h, i, j, gate, shift: gate[b, h] * score.tanh() + shift, ((2, 4), ())),
    "logarithm": (lambda score, b, h, i, j, gain: gain[h] * torch.log(score.abs() + 1e-300), ((4,),)),
    "shared": (lambda score, b, h, i, j, both: score * (1 + both) + both, ((1,),)),
    "numbers alone": (lambda score, b, h, i, j, table: table[h] * (j % 4), ((4,),)),
}


def inputs_of(name: str, q_len: int, kv_len: int, dtype: torch.dtype) -> tuple[dict, list]:
    tensors = {"query": draw(0, 2, 4, q_len, 6), "key": draw(1, 2, 2, kv_len, 6), "value": draw(2, 2, 2, kv_len, 5)}
    tensors |= {"sinks": draw(3, 4), "bias": draw(4, 4, q_len, kv_len)}
    parameters = [draw(5 + i, *shape) for i, shape in enumerate(FUNCTIONS[name][1])]
    given = {key: x.to(dtype).requires_grad_() for key, x in tensors.items()}
    return given, [x.to(dtype).requires_grad_() for x in parameters]


def compare(name: str, lengths: tuple[int, int], dtype: torch.dtype, tolerance: float) -> None:
    q_len, kv_len = lengths
    offset = kv_len - q_len
    tensors, parameters = inputs_of(name, q_len, kv_len, dtype)
    options = {"softcap": 3.0, "scale": 0.6}
    function = FUNCTIONS[name][0]
    made = attention(
        **tensors, score_mod=function, score_mod_parameters=parameters, causal=True, query_offset=offset,
        return_lse=True, **options,
    )  # fmt: skip
    exact = {key: x.detach().double().requires_grad_() for key, x in tensors.items()}
    exact_parameters = [x.detach().double().requires_grad_() for x in parameters]
    sees = torch.arange(kv_len) <= torch.arange(q_len)[:, None] + offset

    def modify(score, *indices):
        return function(score, *indices, *exact_parameters)

    expected = plain(exact, sees, offset=offset, score_mod=modify, **options)[:2]
    found = torch.autograd.grad(loss_of(tuple(made)), [*tensors.values(), *parameters])
    wanted = torch.autograd.grad(loss_of(expected), [*exact.values(), *exact_parameters], materialize_grads=True)
    for one, other in zip((*made, *found), (*expected, *wanted)):
        assert one.dtype == dtype and one.shape == other.shape
        difference = (one.double() - other).abs().max() / other.abs().max().clamp(min=1)
        assert difference <= tolerance


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double(name: str) -> None:
    compare(name, (5, 9), torch.float64, 1e-11)


@pytest.mark.parametrize("name", ["squared", "table", "gate"])
def test_many_tiles(name: str) -> None:
    compare(name, (150, 300), torch.float32, 3e-5)


@pytest.mark.parametrize(
    "name", ["distance", "squared", "gate", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("slopes", "shared"))]
)
def test_gradients_are_differences(name: str) -> None:
    tensors, parameters = inputs_of(name, 4, 5, torch.float64)

    def attend(*given: torch.Tensor) -> torch.Tensor:
        operands, learned = dict(zip(tensors, given)), given[len(tensors) :]
        return attention(**operands, score_mod=FUNCTIONS[name][0], score_mod_parameters=learned)

    assert torch.autograd.gradcheck(attend, [*tensors.values(), *parameters])


def test_of_the_parameters_some_alone() -> None:
    tensors, (gate, shift) = inputs_of("gate", 5, 6, torch.float64)
    gate.requires_grad_(False)
    out = attention(**tensors, score_mod=FUNCTIONS["gate"][0], score_mod_parameters=(gate, shift))
    out.square().sum().backward()
    assert gate.grad is None and shift.grad.shape == ()


def test_what_is_hidden_does_not_spread() -> None:
    """The score of a hidden key, which may be NaN, reaches no parameter."""
    tensors, (slopes,) = inputs_of("slopes", 6, 6, torch.float64)
    key = tensors["key"].detach().clone()
    key[:, :, 4:] = torch.nan
    out = attention(
        tensors["query"], key, tensors["value"], mask=heed.key_lengths([4, 4]), score_mod=FUNCTIONS["slopes"][0],
        score_mod_parameters=[slopes],
    )  # fmt: skip
    for gradient in torch.autograd.grad(out.square().sum(), [tensors["query"], slopes]):
        assert gradient.isfinite().all() and gradient.abs().max() > 0


def test_half_precision() -> None:
    tensors, (slopes,) = inputs_of("slopes", 6, 6, torch.float32)
    operands = [tensors[name].detach().bfloat16().requires_grad_() for name in ("query", "key", "value")]
    found = []
    for inputs in (operands, [x.detach().float().requires_grad_() for x in operands]):
        out = attention(*inputs, score_mod=FUNCTIONS["slopes"][0], score_mod_parameters=[slopes])
        found.append([x.float() for x in torch.autograd.grad(out.float().sum(), [*inputs, slopes])])
    torch.testing.assert_close(*found, rtol=0.02, atol=0.02)


def with_weights() -> torch.Tensor:
    tensors, (slopes,) = inputs_of("slopes", 6, 6, torch.float64)
    options = {"score_mod": FUNCTIONS["slopes"][0], "score_mod_parameters": [slopes]}
    _, weights = attention(**tensors, return_weights=True, **options)
    return torch.autograd.grad(weights.square().sum(), slopes)[0]


def test_weights_of_a_function() -> None:
    tensors, (slopes,) = inputs_of("slopes", 6, 6, torch.float64)
    sees = torch.ones(6, 6, dtype=torch.bool)
    weights = plain(tensors, sees, score_mod=lambda *at: FUNCTIONS["slopes"][0](*at, slopes))[2]
    (expected,) = torch.autograd.grad(weights.square().sum(), slopes)
    torch.testing.assert_close(with_weights(), expected)


def captured(x: torch.Tensor) -> torch.Tensor:
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    return attention(x, x, x, score_mod=lambda score, *_: score * weight)


def raises(x: torch.Tensor) -> torch.Tensor:
    def broken(*_):
        raise ValueError("this one")

    return attention(x, x, x, score_mod=broken)


@pytest.mark.parametrize(
    ("text", "misuse"),
    [
        ("score_mod uses a tensor that requires a gradient; expected such tensors to be given as score_mod_parameters",
         captured),
        ("this one", raises),
        ("score_mod is a Tensor, expected a function", lambda x: attention(x, x, x, score_mod=x)),
        (r"score_mod returned a NoneType, expected a tensor of scores that broadcasts to \[keys, rows\] = \[3, 3\]",
         lambda x: attention(x, x, x, score_mod=lambda *_: None)),
        ("score_mod returned a tensor of torch.bool, expected a tensor of scores",
         lambda x: attention(x, x, x, score_mod=lambda score, *_: score > 0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("requires_grad", [False, True])
def test_misuse(text: str, misuse, requires_grad: bool) -> None:
    with pytest.raises(ValueError, match=text):
        misuse(draw(0, 1, 1, 3, 4).requires_grad_(requires_grad))
