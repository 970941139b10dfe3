"""Attention weights as a picture for a notebook."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from html import escape
from typing import TYPE_CHECKING, Any

from . import _heed
from ._operator import attention_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options

# A label for every row needs this much room, in pixels.
_READABLE_CELL = 14
_LARGEST_SIDE = 480


def _png(pixels: Any) -> bytes:
    """uint8 [height, width, 3] as a PNG file."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Picture:
    """A picture that a notebook shows by itself; save() writes it as SVG."""

    def __init__(self, svg: str) -> None:
        self._svg = svg

    def _repr_svg_(self) -> str:
        return self._svg

    def _repr_html_(self) -> str:
        return self._svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to an SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._svg)


def _labels(names: Sequence[str] | None, count: int, what: str) -> list[str]:
    if names is None:
        return []
    names = list(names)
    if len(names) != count:
        raise ValueError(f"show: there are {len(names)} tokens, but {count} {what}")
    return names


def _svg(pixels: Any, rows: list[str], columns: list[str], title: str) -> str:
    height, width, _ = pixels.shape
    cell = max(1.0, min(28.0, _LARGEST_SIDE / max(height, width, 1)))
    is_readable = cell >= _READABLE_CELL
    left = 12 + (7 * max(map(len, rows), default=0) if is_readable else 0)
    top = 28 + (7 * max(map(len, columns), default=0) if is_readable else 0)
    image_width, image_height = cell * width, cell * height
    image = base64.b64encode(_png(pixels)).decode()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + image_width + 12:.0f}" '
        f'height="{top + image_height + 12:.0f}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="18">{escape(title)}</text>',
        f'<image x="{left}" y="{top}" width="{image_width:.1f}" height="{image_height:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" href="data:image/png;base64,{image}"/>',
    ]
    if is_readable:
        for i, name in enumerate(rows):
            y = top + cell * (i + 0.5) + 4
            parts.append(f'<text x="{left - 5}" y="{y:.1f}" text-anchor="end">{escape(name)}</text>')
        for i, name in enumerate(columns):
            x = left + cell * (i + 0.5) + 4
            turned = f'transform="translate({x:.1f} {top - 5}) rotate(-90)"'
            parts.append(f"<text {turned}>{escape(name)}</text>")
    return "\n".join(parts) + "</svg>"


def show(
    query: Any,
    key: Any = None,
    *,
    batch: int = 0,
    head: int = 0,
    tokens: Sequence[str] | None = None,
    key_tokens: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Picture:
    """The weights of one head as a picture: queries are rows, keys columns, bright is much.

    query, key: as attention() takes them, with its options; or weights [queries, keys] alone
    batch, head: which head is shown
    tokens: names of the queries, and of the keys where key_tokens are not given

    A notebook displays what is returned; save("weights.svg") writes it. All weights of the head are computed, so this
    is for sequences that fit on a screen.

    >>> heed.show(x, x, head=3, causal=True).save("weights.svg")  # doctest: +SKIP
    """
    title = "attention weights"
    weights = query
    if key is not None:
        title = f"attention weights of head {head}"
        rows = [(batch, head, i) for i in range(query.shape[-2])]
        weights = attention_weights(query, key, rows, **options)
    pixels = _heed.colors_of(weights)
    names = _labels(tokens, pixels.shape[0], "queries")
    key_names = _labels(tokens if key_tokens is None else key_tokens, pixels.shape[1], "keys")
    return Picture(_svg(pixels, names, key_names, title))
