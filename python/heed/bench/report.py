"""What was measured, as a table."""

from __future__ import annotations


def by_case(report: dict) -> dict[str, list[dict]]:
    """Results by the title of their case."""
    groups: dict[str, list[dict]] = {}
    for result in report["results"]:
        case = result["case"]
        title = f"{case['name']}, {case['threads']} thread{'s'[: case['threads'] > 1]}"
        groups.setdefault(title, []).append(result)
    return groups


def implementations(report: dict) -> list[str]:
    return list(dict.fromkeys(result["case"]["implementation"] for result in report["results"]))


def _times_faster(results: list[dict], number: str) -> str:
    """How many times faster than the best that is not heed heed is."""
    own = [result[number] for result in results if result["case"]["implementation"] == "heed"]
    others = [result[number] for result in results if not result["case"]["implementation"].startswith("heed")]
    return f"{min(others) / own[0]:.2f}×" if own and others else ""


def short(number: float, digits: int) -> str:
    """So many significant digits, never as a power of ten."""
    return f"{float(f'{number:.{digits}g}'):.12g}" if number >= 1e-4 else "0"


def _cell(result: dict) -> str:
    low, high = result["quartiles_ms"]
    return f"{short(result['median_ms'], 3)} ± {short((high - low) / 2, 1)}"


def rows(report: dict) -> list[list[str]]:
    """Cells: a row for each case, a column for each implementation, medians with half the distance of the quartiles."""
    names = implementations(report)
    made = [["ms a call", *names, "heed against the best other", "by best times"]]
    for title, results in by_case(report).items():
        at = {result["case"]["implementation"]: result for result in results}
        cells = [_cell(at[name]) if name in at else "" for name in names]
        made.append([title, *cells, _times_faster(results, "median_ms"), _times_faster(results, "best_ms")])
    return made


def markdown(cells: list[list[str]]) -> str:
    lines = [cells[0], ["---", *["---:"] * (len(cells[0]) - 1)], *cells[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def headline(report: dict) -> str:
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"{machine['processor']}, {machine['attention_target']}; {versions}"


def _notes(report: dict) -> list[str]:
    notes = []
    for result in report["results"]:
        case = result["case"]
        if result["busy_threads"] > 1.1 * case["threads"]:
            notes.append(f"! {result['busy_threads']:.1f} processors were busy: {case['implementation']}, {case['name']}")
    return notes


def text(report: dict) -> str:
    return "\n".join([markdown(rows(report)), "", headline(report), *_notes(report)])
