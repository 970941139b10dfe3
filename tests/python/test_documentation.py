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


def test_every_door_of_the_readme_is_opened_in_ci() -> None:
    """Each command that a newcomer is told to type, but `make models`, which fetches from where CI does not reach."""
    readme, ci = (ROOT / "README.md").read_text(encoding="utf-8"), (ROOT / ".ci/run").read_text(encoding="utf-8")
    doors = set(re.findall(r"^    (make [a-z-]+|pip install|scripts/[a-z-]+|find_package)", readme, re.MULTILINE))
    assert {"make demo", "make install", "make test", "pip install", "find_package"} <= doors
    # pip builds and installs a wheel; tests/consumer is a project that finds heed; make test-wheel installs what pip
    # needs.
    opened_by = {"pip install": "make test-wheel", "find_package": "make test", "scripts/install-dependencies": "make test-wheel"}
    for door in doors - {"make models"}:
        command = opened_by.get(door, door)
        assert re.search(rf"^ *(\w+=['\w]* )*(step )?{command}( |$)", ci, re.MULTILINE), f"{door} is not opened by .ci/run"
