"""scaled_dot_product_attention of tensors of rank 4 as operators that PyTorch knows, and past PyTorch's dispatcher."""

from __future__ import annotations

import functools

import torch

from . import _heed
from ._options import make_options
from ._recorded import is_batched, rows_of

_HALF = (torch.float16, torch.bfloat16)

_library = torch.library.Library("heed", "DEF")  # noqa: TOR901
_library.define(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? seed, "
    "float dropout_p, str? causal, float? scale) -> (Tensor out, Tensor lse, Tensor lse_low, Tensor out_low)"
)
_library.define(
    "scaled_dot_product_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor lse, Tensor lse_low, Tensor out_low, Tensor? attn_mask, Tensor? seed, float dropout_p, str? causal, "
    "float? scale, bool needs_grad_mask) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_mask)"
)


def _options(query, attn_mask, seed, dropout_p, causal, scale, needs_grad_mask=False):
    """PyTorch's arguments as heed's; causal is an alignment or None. A float mask is a bias where its gradient is wanted, and where its numbers have
    more digits than a mask keeps."""
    mask = bias = None
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            mask = _heed.allow(attn_mask)
        elif needs_grad_mask or query.dtype == torch.float64:
            bias = attn_mask
        else:
            mask = _heed.additive(attn_mask)
    return make_options(
        "scaled_dot_product_attention",
        mask=mask,
        bias=bias,
        causal=causal,
        scale=scale,
        dropout=dropout_p if seed is not None else 0.0,
        seed=0 if seed is None else int(seed),
    )


def _attend(query, key, value, attn_mask, seed, dropout_p, causal, scale, with_lse):
    options = _options(query, attn_mask, seed, dropout_p, causal, scale)
    return _heed.attention(query, key, value, options, with_lse, torch.get_num_threads())


@torch.library.impl(_library, "scaled_dot_product_attention", "CPU")
def _forward(*arguments):
    """Out, lse, lse_low and out_low, which has no elements where out is no half precision: an operator's results are tensors,
    all of them, and of shapes that are known before."""
    with torch.no_grad():
        *made, out_low = _attend(*arguments, with_lse=True)
    return *made, made[0].new_empty(0) if out_low is None else out_low


def _attend_for_backward(query, key, value, *settings):
    """Out, lse, lse_low, out_low and the weights that gradients need not compute again, the last two of which may be None."""
    return _heed.attention_for_backward(query, key, value, _options(query, *settings), torch.get_num_threads())


@torch.library.register_fake("heed::scaled_dot_product_attention", lib=_library)
def _forward_fake(query, key, value, attn_mask, seed, dropout_p, causal, scale):
    lse_dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    out = query.new_empty((*query.shape[:-1], value.shape[-1]))
    lse, lse_low = (query.new_empty(query.shape[:-1], dtype=lse_dtype) for _ in range(2))
    return out, lse, lse_low, torch.empty_like(out) if query.dtype in _HALF else query.new_empty(0)


@torch.library.impl(_library, "scaled_dot_product_attention_backward", "CPU")
def _backward(
    grad_out, query, key, value, out, lse, lse_low, out_low, attn_mask, seed, dropout_p, causal, scale, needs_grad_mask
):  # fmt: skip
    settings = (attn_mask, seed, dropout_p, causal, scale, needs_grad_mask)
    with torch.no_grad():
        tensors = (rows_of(tensor) for tensor in (grad_out, query, key, value, out))
        gradients = _gradients(*tensors, lse, lse_low, rows_of(out_low) if out.dtype in _HALF else None, None, *settings)
    return tuple(lse.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _gradients(
    grad_out, query, key, value, out, lse, lse_low, out_low, kept, attn_mask, seed, dropout_p, causal, scale, needs_grad_mask
):  # fmt: skip
    options = _options(query, attn_mask, seed, dropout_p, causal, scale, needs_grad_mask)
    operands = (rows_of(grad_out), query, key, value, (out, lse, lse_low, out_low, None if needs_grad_mask else kept))
    found = _heed.attention_backward(*operands, options, torch.get_num_threads())
    return *found[:3], found[4].to(attn_mask.dtype) if needs_grad_mask else None


@torch.library.register_fake("heed::scaled_dot_product_attention_backward", lib=_library)
def _backward_fake(
    grad_out, query, key, value, out, lse, lse_low, out_low, attn_mask, seed, dropout_p, causal, scale, needs_grad_mask
):  # fmt: skip
    grad_mask = attn_mask.new_empty(attn_mask.shape) if needs_grad_mask else lse.new_empty(0)
    return *(x.new_empty(x.shape) for x in (query, key, value)), grad_mask


def _setup_context(ctx, inputs, output):
    query, key, value, attn_mask, seed, ctx.dropout_p, ctx.causal, ctx.scale = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(query, key, value, attn_mask, seed, *output)


def _as_results(saved):
    """What was saved without the operator as it saves it: without what was kept, and with an out_low without elements."""
    *others, out_low, _kept = saved
    return *others, others[0].new_empty(0) if out_low is None else out_low


def _autograd(ctx, grad_out, *_grads_lse):
    return _gradients_by_operator(ctx, grad_out, *ctx.saved_tensors)


def _gradients_by_operator(ctx, grad_out, query, key, value, attn_mask, seed, *made):
    needs_grad_mask = ctx.needs_input_grad[3]
    *gradients, grad_mask = torch.ops.heed.scaled_dot_product_attention_backward(
        grad_out, query, key, value, *made, attn_mask, seed, ctx.dropout_p, ctx.causal, ctx.scale, needs_grad_mask
    )
    return *gradients, grad_mask if needs_grad_mask else None, None, None, None, None


torch.library.register_autograd(
    "heed::scaled_dot_product_attention", _autograd, setup_context=_setup_context, lib=_library
)


def _refuse(_ctx, *_grads):
    raise RuntimeError("heed::scaled_dot_product_attention has no gradient of a gradient")


torch.library.register_autograd("heed::scaled_dot_product_attention_backward", _refuse, lib=_library)


def _one_by_one(operator):
    """The rule by which torch.func.vmap calls an operator: for each entry alone, with the bits it has alone."""

    def rule(info, in_dims, *arguments):
        found = [
            operator(*(x if dim is None else x.select(dim, index) for x, dim in zip(arguments, in_dims)))
            for index in range(info.batch_size)
        ]
        results = tuple(torch.stack(entries) for entries in zip(*found))
        return results, (0,) * len(results)

    return rule


for _name in ("scaled_dot_product_attention", "scaled_dot_product_attention_backward"):
    torch.library.register_vmap(f"heed::{_name}", _one_by_one(getattr(torch.ops.heed, _name)), lib=_library)


class _Attention(torch.autograd.Function):
    """The operators without PyTorch's dispatcher, which costs more than a short sequence does."""

    @staticmethod
    def forward(ctx, query, key, value, attn_mask, seed, *settings):
        made = _attend_for_backward(query, key, value, attn_mask, seed, *settings)
        ctx.save_for_backward(query, key, value, attn_mask, seed, *made)
        ctx.dropout_p, ctx.causal, ctx.scale = settings
        return made[0]

    @staticmethod
    def backward(ctx, grad_out):
        # Somebody wants the gradient of a gradient, which the operator refuses when it comes to that, or the
        # gradients of several outputs at once, which PyTorch hands to the operator one by one.
        if torch.is_grad_enabled() or is_batched(grad_out):
            return _gradients_by_operator(ctx, grad_out, *_as_results(ctx.saved_tensors))
        query, key, value, attn_mask, seed, *made = ctx.saved_tensors
        settings = (attn_mask, seed, ctx.dropout_p, ctx.causal, ctx.scale, ctx.needs_input_grad[3])
        return *_gradients(grad_out, query, key, value, *made, *settings), None, None, None, None


_PLAIN = {torch.Tensor, torch.nn.Parameter, type(None)}


def is_watched() -> bool:
    """Whether somebody watches for operators: a compiler, a tracer, a mode, a transform."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
    )


def _must_be_dispatched(tensors) -> bool:
    """Whether somebody watches, or a subclass does."""
    return is_watched() or not {type(tensor) for tensor in tensors} <= _PLAIN


@functools.lru_cache(maxsize=64)
def _usual_options(causal: str | None, scale: float | None):
    return make_options("scaled_dot_product_attention", causal=causal, scale=scale)


def compute_usual(query, key, value, causal: str | None, scale: float | None):
    """The attention of plain tensors of rank 4 that fit each other, where nobody watches; None of any others."""
    return _heed.usual_attention(query, key, value, _usual_options(causal, scale), torch.get_num_threads())


def compute(query, key, value, attn_mask, *others):
    """The attention of tensors of rank 4, recorded where a gradient is wanted."""
    tensors = (query, key, value, attn_mask)
    if _must_be_dispatched(tensors):
        return torch.ops.heed.scaled_dot_product_attention(*tensors, *others)[0]
    wants_grad = query.requires_grad or key.requires_grad or value.requires_grad
    wants_grad = wants_grad or (attn_mask is not None and attn_mask.requires_grad)
    if wants_grad and torch.is_grad_enabled():
        return _Attention.apply(*tensors, *others)
    return _attend(*tensors, *others, with_lse=False)
