"""The keywords of attention() as the options of the library."""

from __future__ import annotations

import difflib
import operator
from typing import TYPE_CHECKING, Any, TypedDict

import numpy

from . import _heed
from ._explained import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Options(TypedDict, total=False):
    """The keywords that say what attention computes: see attention()."""

    mask: _heed.Mask | str | None
    causal: bool | str
    window: int | tuple[int | None, int | None] | None
    scale: float | None
    softcap: float
    score_mod: Callable[..., Any] | None
    bias: Any
    alibi_slopes: Any
    relative_bias: tuple[Any, _heed.RelativeBuckets] | None
    relative_vectors: tuple[Any, Any, _heed.RelativeBuckets] | None
    sinks: Any
    dropout: float
    seed: int
    query_offset: int | Sequence[int]
    precision: str


_ALIGNMENTS = ("square", "top_left", "bottom_right")


def _meant(causal: Any) -> str:
    """The end of a message: what a misspelt causal= was most likely to be."""
    if not isinstance(causal, str):
        return ""
    close = difflib.get_close_matches(causal.replace("-", "_"), (*_ALIGNMENTS, "causal"), 1)
    return "" if not close else f"; did you mean {'True' if close[0] == 'causal' else repr(close[0])}?"


def _alignment(function: str, causal: Any) -> str | None:
    """How causal= aligns queries and keys; None where it asks for nothing."""
    if isinstance(causal, str) and causal in _ALIGNMENTS:
        return causal
    if causal is None or isinstance(causal, (bool, numpy.bool_)):
        return "square" if causal else None
    # 0 and 1 would be positions here, and truth values to most readers.
    raise ValueError(
        f'{function}: causal is {causal!r}, expected True, False, "top_left" or "bottom_right"; mask=heed.causal(n) '
        f"puts query 0 at key n{_meant(causal)}"
    )


def _side(function: str, window: Any, side: Any) -> int | None:
    """How many keys a window has on a side; None: no bound."""
    if side is None:
        return None
    try:
        keys = -1 if isinstance(side, (bool, numpy.bool_)) else operator.index(side)
    except TypeError:
        keys = -1
    if keys < 0:
        raise ValueError(
            f"{function}: window is {window!r}, expected (left, right) or one number for both sides: numbers of keys "
            "from 0 on, or None for no bound"
        )
    return keys


def _sides(function: str, window: Any) -> list[int | None]:
    pair = window if isinstance(window, (tuple, list)) and len(window) == 2 else (window, window)
    return [_side(function, window, side) for side in pair]


def combined_mask(function, mask, causal, window):
    """What mask, causal and window say together."""
    if isinstance(mask, str):
        mask = _heed.parse_mask(mask)
    if mask is not None and not isinstance(mask, _heed.Mask):
        if callable(mask):
            raise ValueError(f"{function}: mask is a function, expected a heed.Mask: heed.where(function) makes one")
        raise ValueError(
            f"{function}: mask is a {type(mask).__name__}, expected a heed.Mask or a text that names one; heed.allow(array), heed.block(array) "
            "and heed.additive(array) make one of an array and say what its elements mean"
        )
    parts = [] if mask is None else [mask]
    alignment = _alignment(function, causal)
    if alignment is not None:
        parts.append(_heed.causal(alignment))
    if window is not None:
        parts.append(_heed.sliding_window(*_sides(function, window), alignment or "square"))
    if not parts:
        return None
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part
    return combined


# The keywords that give learned tables of relative positions, and what stands before the buckets in each.
RELATIVE = {"relative_bias": ("table",), "relative_vectors": ("key", "value")}


def relative_tuple(function: str, name: str, given: Any) -> tuple[Any, ...] | None:
    """What such a keyword gives, as a tuple."""
    if given is None:
        return None
    tables, is_tuple = RELATIVE[name], isinstance(given, (tuple, list))
    if is_tuple and len(given) == len(tables) + 1 and isinstance(given[-1], _heed.RelativeBuckets):
        return tuple(given)
    found = f"({', '.join(type(part).__name__ for part in given)})" if is_tuple else f"a {type(given).__name__}"
    expected = ", ".join((*tables, "buckets"))
    raise ValueError(f"{function}: {name} is {found}, expected ({expected}), the last one a heed.RelativeBuckets")


def make_options(
    function: str,
    *,
    mask=None,
    causal=False,
    window=None,
    scale=None,
    softcap=0.0,
    score_mod=None,
    bias=None,
    alibi_slopes=None,
    relative_bias=None,
    relative_vectors=None,
    sinks=None,
    dropout=0.0,
    seed=0,
    query_offset=0,
    precision="fast",
) -> _heed.Options:
    """The options of attention() for a function of this name."""
    given = dict(
        mask=combined_mask(function, mask, causal, window),
        score_mod=score_mod,
        learned=dict(
            alibi_slopes=alibi_slopes,
            bias=bias,
            sinks=sinks,
            relative_bias=relative_tuple(function, "relative_bias", relative_bias),
            relative_vectors=relative_tuple(function, "relative_vectors", relative_vectors),
        ),
        scale=scale,
        softcap=softcap,
        dropout=dropout,
        seed=seed,
        query_offset=query_offset,
        precision=precision,
    )
    try:
        return _heed.Options(function, **given)
    except TypeError as error:
        raise explain(function, _heed.Options.__init__, (function,), given) or error from None
