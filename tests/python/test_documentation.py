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
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "documentation", "exec"), {"__name__": "__main__"})
    assert output.getvalue() == printed
