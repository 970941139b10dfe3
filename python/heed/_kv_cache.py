"""Attention over cached keys and values. Everything is computed by the library."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from . import _heed
from ._operator import AttentionOutput
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options


def _boundaries(cu_seqlens: Any) -> list[int]:
    given = cu_seqlens.tolist() if hasattr(cu_seqlens, "tolist") else cu_seqlens
    try:
        return [operator.index(boundary) for boundary in given]
    except TypeError:
        raise ValueError(f"attend: cu_seqlens is {given!r}, expected a list or array of integers") from None


def attend(
    query: Any,
    sequences: _heed.KvSequence | Sequence[_heed.KvSequence],
    cu_seqlens: Sequence[int] | None = None,
    *,
    return_lse: bool = False,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """Attention of the last positions of a sequence, which were appended before, over all of its positions.

    query: [1, num_heads, n, head_dim], of the last n positions; dimensions in front may be left out. float32, float16 or
           bfloat16
    sequences: a KvSequence; or several of one pool, in a list
    cu_seqlens: with a list, sequence i has the queries cu_seqlens[i] <= t < cu_seqlens[i + 1] of
                query [total_q_len, num_heads, head_dim]

    The options are those of attention(), as for these queries at the end of as many keys as the sequence is long:
    query_offset is not given. With several sequences they apply to each for itself.

    Returns out [1, num_heads, n, value_dim] or [total_q_len, num_heads, value_dim], an array of the query's kind; with
    return_lse also lse [1, num_heads, n] or [num_heads, total_q_len], in an AttentionOutput. With float32 storage the bits are those of one
    attention() over all tokens.

    >>> sequence = heed.KvSequence(heed.KvPool(num_kv_heads=8, head_dim=64))
    >>> outs = []
    >>> for t in range(x.shape[2]):
    ...     token = x[:, :, t : t + 1]
    ...     sequence.append(token, token)
    ...     outs.append(heed.attend(token, sequence, causal=True))
    >>> bool((numpy.concatenate(outs, axis=2) == heed.attention(x, x, x, causal=True)).all())
    True
    """
    made = make_options("attend", **options)
    if isinstance(sequences, _heed.KvSequence):
        if cu_seqlens is not None:
            raise ValueError("attend: cu_seqlens goes with a list of sequences")
        found = _heed.attend(query, sequences, made, return_lse, num_threads)
    elif cu_seqlens is None:
        raise ValueError("attend: a list of sequences needs cu_seqlens, where the queries of each begin and end")
    else:
        boundaries = _boundaries(cu_seqlens)
        found = _heed.attend_to_all(query, list(sequences), boundaries, made, return_lse, num_threads)
    return AttentionOutput(*found) if return_lse else found
