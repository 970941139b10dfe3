"""The Python in the documentation runs and prints what it says."""

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
PROGRAMS = [
    pytest.param(code, printed, id=f"{page.stem}-{number}")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for number, (code, printed) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
]


@pytest.mark.parametrize(("code", "printed"), PROGRAMS)
def test_program(code: str, printed: str) -> None:
    if "transformers" in code:
        pytest.importorskip("transformers")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "documentation", "exec"), {"__name__": "__main__"})
    assert output.getvalue() == printed


def test_the_counts_of_conformance_add_up() -> None:
    page = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in row.split("|")[2:-1]] for row in page.split("## What was run")[1].splitlines() if "|" in row]
    end = next(i for i, row in enumerate(rows) if row[0].startswith("---")) + 1
    counts = [[int(cell) for cell in row] for row in rows[end:end + 6]]
    assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]
    assert counts[-1][0] == 81 and set(counts[-1][:3]) == {81}
