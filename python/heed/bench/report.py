"""A report as a table, and as a figure."""

from __future__ import annotations

from html import escape

COLORS = ("#1f6feb", "#d1495b", "#edae49", "#66a182", "#7c6a8e", "#888888")
BAR, GAP, LABELS, WIDTH = 12, 14, 260, 860


def _by_case(report: dict) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = {}
    for result in report["results"]:
        case = result["case"]
        title = f"{case['name']}, {case['threads']} thread{'s'[: case['threads'] > 1]}"
        groups.setdefault(title, []).append(result)
    return groups


def _times_faster(results: list[dict]) -> dict[str, float]:
    """How many times faster than each peer heed is."""
    own = next((result["median_ms"] for result in results if result["peer"] == "heed"), None)
    if own is None:
        return {}
    return {result["peer"]: result["median_ms"] / own for result in results if result["peer"] != "heed"}


def _short(number: float, digits: int) -> str:
    """So many significant digits, never as a power of ten."""
    return f"{float(f'{number:.{digits}g}'):.12g}" if number >= 1e-4 else "0"


def table(report: dict) -> str:
    """Markdown: a row for each case, a column for each peer, medians with half the distance of the quartiles."""
    peers = list(dict.fromkeys(result["peer"] for result in report["results"]))
    rows = [["ms a call", *peers, "heed against the best other"]]
    for title, results in _by_case(report).items():
        row = [title]
        at = {result["peer"]: result for result in results}
        for peer in peers:
            if peer not in at:
                row.append("")
                continue
            low, high = at[peer]["quartiles_ms"]
            row.append(f"{_short(at[peer]['median_ms'], 3)} ± {_short((high - low) / 2, 1)}")
        faster = _times_faster(results)
        row.append(f"{min(faster.values()):.2f}×" if faster else "")
        rows.append(row)
    rows.insert(1, ["---", *["---:"] * (len(rows[0]) - 1)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _text(x: float, y: float, text: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{escape(text)}</text>'


def figure(report: dict) -> str:
    """SVG: for each case a bar for each peer, as long as its median time relative to the slowest of the case; a thin line
    spans the quartiles."""
    groups = _by_case(report)
    peers = list(dict.fromkeys(result["peer"] for result in report["results"]))
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
            parts.append(
                f'<rect x="{LABELS}" y="{y:.1f}" width="{length:.1f}" height="{BAR - 2}" fill="{color[result["peer"]]}"/>'
            )
            line = y + BAR / 2 - 1
            parts.append(f'<path d="M{low:.1f} {line:.1f}H{high:.1f}" stroke="black"/>')
            parts.append(_text(max(LABELS + length, high) + 5, y + BAR - 3, f"{_short(result['median_ms'], 3)} ms"))
            y += BAR
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    )
    return head + "\n".join(parts) + "</svg>\n"
