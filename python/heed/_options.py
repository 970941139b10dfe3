"""The keywords of attention() as the options of the library."""

from . import _heed


def _bound(side):
    return None if side is None else int(side)


def _mask(mask, causal, window):
    """What mask, causal and window say together."""
    alignment = "square"
    if causal is not False and causal is not None:
        alignment = "square" if causal is True else causal
        triangle = _heed.causal(alignment)
        mask = triangle if mask is None else mask & triangle
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        band = _heed.sliding_window(_bound(left), _bound(right), alignment)
        mask = band if mask is None else mask & band
    return mask


def make_options(
    *,
    mask=None,
    causal=False,
    window=None,
    scale=None,
    softcap=0.0,
    sinks=None,
    bias=None,
    alibi_slopes=None,
    dropout=0.0,
    seed=0,
    query_offset=0,
):
    """See attention()."""
    return _heed.Options(
        mask=_mask(mask, causal, window),
        alibi_slopes=alibi_slopes,
        bias=bias,
        sinks=sinks,
        scale=scale,
        softcap=softcap,
        dropout=dropout,
        seed=seed,
        query_offset=query_offset,
    )
