"""benchmarks/compare_reports.py: the ratios of two reports, what only one has, and what is no report."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def report(*lengths: int, verb: str = "forward", number: str = "median_ms", factor: float = 1) -> dict:
    results = [{"case": {"seq": seq, "heads": 2, "threads": 1, "error": factor}, number: factor * seq} for seq in lengths]
    return {"verb": verb, "machine": {"version": "1", "processor": "Abacus", "attention_target": "BEADS"}, "results": results}


class Folder:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def compare(self, earlier: object, later: object, *options: str) -> subprocess.CompletedProcess[str]:
        files = []
        for name, content in (("earlier", earlier), ("later", later)):
            files.append(self.path / f"{name}.json")
            files[-1].write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        command = [sys.executable, ROOT / "benchmarks/compare_reports.py", *files, *options]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    def compared(self, earlier: dict, later: dict) -> dict:
        done = self.compare(earlier, later, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def error(self, earlier: object) -> str:
        done = self.compare(earlier, report(5))
        assert done.returncode == 1 and done.stdout == ""
        return done.stderr


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path)


def test_ratios_are_earlier_by_later(folder: Folder) -> None:
    found = folder.compared(report(5, 6, factor=3), report(5, 6, factor=2))
    assert [(row["case"]["seq"], row["earlier"], row["later"], row["ratio"]) for row in found["results"]] == [
        (5, 15, 10, 1.5), (6, 18, 12, 1.5)
    ]  # fmt: skip
    assert not found["missing"] and not found["added"] and not found["differences"]
    lines = folder.compare(report(5, 6, factor=3), report(5, 6, factor=2)).stdout.splitlines()
    assert lines[0].split() == ["seq", "earlier", "median_ms", "later", "ratio"]
    assert lines[1].split() == ["5", "15", "10", "1.500"]


@pytest.mark.parametrize("verb, number", [("decode", "us_per_token"), ("storage", "out"), ("memory forward", "extra_bytes")])
def test_each_verb_has_its_number(folder: Folder, verb: str, number: str) -> None:
    found = folder.compared(report(5, verb=verb, number=number), report(5, verb=verb, number=number, factor=2))
    assert found["number"] == number and found["results"][0]["ratio"] == 0.5


def test_what_only_one_has_is_named(folder: Folder) -> None:
    lines = folder.compare(report(5, 6), report(6, 7)).stdout
    assert "! only earlier: heads=2, seq=5, threads=1" in lines and "! only later: heads=2, seq=7, threads=1" in lines


def test_a_case_that_is_there_twice_is_compared_in_order(folder: Folder) -> None:
    earlier = report(5, 5)
    earlier["results"][1]["median_ms"] = 50
    found = folder.compared(earlier, report(5, 5, 5))
    assert [row["earlier"] for row in found["results"]] == [5, 50] and len(found["added"]) == 1


def test_another_machine_is_said(folder: Folder) -> None:
    other = report(5)
    other["machine"] |= {"processor": "Slide rule\x1b[2J", "version": "2"}
    other["results"][0]["case"]["threads"] = 3
    lines = folder.compare(other, report(5)).stdout
    assert "! processor is Abacus, earlier Slide rule?[2J" in lines and "! threads is 1, earlier 3" in lines
    assert "version" not in lines


def test_nothing_by_nothing(folder: Folder) -> None:
    assert folder.compared(report(0), report(0))["results"][0]["ratio"] == 1
    nothing = report(5)
    nothing["results"][0]["median_ms"] = 0
    assert folder.compared(report(5), nothing)["results"][0]["ratio"] is None


def test_other_files_are_refused(folder: Folder) -> None:
    assert "this is no JSON" in folder.error('{"verb": "forward", ')
    assert "this is no JSON" in folder.error("[" * 100000)
    assert "this is no report of heed bench" in folder.error([])
    assert "this is no report of heed bench" in folder.error({"verb": 3})
    assert "earlier.json of `back?ward`" in folder.error({"verb": "back\x1bward", "results": []})
    assert "results is NoneType, expected an array" in folder.error({"verb": "forward"})
    for damage, text in (({"case": 1}, "results[0].case is no object"), ({"case": {}}, "median_ms is None, expected"),
                         ({"case": {}, "median_ms": "fast"}, "median_ms is 'fast'"), ({"case": {}, "median_ms": -1}, "is -1")):  # fmt: skip
        assert text in folder.error({"verb": "forward", "results": [damage]})
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/compare_reports.py", "/nowhere", "/nowhere"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "/nowhere: No such file" in done.stderr


def test_what_heed_bench_prints(folder: Folder) -> None:
    command = [pathlib.Path(os.environ["HEED_BUILD"]) / "heed", "bench", "forward", "--seq", "5", "--heads", "1", "--repeat", "1", "--json"]
    one, other = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    found = folder.compared(json.loads(one), json.loads(other))
    assert len(found["results"]) == 1 and not found["missing"] and not found["differences"]
