"""Attention as a page for a notebook. The page is the library's explorer."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any

from . import _heed
from ._layers import Layer, layers_of, without_gradient
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options


class Page:
    """A page that a notebook shows by itself, in a frame; save() writes it as an HTML file that needs nothing else."""

    def __init__(self, html: str, height: int = 720) -> None:
        self.html = html
        self.height = height

    def _repr_html_(self) -> str:
        # Without allow-same-origin the page cannot reach the notebook around it.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" title="attention" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to an HTML file."""
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(self.html)


def _names(argument: str, tokens: Sequence[str] | None) -> list[str]:
    names = [] if tokens is None else list(tokens)
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"show: {argument}[{index}] is {name!r}, expected a str")
    return names


def _tab(layer: Layer, tokens: list[str], key_tokens: list[str]) -> tuple[Any, ...]:
    """Of a layer: its title, its weights, and the names of its queries and keys. Where there are two texts, tokens are
    those of the target and key_tokens those of the source."""
    weights = without_gradient(layer.weights)
    if layer.queries_are_source:
        return layer.name, weights, key_tokens, []
    return layer.name, weights, tokens, key_tokens if layer.is_cross else []


def show(
    query: Any,
    key: Any = None,
    *,
    batch: int = 0,
    head: int | None = None,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Page:
    """What attends to what, as a page to look around in: a matrix, arcs, single rows and their numbers.

    query, key: as attention() takes them, with its options; or weights [queries, keys], [num_heads, queries, keys] or
        [batch, num_heads, queries, keys]; or a tuple of such weights, one for each layer, as a model of transformers
        returns it as `attentions`, or all that such a model returned: a tab for each layer. Of an encoder and a
        decoder, tokens are the decoder's and key_tokens the encoder's
    batch, head: what is shown; all heads when head is not given
    tokens, key_tokens: names of the queries, which are also those of as many keys, and of the keys

    Queries that are not the keys themselves, because there are more or fewer of them or key_tokens are given, stand
    behind the keys in one sequence. A notebook displays what is returned; save("page.html") writes it. The page has all
    weights in it, or query and key where these with mask and scale say everything: it is for sequences that fit on a
    screen.

    >>> page = heed.show(x[:, :, :16], x[:, :, :16], causal=True)
    >>> page.save("page.html")  # doctest: +SKIP
    """
    names = (_names("tokens", tokens), _names("key_tokens", key_tokens))
    if key is None:
        if options:
            raise ValueError(f"show: weights are shown as they are, but {', '.join(options)} was given")
        layers = layers_of("show", query)
        if layers is None:
            tabs = [("attention weights", query, *names)]
        else:
            tabs = [_tab(layer, *names) for layer in layers]
        return Page(_heed.weights_page(tabs, batch, head))
    return Page(_heed.attention_page(query, key, batch, head, names, make_options("show", **options)))
