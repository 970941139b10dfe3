"""Pictures of attention weights and masks, drawn by the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from . import _heed
from ._layers import layers_of, without_gradient

if TYPE_CHECKING:
    from collections.abc import Sequence


def _entry(weights: Any, batch: int, head: int | None) -> Any:
    """Of weights [batch, num_heads, queries, keys], of which the first two may be missing, what is drawn."""
    rank = len(weights.shape)
    if rank not in (2, 3, 4):
        raise ValueError(
            f"figure: weights has shape {list(weights.shape)}, expected [queries, keys], [num_heads, queries, keys] or "
            "[batch, num_heads, queries, keys]"
        )
    if rank == 4:
        if not 0 <= batch < weights.shape[0]:
            raise ValueError(f"figure: batch is {batch}, of {weights.shape[0]}")
        weights = weights[batch]
    if head is None or rank == 2:
        return weights
    if not 0 <= head < weights.shape[0]:
        raise ValueError(f"figure: head is {head}, of {weights.shape[0]}")
    return weights[head]


def _stacked(layers: list[Any]) -> Any:
    arrays = [layer.float().numpy() if hasattr(layer, "detach") else numpy.asarray(layer) for layer in layers]
    if len({array.shape for array in arrays}) > 1:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise ValueError(f"figure: the layers have shapes {shapes}, expected one for all; draw one layer at a time")
    return numpy.stack(arrays)


def figure(
    weights: Any,
    *,
    batch: int = 0,
    head: int | None = None,
    tokens: Sequence[str] = (),
    key_tokens: Sequence[str] | None = None,
    panels: Sequence[str] = (),
    title: str = "",
    note: str = "",
    scale: str = "linear",
    color_map: str = "viridis",
    hide_first: bool = False,
    dark: bool = False,
) -> _heed.Figure:
    """A picture of attention weights: a row is a query, a column a key, a panel a head.

    weights: [queries, keys], [num_heads, queries, keys] or [batch, num_heads, queries, keys]; a tuple of these, one for
        each layer, or what a model of transformers returned, for small pictures of all layers and heads; or booleans
        [queries, keys] or [masks, queries, keys], such as mask.allow(shape), true = visible
    batch, head: what is drawn; all heads when head is not given
    tokens, key_tokens: names of the queries, which are also those of as many keys, and of the keys
    panels: the titles of the panels
    scale: colours by weight ("linear"), by its logarithm ("log"), or by its share of the row's largest ("per-row")
    color_map: "viridis", "blues", "ylorrd", "greys" or "rdbu"
    hide_first: leaves out key 0, which often draws most of the attention
    dark: on a dark ground

    A notebook shows what is returned; save("heads.svg") writes it, as .svg, .png or .pdf; render("png") gives the bytes.
    RuntimeError where the package was built without cairo and pango, as wheels are.

    >>> heed.figure(weights, tokens=["the", "cat", "sat"]).save("heads.svg")  # doctest: +SKIP
    """
    style = (title, note, scale, color_map, hide_first, dark)
    queries = [str(token) for token in tokens]
    layers = layers_of("figure", weights)
    shown = _entry(weights, batch, head) if layers is None else _stacked([_entry(without_gradient(x.weights), batch, head) for x in layers])
    if layers is not None and head is not None:
        shown = shown[:, None]
    is_square = shown.shape[-1] == shown.shape[-2]
    keys = (queries if is_square else []) if key_tokens is None else [str(token) for token in key_tokens]
    kind = str(getattr(shown, "dtype", ""))
    draw = _heed.visible_figure if kind in ("bool", "torch.bool") else _heed.weights_figure
    return draw(shown, queries, keys, list(panels), style)
