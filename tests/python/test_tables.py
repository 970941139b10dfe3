"""scripts/write-tables: the documentation's tables of measurements are what their JSON files say."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_tables(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts/write-tables", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


def test_the_tables_of_the_documentation_are_those_of_their_files() -> None:
    checked = write_tables("--check")
    assert checked.returncode == 0, checked.stderr
    pages = [ROOT / "docs/performance.md", ROOT / "docs/engineering-log.md"]
    used = "".join(page.read_text(encoding="utf-8") for page in pages)
    for file in (ROOT / "docs/measurements").glob("*.json"):
        assert f"<!-- table: measurements/{file.name} " in used


class Folder:
    """A page beside measurements."""

    def __init__(self, path: pathlib.Path) -> None:
        self.page = path / "page.md"
        self.file = path / "one.json"

    def save(self, measured: dict, marker: str) -> None:
        self.file.write_text(json.dumps(measured), encoding="utf-8")
        self.page.write_text(f"Before.\n\n{marker}\n<!-- end of table -->\n\nAfter.\n", encoding="utf-8")

    def table(self) -> list[str]:
        done = write_tables(self.page)
        assert done.returncode == 0, done.stderr
        assert write_tables("--check", self.page).returncode == 0
        before, _, *table, end, _, after = self.page.read_text(encoding="utf-8").splitlines()[1:]
        assert (before, end, after) == ("", "<!-- end of table -->", "After.")
        return table

    def error(self) -> str:
        before = self.page.read_text(encoding="utf-8")
        done = write_tables(self.page)
        assert done.returncode == 1
        assert self.page.read_text(encoding="utf-8") == before
        return done.stderr


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path)


KEPT = {
    "columns": ["", "T = 1", "2"],
    "format": "{} ({})",
    "rows": [
        {"row": "full", "cells": [[1, 2], {"format": "{:,} ms", "numbers": [12345]}]},
        {"row": "causal", "format": "{}×", "cells": [[0.5], None]},
    ],
}


def test_kept_tables(folder: Folder) -> None:
    folder.save({"tables": {"one": KEPT}}, "<!-- table: one.json one -->")
    text = folder.file.read_text(encoding="utf-8").replace("0.5", "0.50")
    folder.file.write_text(text, encoding="utf-8")
    assert folder.table() == [
        "|  | T = 1 | 2 |",
        "| --- | --: | --: |",
        "| full | 1 (2) | 12,345 ms |",
        "| causal | 0.50× |  |",
    ]


def test_a_table_that_is_not_its_files_is_named(folder: Folder) -> None:
    folder.save({"tables": {"one": KEPT}}, "<!-- table: one.json one -->")
    folder.table()
    folder.page.write_text(folder.page.read_text(encoding="utf-8").replace("1 (2)", "1 (3)"), encoding="utf-8")
    checked = write_tables("--check", folder.page)
    assert checked.returncode == 1
    assert "page.md disagrees with one.json one: scripts/write-tables writes them" in checked.stderr


def results() -> dict:
    cases = [("none", 5), ("none", 6), ("causal", 5)]
    made = [{"case": {"mask": mask, "seq": seq}, "median_ms": seq + 0.125} for mask, seq in cases]
    return {"results": made}


VIEW = '{"corner": "ms", "row": "{mask}", "column": "T = {seq}", "cell": "{median_ms:.2f}"}'


def test_tables_of_what_heed_bench_printed(folder: Folder) -> None:
    folder.save(results(), f"<!-- table: one.json lengths {VIEW} -->")
    assert folder.table() == [
        "| ms | T = 5 | T = 6 |",
        "| --- | --: | --: |",
        "| none | 5.12 | 6.12 |",
        "| causal | 5.12 |  |",
    ]


def test_results_may_be_left_out(folder: Folder) -> None:
    view = VIEW[:-1] + ', "without": {"mask": "none"}}'
    folder.save(results(), f"<!-- table: one.json lengths {view} -->")
    assert folder.table() == ["| ms | T = 5 |", "| --- | --: |", "| causal | 5.12 |"]


def test_tables_of_what_python_heed_bench_printed(folder: Folder) -> None:
    def result(implementation: str, median: float) -> dict:
        case = {"name": "full", "threads": 1, "implementation": implementation}
        return {
            "case": case, "median_ms": median, "best_ms": median / 2, "quartiles_ms": [median, median + 0.2]
        }  # fmt: skip

    folder.save({"results": [result("heed", 1.5), result("other", 3)]}, "<!-- table: one.json peers -->")
    assert folder.table() == [
        "| ms a call | heed | other | heed against the best other | by best times |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| full, 1 thread | 1.5 ± 0.1 | 3 ± 0.1 | 2.00× | 2.00× |",
    ]


def test_what_is_wrong_is_named(folder: Folder) -> None:
    folder.save({"tables": {"one": KEPT}}, "<!-- table: one.json two -->")
    assert "page.md: table one.json two: Failed: there is no table two, only one" in folder.error()
    folder.save({"tables": {"one": KEPT}}, "<!-- table: none.json one -->")
    assert "page.md: table none.json one: FileNotFoundError" in folder.error()
    folder.save({"tables": {"one": {**KEPT, "columns": ["", "1"]}}}, "<!-- table: one.json one -->")
    assert "a row has another number of cells than there are columns" in folder.error()
    twice = results()
    twice["results"].append(twice["results"][0])
    folder.save(twice, f"<!-- table: one.json lengths {VIEW} -->")
    assert 'two results for row "none" and column "T = 5"' in folder.error()
    folder.save(results(), f"<!-- table: one.json lengths {VIEW.replace('seq', 'length')} -->")
    assert "KeyError: 'length'" in folder.error()
    folder.page.write_text("<!-- table: one.json one -->\n", encoding="utf-8")
    assert "a table begins or ends that does not end or begin" in folder.error()
