"""Ways back through the relatives of attention, and attention of packed sequences. Everything is computed by the
library."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _heed
from ._operator import AttentionGradients, AttentionOutput
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options


class LinearAttentionGradients(NamedTuple):
    """The derivatives of a loss with respect to what linear_attention was given, each in the shape of the thing it
    belongs to; None for decay and beta that were not given. That of the state is that of the state before the first
    token, given or not."""

    query: Any
    key: Any
    value: Any
    decay: Any
    beta: Any
    state: Any


class FeatureMapGradients(NamedTuple):
    """The derivatives of a loss with respect to what feature_map_attention was given."""

    query: Any
    key: Any
    value: Any


def linear_attention_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    *,
    grad_state: Any = None,
    decay: Any = None,
    beta: Any = None,
    state: Any = None,
    scale: float | None = None,
) -> LinearAttentionGradients:
    """The gradients of linear_attention(query, key, value, …), given grad_out [batch, num_heads, length, value_dim] and,
    where the state after the last token matters, grad_state [batch, num_states, head_dim, value_dim], the derivatives
    of the loss with respect to out and that state. float32 or float64.

    >>> out, state = heed.linear_attention(x, x, x)
    >>> heed.linear_attention_backward(numpy.ones_like(out), x, x, x).state.shape
    (1, 8, 64, 64)
    """
    extras = (decay, beta, state)
    found = _heed.linear_attention_backward(grad_out, query, key, value, grad_state, extras, scale)
    return LinearAttentionGradients(*found)


def feature_map_attention_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    *,
    feature_map: str = "elu+1",
    causal: bool = False,
    normalized: bool = True,
) -> FeatureMapGradients:
    """The gradients of feature_map_attention(query, key, value, …), given grad_out [batch, num_heads, q_len, value_dim],
    the derivative of the loss with respect to the result. In time linear in the lengths; float32 or float64.

    >>> heed.feature_map_attention_backward(x, x, x, x, causal=True).key.shape
    (1, 8, 128, 64)
    """
    found = _heed.feature_map_attention_backward(grad_out, query, key, value, feature_map, causal, normalized)
    return FeatureMapGradients(*found)


def _boundaries(name: str, cu_seqlens: Any) -> list[int]:
    given = cu_seqlens.tolist() if hasattr(cu_seqlens, "tolist") else cu_seqlens
    try:
        return [operator.index(boundary) for boundary in given]
    except TypeError:
        raise ValueError(f"attention_packed: {name} is {given!r}, expected a list or array of integers") from None


def both_boundaries(cu_seqlens_q: Any, cu_seqlens_k: Any) -> tuple[list[int], list[int]]:
    queries = _boundaries("cu_seqlens_q", cu_seqlens_q)
    return queries, queries if cu_seqlens_k is None else _boundaries("cu_seqlens_k", cu_seqlens_k)


def attention_packed(
    query: Any,
    key: Any,
    value: Any,
    cu_seqlens_q: Sequence[int],
    cu_seqlens_k: Sequence[int] | None = None,
    *,
    return_lse: bool = False,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """attention() of several sequences of different lengths, one behind the other in one array, each for itself and
    with the bits that it alone would get.

    query: [total_q_len, num_heads, head_dim]
    key:   [total_kv_len, num_kv_heads, head_dim]
    value: [total_kv_len, num_kv_heads, value_dim]
    cu_seqlens_q: sequence i is the queries cu_seqlens_q[i] <= t < cu_seqlens_q[i + 1]; a list or an array
    cu_seqlens_k: the same of keys and values; where not given, they are those of the queries

    The options are those of attention(); masks are made for each length, positions start at 0 in every sequence, and a
    bias must broadcast to every sequence's scores.

    Returns out [total_q_len, num_heads, value_dim] and, with return_lse (float32 alone), lse [num_heads, total_q_len] in
    an AttentionOutput.

    >>> tokens = numpy.random.randn(7, 8, 64).astype("float32")
    >>> heed.attention_packed(tokens, tokens, tokens, [0, 3, 7], causal=True).shape
    (7, 8, 64)
    """
    boundaries = both_boundaries(cu_seqlens_q, cu_seqlens_k)
    arguments = (query, key, value, *boundaries, make_options("attention_packed", **options), num_threads)
    if return_lse:
        return AttentionOutput(*_heed.attention_packed_with_lse(*arguments))
    return _heed.attention_packed(*arguments)


def attention_packed_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    cu_seqlens_q: Sequence[int],
    cu_seqlens_k: Sequence[int] | None = None,
    *,
    lse_low: Any = None,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> AttentionGradients:
    """The gradients of attention_packed(query, key, value, cu_seqlens_q, cu_seqlens_k, **options), given grad_out
    [total_q_len, num_heads, value_dim], the derivative of the loss with respect to out, and what attention_packed(…,
    return_lse=True) returned. float32; the options are those of attention() but for score_mod. Without lse_low all
    weights of a row are off by |lse| · 2⁻²⁴ of themselves.

    >>> tokens = numpy.random.randn(7, 8, 64).astype("float32")
    >>> made = heed.attention_packed(tokens, tokens, tokens, [0, 3, 7], return_lse=True)
    >>> operands = (made.out, tokens, tokens, tokens, *made)
    >>> heed.attention_packed_backward(*operands, [0, 3, 7], lse_low=made.lse_low).query.shape
    (7, 8, 64)
    """
    boundaries = both_boundaries(cu_seqlens_q, cu_seqlens_k)
    made = make_options("attention_packed_backward", **options)
    forward = (out, lse, lse_low, None)
    found = _heed.attention_packed_backward(grad_out, query, key, value, forward, boundaries, made, num_threads)
    return AttentionGradients(*found)
