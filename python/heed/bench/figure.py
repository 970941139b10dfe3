"""What was measured, as a picture."""

from __future__ import annotations

from html import escape

from .report import by_case, implementations, short

COLORS = ("#1f6feb", "#d1495b", "#edae49", "#66a182", "#7c6a8e", "#3fb8af", "#a0522d", "#b5c334", "#e377c2", "#888888")
BAR, GAP, LABELS, WIDTH = 12, 14, 260, 860


def _text(x: float, y: float, text: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{escape(text)}</text>'


def figure(report: dict) -> str:
    """SVG: for each case a bar for each peer, as long as its median time relative to the slowest of the case; a thin line
    spans the quartiles."""
    groups = by_case(report)
    peers = implementations(report)
    color = {peer: COLORS[min(i, len(COLORS) - 1)] for i, peer in enumerate(peers)}
    parts, y = [], 40.0
    for i, peer in enumerate(peers):
        x = 16 + i * (WIDTH - 32) / len(peers)
        parts.append(f'<rect x="{x:.1f}" y="12" width="10" height="10" fill="{color[peer]}"/>')
        parts.append(_text(x + 15, 21, peer))
    for title, results in groups.items():
        scale = (WIDTH - LABELS - 110) / max(max(r["quartiles_ms"][1], r["median_ms"]) for r in results)
        middle = y + BAR * len(results) / 2 + 4
        parts.append(_text(LABELS - 10, middle, title, 'text-anchor="end"'))
        for result in results:
            length = result["median_ms"] * scale
            low, high = (value * scale + LABELS for value in result["quartiles_ms"])
            fill = color[result["case"]["implementation"]]
            parts.append(
                f'<rect x="{LABELS}" y="{y:.1f}" width="{length:.1f}" height="{BAR - 2}" fill="{fill}"/>'
            )
            line = y + BAR / 2 - 1
            parts.append(f'<path d="M{low:.1f} {line:.1f}H{high:.1f}" stroke="black"/>')
            parts.append(_text(max(LABELS + length, high) + 5, y + BAR - 3, f"{short(result['median_ms'], 3)} ms"))
            y += BAR
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    )
    return head + "\n".join(parts) + "</svg>\n"
