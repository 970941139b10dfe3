"""The relatives of attention as functions that PyTorch's autograd records. Everything is computed by the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from . import _heed, _relatives
from ._entries import each_entry
from ._operator import AttentionGradients
from ._options import RELATIVE, relative_tuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from typing_extensions import Unpack

    from ._options import Options


def rows_of(tensor: Tensor) -> Tensor:
    """The tensor with a contiguous last dimension: a copy where it is not."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] <= 1 else tensor.contiguous()


def as_real(tensor: Tensor | None) -> Tensor | None:
    """In the type that a way back is computed in: half precision in float32."""
    if tensor is None:
        return None
    return rows_of(tensor if tensor.dtype == torch.float64 else tensor.float())


def as_given(gradients: Sequence[Tensor | None], tensors: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    """The gradients in the types of what they belong to, None for what is not there."""
    return tuple(None if to is None else gradient.to(to.dtype) for gradient, to in zip(gradients, tensors))


def is_batched(gradient: Tensor) -> bool:
    """Whether it is one of several for torch.autograd.grad(…, is_grads_batched=True) or torch.func.vmap."""
    return torch._C._functorch.is_legacy_batchedtensor(gradient) or torch._C._are_functorch_transforms_active()


def check_gradients(function: str, *gradients: Tensor) -> None:
    if torch.is_grad_enabled():
        raise RuntimeError(f"heed.torch.{function} has no gradient of a gradient")
    if any(map(is_batched, gradients)):
        raise RuntimeError(f"heed.torch.{function} goes back for one output at a time: is_grads_batched is not supported")


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, options):
        ctx.save_for_backward(cos, sin)
        ctx.options = options
        return _heed.rotary_embedding(rows_of(x), cos, sin, **options)

    @staticmethod
    def backward(ctx, grad_out):
        check_gradients("rotary_embedding", grad_out)
        cos, sin = ctx.saved_tensors
        gradient = _heed.rotary_embedding_backward(as_real(grad_out), cos, sin, **ctx.options)
        return gradient.to(grad_out.dtype), None, None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, decay, beta, state, scale):
        ctx.save_for_backward(query, key, value, decay, beta, state)
        ctx.scale = scale
        operands = [rows_of(tensor) for tensor in (query, key, value)]
        return _heed.linear_attention(*operands, decay=decay, beta=beta, state=state, scale=scale)

    @staticmethod
    def backward(ctx, grad_out, grad_state):
        check_gradients("linear_attention", grad_out, grad_state)
        tensors = ctx.saved_tensors
        query, key, value, *extras = map(as_real, tensors)
        found = _heed.linear_attention_backward(
            as_real(grad_out), query, key, value, as_real(grad_state), tuple(extras), ctx.scale
        )
        return *as_given(found, tensors), None


class _FeatureMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, *options):
        ctx.save_for_backward(query, key, value)
        ctx.options = options
        names = ("feature_map", "causal", "normalized")
        operands = [rows_of(tensor) for tensor in (query, key, value)]
        return _heed.feature_map_attention(*operands, **dict(zip(names, options)))

    @staticmethod
    def backward(ctx, grad_out):
        check_gradients("feature_map_attention", grad_out)
        tensors = ctx.saved_tensors
        found = _heed.feature_map_attention_backward(*map(as_real, (grad_out, *tensors)), *ctx.options)
        return *as_given(found, tensors), None, None, None


# The options of attention that are a tensor with a gradient, in their order. Behind them come the tables of RELATIVE.
_LEARNED = AttentionGradients._fields[3 : -sum(map(len, RELATIVE.values()))]


def taken_apart(function: str, options: dict[str, Any]) -> tuple[list[Tensor | None], dict[str, Any]]:
    """The tensors that have gradients, in the order of theirs, and the options without them: of a keyword of RELATIVE
    its buckets are left."""
    rest = dict(options)
    learned = [rest.pop(name, None) for name in _LEARNED]
    for name, tables in RELATIVE.items():
        *given, rest[name] = relative_tuple(function, name, rest.get(name)) or (None,) * (len(tables) + 1)
        learned += given
    return learned, rest


def put_together(learned: Sequence[Tensor | None], rest: dict[str, Any]) -> dict[str, Any]:
    """The options of which these were taken."""
    options, tables = rest | dict(zip(_LEARNED, learned)), iter(learned[len(_LEARNED) :])
    for name, names in RELATIVE.items():
        given = [next(tables) for _ in names]
        if rest[name] is not None:
            options[name] = (*(None if table is None else rows_of(table) for table in given), rest[name])
    return options


class _Packed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, boundaries, options, *learned):
        operands = [rows_of(tensor) for tensor in (query, key, value)]
        given = put_together(learned, options)
        with_lse = query.dtype == torch.float32
        found = _relatives.attention_packed(*operands, *boundaries, return_lse=with_lse, **given)
        made = (*found, found.lse_low) if with_lse else (found, None, None)
        ctx.save_for_backward(query, key, value, *learned, *made)
        ctx.boundaries, ctx.options = boundaries, options
        return made[0]

    @staticmethod
    def backward(ctx, grad_out):
        check_gradients("attention_packed", grad_out)
        *tensors, out, lse, low = ctx.saved_tensors
        operands = [as_real(tensor) for tensor in tensors[:3]]
        given = put_together(tensors[3:], ctx.options)
        if lse is None:
            # The rounded output of half precision would cost the gradients most of their digits.
            made = _relatives.attention_packed(*operands, *ctx.boundaries, return_lse=True, **given)
            out, lse, low = (*made, made.lse_low)
        found = _relatives.attention_packed_backward(
            as_real(grad_out), *operands, out, lse, *ctx.boundaries, lse_low=low, **given
        )
        gradients = as_given(found, tensors)
        return *gradients[:3], None, None, *gradients[3:]


def rotary_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    pairing: str,
    position_ids: Tensor | None = None,
    rotary_dim: int | None = None,
    offset: int = 0,
    num_heads: int | None = None,
) -> Tensor:
    """heed.rotary_embedding() with a gradient for x; cos and sin receive none.

    >>> angles = torch.arange(128)[:, None] / 10000 ** (torch.arange(32) / 32)
    >>> x = torch.randn(1, 8, 128, 64, requires_grad=True)
    >>> heed.torch.rotary_embedding(x, angles.cos(), angles.sin(), pairing="halves").sum().backward()
    """
    if cos.requires_grad or sin.requires_grad:
        raise ValueError("rotary_embedding: cos or sin requires gradients, which they do not receive")
    options: dict[str, Any] = {
        "pairing": pairing,
        "position_ids": position_ids,
        "rotary_dim": rotary_dim,
        "offset": offset,
        "num_heads": num_heads,
    }
    return each_entry(lambda *own: _Rotary.apply(*own, options), x, cos, sin)


def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    state: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """heed.linear_attention() with gradients for all tensors, from those of the output and of the state.

    >>> x = torch.randn(1, 8, 128, 64, requires_grad=True)
    >>> out, state = heed.torch.linear_attention(x, x, x)
    >>> out.sum().backward()
    """
    return each_entry(lambda *own: _Linear.apply(*own, scale), query, key, value, decay, beta, state)


def feature_map_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    feature_map: str = "elu+1",
    causal: bool = False,
    normalized: bool = True,
) -> Tensor:
    """heed.feature_map_attention() with gradients for query, key and value.

    >>> x = torch.randn(1, 8, 128, 64, requires_grad=True)
    >>> heed.torch.feature_map_attention(x, x, x, causal=True).sum().backward()
    """
    options = (feature_map, causal, normalized)
    return each_entry(lambda *own: _FeatureMap.apply(*own, *options), query, key, value)


def attention_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor | Sequence[int],
    cu_seqlens_k: Tensor | Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """heed.attention_packed() with gradients for query, key, value and the tensors of the options: those that
    heed.AttentionGradients names.

    >>> tokens = torch.randn(7, 8, 64, requires_grad=True)
    >>> heed.torch.attention_packed(tokens, tokens, tokens, [0, 3, 7], causal=True).sum().backward()
    """
    learned, rest = taken_apart("attention_packed", options)
    boundaries = _relatives.both_boundaries(cu_seqlens_q, cu_seqlens_k)
    threads = {"num_threads": torch.get_num_threads()}
    return _Packed.apply(query, key, value, boundaries, rest | threads, *learned)
