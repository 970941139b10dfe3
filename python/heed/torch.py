"""heed in place of PyTorch's attention, gradients and torch.compile included.

>>> import heed.torch
>>> out = heed.torch.scaled_dot_product_attention(query, key, value, is_causal=True)

or, without a change to the code that calls PyTorch's:

>>> with heed.torch.enabled():
...     model(tokens)
"""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING

import torch

from ._recorded import attention_packed, feature_map_attention, linear_attention, rotary_embedding, rows_of
from ._sdpa import compute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

__all__ = [
    "attention_packed",
    "disable",
    "enable",
    "enabled",
    "feature_map_attention",
    "linear_attention",
    "rotary_embedding",
    "scaled_dot_product_attention",
]

_pytorch_attention = torch.nn.functional.scaled_dot_product_attention
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _what_is_lacking(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    """What heed cannot do and PyTorch may."""
    for tensor in (query, key, value):
        if not tensor.is_cpu:
            return f"tensors on the device {tensor.device.type}"
        if tensor.is_nested or tensor.layout != torch.strided:
            return "nested and sparse tensors"
        if tensor.dtype not in _FLOATS:
            return f"tensors of {tensor.dtype}"
    return None


def _broadcasts(shape, target) -> bool:
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(target)))


def _is_misused(query, key, value, attn_mask, is_causal, enable_gqa) -> bool:
    """Whether PyTorch would complain, or would broadcast in a way of its own: it shall say so itself."""
    if min(query.dim(), key.dim(), value.dim()) < 2 or not query.dtype == key.dtype == value.dtype:
        return True
    if query.shape[-1] != key.shape[-1]:
        return True
    if attn_mask is not None:
        if attn_mask.dtype not in (torch.bool, torch.float32, query.dtype) or attn_mask.is_nested:
            return True
        if attn_mask.device != query.device or not _broadcasts(attn_mask.shape, (*query.shape[:-1], key.shape[-2])):
            return True
    if enable_gqa:
        if not query.dim() == key.dim() == value.dim() >= 3 or key.shape[-3] != value.shape[-3]:
            return True
        return key.shape[-3] == 0 or query.shape[-3] % key.shape[-3] != 0
    return False


def _to_rank_4(tensor: Tensor, leading: torch.Size) -> Tensor:
    """[…, length, dim] with the leading dimensions broadcast and made two."""
    if tensor.shape[:-2] != leading:
        tensor = tensor.expand(*leading, *tensor.shape[-2:])
    if len(leading) == 2:
        return tensor
    if len(leading) > 2:
        return tensor.flatten(0, -4)
    return tensor[None] if leading else tensor[None, None]


def _broadcast(tensors, enable_gqa: bool):
    """The leading dimensions of the result, and the tensors with these, made rank 4."""
    if enable_gqa:
        batch = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in tensors))
        leading = [torch.Size((*batch, tensor.shape[-3])) for tensor in tensors]
    else:
        leading = [torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors))] * 3
    return leading[0], *(_to_rank_4(tensor, dims) for tensor, dims in zip(tensors, leading))


def _mask_of_rank_4(attn_mask: Tensor, leading: torch.Size) -> Tensor:
    """A mask that broadcasts, aligned at the right, to the scores of rank 4."""
    if len(leading) <= 2 or attn_mask.dim() <= 3:
        return attn_mask
    return attn_mask.expand(*leading, *attn_mask.shape[-2:]).flatten(0, -4)


def _cast_as_autocast_does(tensors):
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return [
        tensor.to(dtype) if tensor is not None and tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
        for tensor in tensors
    ]


_told: set[str] = set()


def _tell_once(reason: str) -> None:
    if reason not in _told:
        _told.add(reason)
        warnings.warn(f"heed does not compute attention of {reason}: PyTorch does", stacklevel=3)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, computed by heed.

    query: [..., q_len, head_dim], key: [..., kv_len, head_dim], value: [..., kv_len, value_dim]
    attn_mask: booleans, true = may attend, or numbers added to the scores; broadcasts to [..., q_len, kv_len]
    dropout_p: applied whenever it is not 0; which weights fall is decided by PyTorch's generator
    is_causal: query i sees the keys up to i, both counted from the first, of those that attn_mask lets it see
    scale: 1/√head_dim when not given
    enable_gqa: dimension -3 of query may be a multiple of that of key and value

    Gradients reach query, key, value and a float attn_mask, once: a gradient of a gradient is not to be had. Those of
    half-precision tensors are computed in float32. A query that sees no key gets 0, and what it does not see may be NaN.
    Tensors that are not on the CPU, nested or sparse are left to PyTorch, and so is what PyTorch refuses.

    >>> x = torch.randn(2, 8, 128, 64, requires_grad=True)
    >>> heed.torch.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
    """
    given = (query, key, value)
    lacking = _what_is_lacking(*given)
    if lacking is not None:
        _tell_once(lacking)
    query, key, value, mask = _cast_as_autocast_does((*given, attn_mask))
    if lacking is not None or _is_misused(query, key, value, mask, is_causal, enable_gqa):
        return _pytorch_attention(
            *given, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
        )
    leading = query.shape[:-2]
    if not (query.dim() == 4 and leading == key.shape[:-2] == value.shape[:-2]):
        leading, query, key, value = _broadcast((query, key, value), enable_gqa)
    tensors = (rows_of(query), rows_of(key), rows_of(value))
    if mask is not None:
        mask = _mask_of_rank_4(mask, leading)
    # Drawn where PyTorch draws, so that torch.manual_seed() decides.
    seed = torch.randint(2**63 - 1, (), dtype=torch.int64) if dropout_p > 0 else None
    out = compute(*tensors, mask, seed, float(dropout_p), is_causal, scale)
    return out if len(leading) == 2 else out.view(*leading, *out.shape[-2:])


# --- in place of PyTorch's ----------------------------------------------------------------------------------------------

_fastpath_before: list[bool] = []


def enable() -> None:
    """Makes torch.nn.functional.scaled_dot_product_attention heed's, for code that calls it by this name, PyTorch's own
    modules among it. Their fast path for inference, which does not call it, is switched off meanwhile."""
    if torch.nn.functional.scaled_dot_product_attention is scaled_dot_product_attention:
        return
    _fastpath_before.append(torch.backends.mha.get_fastpath_enabled())
    torch.backends.mha.set_fastpath_enabled(False)
    torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention


def disable() -> None:
    """Undoes enable()."""
    if torch.nn.functional.scaled_dot_product_attention is scaled_dot_product_attention:
        torch.nn.functional.scaled_dot_product_attention = _pytorch_attention
        torch.backends.mha.set_fastpath_enabled(_fastpath_before.pop())


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """enable() for the length of a with statement.

    >>> with heed.torch.enabled():
    ...     out = encoder(tokens)
    """
    was_enabled = torch.nn.functional.scaled_dot_product_attention is scaled_dot_product_attention
    enable()
    try:
        yield
    finally:
        if not was_enabled:
            disable()
