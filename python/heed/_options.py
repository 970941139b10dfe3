"""The keywords of attention() as the options of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from . import _heed

if TYPE_CHECKING:
    from collections.abc import Callable


class Options(TypedDict, total=False):
    """The keywords that say what attention computes: see attention()."""

    mask: _heed.Mask | None
    causal: bool | str | int
    window: int | tuple[int | None, int | None] | None
    scale: float | None
    softcap: float
    score_mod: Callable[..., Any] | None
    bias: Any
    alibi_slopes: Any
    sinks: Any
    dropout: float
    seed: int
    query_offset: int


def _combined_mask(mask, causal, window):
    """What mask, causal and window say together."""
    if mask is not None and not isinstance(mask, _heed.Mask):
        raise ValueError(
            f"attention: mask is a {type(mask).__name__}, expected a heed.Mask; heed.allow(array), heed.block(array) "
            "and heed.additive(array) make one of an array and say what its elements mean"
        )
    parts = [] if mask is None else [mask]
    alignment = "square" if isinstance(causal, bool) else causal
    # An alignment, be it position 0, is not False.
    if causal is not False:
        parts.append(_heed.causal(alignment))
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        parts.append(_heed.sliding_window(left, right, alignment))
    if not parts:
        return None
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part
    return combined


def make_options(
    *,
    mask=None,
    causal=False,
    window=None,
    scale=None,
    softcap=0.0,
    score_mod=None,
    bias=None,
    alibi_slopes=None,
    sinks=None,
    dropout=0.0,
    seed=0,
    query_offset=0,
) -> _heed.Options:
    """See attention()."""
    return _heed.Options(
        mask=_combined_mask(mask, causal, window),
        score_mod=score_mod,
        alibi_slopes=alibi_slopes,
        bias=bias,
        sinks=sinks,
        scale=scale,
        softcap=softcap,
        dropout=dropout,
        seed=seed,
        query_offset=query_offset,
    )
