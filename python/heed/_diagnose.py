"""What the heads of a layer do, and what that usually means. Everything is measured by the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _heed
from ._layers import layers_of, without_gradient
from ._options import combined_mask, make_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options


class HeadDiagnostics(NamedTuple):
    """What one head does: means over the rows that count, those that see at least two keys and nothing that is not
    finite; 0 where there are none."""

    rows: int
    """how many count"""
    broken_rows: int
    """how many see NaN or infinity"""
    entropy: float
    """relative to that of equal weights: 0 where one key has everything, 1 where all have the same"""
    total: float
    """the sum of the weights: 1 unless a sink takes a share"""
    padding: float
    """the weight on keys that are padding"""
    first: float
    """the weight on key 0"""
    previous: float
    """the weight one place before the query"""
    same: float
    next: float
    offset_weight: float
    """the weight `offset` places behind the query, for the offset that gets most"""
    offset: int
    vertical: float
    """the share of all weight that one key receives, the one that receives most"""
    vertical_key: int


class Finding(NamedTuple):
    """One thing found in the heads of a layer."""

    kind: str
    """"first-token sink", for example"""
    heads: list[int]
    score: float
    """what was measured, the mean over the heads"""
    is_problem: bool
    """or else a pattern, which is good to know"""
    measured: str
    meaning: str
    advice: str

    def __str__(self) -> str:
        heads = ", ".join(map(str, self.heads))
        return f"{'!' if self.is_problem else '-'} {self.kind}: head {heads}: {self.measured}"


class LayerDiagnostics(NamedTuple):
    """What the heads of a layer do."""

    name: str
    heads: list[HeadDiagnostics]
    similarity: Any
    """[num_heads, num_heads]: the mean cosine of two heads' weights of a row"""
    mean_similarity: float
    """of two different heads; 0 of less than two"""
    findings: list[Finding]
    """problems first"""

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.heads)} heads", *(f"  {finding}" for finding in self.findings)]
        return "\n".join(lines if self.findings else [*lines, "  nothing was found"])


def _layer(name: str, found: tuple[Any, ...]) -> LayerDiagnostics:
    heads, *similarities, findings = found
    return LayerDiagnostics(name, [HeadDiagnostics(*x) for x in heads], *similarities, [Finding(*x) for x in findings])


def _lengths(name: str, given: Any) -> list[int]:
    if given is None:
        return []
    try:
        return [int(length) for length in given]
    except (TypeError, ValueError):
        raise ValueError(f"diagnose: {name} is {given!r}, expected a number for each batch entry") from None


def diagnose(
    query: Any,
    key: Any = None,
    *,
    q_lengths: Sequence[int] | None = None,
    kv_lengths: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Any:
    """Whether attention learned anything: what each head does, and what that usually means.

    query, key: as attention() takes them, with its options, in memory linear in the lengths; or weights [batch,
        num_heads, queries, keys], of which the first two may be missing, with the mask, causal or window that was used;
        or a tuple of such weights for each layer, or what a model of transformers returned
    q_lengths, kv_lengths: how many queries and keys of each batch entry are real; all when not given

    Returns a LayerDiagnostics; of several layers a list of these.

    >>> layer = heed.diagnose(x, x, causal=True)
    >>> round(layer.heads[0].total, 6), layer.similarity.shape
    (1.0, (8, 8))
    """
    lengths = (_lengths("q_lengths", q_lengths), _lengths("kv_lengths", kv_lengths))
    if key is not None:
        made = make_options("diagnose", **options)
        return _layer("attention", _heed.attention_diagnostics(query, key, made, *lengths))
    unknown = [name for name in options if name not in ("mask", "causal", "window")]
    if unknown:
        raise ValueError(f"diagnose: of weights {', '.join(unknown)} was given, expected mask, causal or window")
    given = (options.get("mask"), options.get("causal", False), options.get("window"))
    mask = combined_mask("diagnose", *given) or _heed.Mask()
    layers = layers_of("diagnose", query)
    if layers is None:
        return _layer("attention weights", _heed.weight_diagnostics(query, mask, *lengths))
    found = []
    for layer in layers:
        # The keys of cross-attention are the source's, and so are the queries of an encoder.
        own = (lengths[1], lengths[1]) if layer.queries_are_source else lengths
        found.append(_layer(layer.name, _heed.weight_diagnostics(without_gradient(layer.weights), mask, *own)))
    return found
