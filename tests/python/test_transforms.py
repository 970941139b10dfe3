"""What PyTorch has besides calling a function and going back: its own masks, subclasses and modes, forward mode, vmap,
TorchScript, and switching heed on in several threads."""

import threading

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.overrides import TorchFunctionMode

import heed.torch

sdpa = heed.torch.scaled_dot_product_attention
pytorch_sdpa = F.scaled_dot_product_attention


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


QUERY, KEY, VALUE = draw(2, 3, 5, 8), draw(2, 3, 7, 8, seed=1), draw(2, 3, 7, 8, seed=2)


def by_steps(*operands: torch.Tensor, **options) -> torch.Tensor:
    """PyTorch's operator without its fused kernel."""
    with sdpa_kernel(SDPBackend.MATH):
        return pytorch_sdpa(*operands, **options)


# --- PyTorch's own masks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize("lengths", [(5, 7), (128, 128)])
def test_pytorchs_causal_masks(make, lengths: tuple[int, int]) -> None:
    query, key, value = draw(1, 2, lengths[0], 8), draw(1, 2, lengths[1], 8), draw(1, 2, lengths[1], 8)
    mask = make(*lengths)
    expected = pytorch_sdpa(query, key, value, mask)
    torch.testing.assert_close(sdpa(query, key, value, mask), expected)
    with heed.torch.enabled():
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        wanted = query.clone().requires_grad_()
        F.scaled_dot_product_attention(wanted, key, value, mask).sum().backward()
    torch.testing.assert_close(found, expected)
    theirs = query.clone().requires_grad_()
    by_steps(theirs, key, value, attn_mask=mask._materialize()).sum().backward()
    torch.testing.assert_close(wanted.grad, theirs.grad)


def test_pytorchs_causal_masks_are_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="attn_mask is a CausalBias of 7 queries and 7 keys, expected 5 and 7"):
        sdpa(QUERY, KEY, VALUE, causal_upper_left(7, 7))
    with pytest.raises(ValueError, match="expected is_causal=False"):
        sdpa(QUERY, KEY, VALUE, causal_upper_left(5, 7), is_causal=True)


@pytest.mark.parametrize("dropout_p", [-0.1, 1.5, float("nan")])
def test_dropout_is_a_probability(dropout_p: float) -> None:
    with pytest.raises(ValueError, match="dropout_p is .*, expected 0 to 1"):
        sdpa(QUERY, KEY, VALUE, dropout_p=dropout_p)


# --- subclasses and modes -------------------------------------------------------------------------------------------


class Plain(torch.Tensor):
    pass


class Handled(torch.Tensor):
    """Does attention its own way, known by PyTorch's name of it."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is pytorch_sdpa:
            return "handled"
        return super().__torch_function__(func, types, args, kwargs or {})


class Seen(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.functions: list = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **kwargs or {})


def test_subclasses_and_modes_are_asked() -> None:
    plain = sdpa(QUERY.as_subclass(Plain), KEY, VALUE)
    assert type(plain) is Plain
    torch.testing.assert_close(plain.as_subclass(torch.Tensor), sdpa(QUERY, KEY, VALUE))
    with heed.torch.enabled():
        assert F.scaled_dot_product_attention(QUERY, KEY.as_subclass(Handled), VALUE) == "handled"
        with Seen() as seen:
            F.scaled_dot_product_attention(QUERY, KEY, VALUE)
        assert seen.functions[0] is sdpa
        with torch.device("cpu"):
            F.scaled_dot_product_attention(QUERY, KEY, VALUE, causal_lower_right(5, 7))


# --- derivatives ----------------------------------------------------------------------------------------------------


def test_forward_mode_has_derivatives() -> None:
    tangents = tuple(draw(*x.shape, seed=9) for x in (QUERY, KEY, VALUE))
    expected = torch.func.jvp(by_steps, (QUERY, KEY, VALUE), tangents)
    found = torch.func.jvp(sdpa, (QUERY, KEY, VALUE), tangents)
    torch.testing.assert_close(found, expected)
    assert found[1].abs().max() > 0.1
    mask = causal_lower_right(5, 7)
    with forward_ad.dual_level():
        out = sdpa(forward_ad.make_dual(QUERY, tangents[0]), KEY, VALUE, attn_mask=mask)
        _, tangent = forward_ad.unpack_dual(out)
    _, expected_tangent = torch.func.jvp(
        lambda query: by_steps(query, KEY, VALUE, attn_mask=mask._materialize()), (QUERY,), (tangents[0],)
    )
    torch.testing.assert_close(tangent, expected_tangent)


def test_relatives_refuse_forward_mode() -> None:
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode"):
        heed.torch.feature_map_attention(forward_ad.make_dual(QUERY, QUERY), KEY, VALUE)


def test_gradients_of_several_outputs_at_once() -> None:
    query, mask = QUERY.clone().requires_grad_(), draw(5, 7, seed=3).requires_grad_()
    out = sdpa(query, KEY, VALUE, mask)
    grads = draw(4, *out.shape, seed=4)
    together = torch.autograd.grad(out, (query, mask), grads, is_grads_batched=True, retain_graph=True)
    alone = [torch.autograd.grad(out, (query, mask), one, retain_graph=True) for one in grads]
    for found, expected in zip(together, zip(*alone)):
        torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=0)


def test_relatives_go_back_for_one_output_at_a_time() -> None:
    query = QUERY.clone().requires_grad_()
    out = heed.torch.feature_map_attention(query, KEY, VALUE)
    with pytest.raises(RuntimeError, match="feature_map_attention goes back for one output at a time"):
        torch.autograd.grad(out, query, torch.ones(2, *out.shape), is_grads_batched=True)


def test_vmap_calls_one_by_one() -> None:
    queries = draw(4, 2, 3, 5, 8, seed=5)
    found = torch.func.vmap(lambda query: sdpa(query, KEY, VALUE, is_causal=True))(queries)
    expected = torch.stack([sdpa(query, KEY, VALUE, is_causal=True) for query in queries])
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


BY_ENTRIES = {
    "attention": lambda x: heed.torch.attention(x, KEY, VALUE, causal="bottom_right"),
    "attention with lse": lambda x: heed.torch.attention(x, KEY, VALUE, return_lse=True)[1],
    "attention with weights": lambda x: heed.torch.attention(x, KEY, VALUE, return_weights=True)[1],
    "bias": lambda x: heed.torch.attention(QUERY, KEY, VALUE, bias=x[..., :1]),
    "rotary_embedding": lambda x: heed.torch.rotary_embedding(x, x[0, 0, :, :4] * 0 + 1, x[0, 0, :, :4], pairing="halves"),
    "linear_attention": lambda x: heed.torch.linear_attention(x, QUERY, QUERY)[0],
    "feature_map_attention": lambda x: heed.torch.feature_map_attention(x, KEY, VALUE),
}


@pytest.mark.parametrize("name", BY_ENTRIES)
@pytest.mark.parametrize("in_dim", [0, 2])
def test_vmap_computes_each_entry_alone(name: str, in_dim: int) -> None:
    function, entries = BY_ENTRIES[name], draw(4, *QUERY.shape, seed=6).requires_grad_(name != "rotary_embedding")
    expected = torch.stack([function(entry) for entry in entries])
    found = torch.func.vmap(function, in_dims=in_dim)(entries.movedim(0, in_dim))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    twice = torch.func.vmap(torch.func.vmap(function))(entries.unflatten(0, (2, 2)))
    torch.testing.assert_close(twice.flatten(0, 1), expected, rtol=0, atol=0)
    with torch.no_grad():
        torch.testing.assert_close(torch.func.vmap(function)(entries), expected, rtol=0, atol=0)
    if entries.requires_grad:
        gradients = [torch.autograd.grad(out.square().sum(), entries, retain_graph=True)[0] for out in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_whoever_asks_for_pytorchs_steps_gets_a_gradient_of_a_gradient() -> None:
    def curvature(function) -> torch.Tensor:
        query = QUERY.clone().requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            (gradient,) = torch.autograd.grad(function(query, KEY, VALUE).sum(), query, create_graph=True)
        gradient.square().sum().backward()
        return query.grad

    torch.testing.assert_close(curvature(sdpa), curvature(pytorch_sdpa))


class Scripted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripts_while_enabled() -> None:
    with heed.torch.enabled():
        torch.testing.assert_close(torch.jit.script(Scripted())(QUERY), sdpa(QUERY, QUERY, QUERY, is_causal=True))
        torch.jit.script(torch.nn.MultiheadAttention(8, 2))


# --- switching ------------------------------------------------------------------------------------------------------


def test_a_thread_that_leaves_its_block_leaves_others_alone() -> None:
    entered, left = threading.Event(), threading.Event()
    fastpath = torch.backends.mha.get_fastpath_enabled()

    def first() -> None:
        with heed.torch.enabled():
            entered.set()
            left.wait(timeout=300)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(timeout=300)
    with heed.torch.enabled():
        left.set()
        thread.join(timeout=300)
        assert F.scaled_dot_product_attention is sdpa
        assert not torch.backends.mha.get_fastpath_enabled()
    assert F.scaled_dot_product_attention is pytorch_sdpa
    assert torch.backends.mha.get_fastpath_enabled() == fastpath


def test_a_block_within_enable_ends_neither() -> None:
    with heed.torch.enabled():
        heed.torch.enable()
    assert F.scaled_dot_product_attention is sdpa
    with heed.torch.enabled():
        heed.torch.disable()
        assert F.scaled_dot_product_attention is sdpa
    assert F.scaled_dot_product_attention is pytorch_sdpa
