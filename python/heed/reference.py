"""The textbook version of attention, in plain loops, with every intermediate step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _heed
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Unpack

    from ._options import Options


class Result(NamedTuple):
    """What attention computed; None for the steps that were not asked for. Each step is [batch, num_heads, q_len,
    kv_len]."""

    out: Any
    """[batch, num_heads, q_len, value_dim]"""
    lse: Any
    """[batch, num_heads, q_len]"""
    scores: Any
    """scale · query · key"""
    capped: Any
    """after the softcap"""
    modified: Any
    """after score_mod, ALiBi, bias and relative positions"""
    masked: Any
    """after the mask: -inf where a key is not visible"""
    weights: Any
    """after the softmax"""
    dropped: Any
    """after dropout: what the values are multiplied by"""


def attention(query: Any, key: Any, value: Any, *, keep: Sequence[str] = (), **options: Unpack[Options]) -> Result:
    """heed.attention() step by step, float32 or float64. keep names the steps wanted: "scores", "capped", "modified",
    "masked", "weights", "dropped".

    >>> import heed.reference, numpy
    >>> x = numpy.eye(3)
    >>> heed.reference.attention(x, x, x, causal=True, keep=["weights"]).weights.round(2)
    array([[1.  , 0.  , 0.  ],
           [0.36, 0.64, 0.  ],
           [0.26, 0.26, 0.47]])
    """
    return Result(*_heed.reference_attention(query, key, value, list(keep), make_options("reference.attention", **options)))


def linear_attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    decay: Any = None,
    beta: Any = None,
    state: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """heed.linear_attention() token by token, float32 or float64."""
    return _heed.reference_linear_attention(query, key, value, decay=decay, beta=beta, state=state, scale=scale)


def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    score_mod: Callable[[Any], Any] | None = None,
    prob_mod: Callable[[Any], Any] | None = None,
    scale: float | None = None,
) -> Any:
    """Attention whose scores and weights pass through functions of whole matrices, NumPy arrays [batch, num_heads,
    q_len, kv_len], float32 or float64: prob_mod(softmax(score_mod(scale * query @ key.T))) @ value.

    >>> import heed.reference, numpy
    >>> x = numpy.eye(3)[None, None]
    >>> heed.reference.flex_attention(x, x, x, prob_mod=lambda weights: 2 * weights).sum(-1)
    array([[[2., 2., 2.]]])
    """
    return _heed.reference_flex_attention(query, key, value, score_mod=score_mod, prob_mod=prob_mod, scale=scale)
