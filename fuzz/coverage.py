#!/usr/bin/env python3
"""Prints the branches of the parsers that the fuzz targets reach, given the output of `llvm-cov export` and fuzz/unreached.txt, which
gives reasons for branches that are not reached. Usage: fuzz/coverage.py EXPORT.json; exit code 1 below the goal."""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOAL = 95


def read_reasons():
    """Returns [file, what, reason] for each line: `what` is part of a condition, or of the name of a function with all its branches."""
    lines = (ROOT / "fuzz/unreached.txt").read_text().splitlines()
    return [[part.strip() for part in line.split(" | ")] for line in lines if line and not line.startswith("#")]


def read_functions(export):
    """Returns, by file, the first and the last line and the name of each function."""
    functions = {}
    names = [function["name"].split(":")[-1] for function in export["functions"]]
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    for function, name in zip(export["functions"], plain):
        first, _, last, *_ = function["regions"][0]
        functions.setdefault(function["filenames"][0], set()).add((first, last, name))
    return functions


def directions_of(file):
    """Returns {place: [times true, times false]}, summed over all instantiations of a template."""
    counts = {}
    for line, column, end_line, end_column, times_true, times_false, *_ in file["branches"]:
        count = counts.setdefault((line, column, end_line, end_column), [0, 0])
        count[0] += times_true
        count[1] += times_false
    return counts


def text_of(lines, place):
    line, column, end_line, end_column = place
    text = lines[line - 1 : end_line]
    text[-1] = text[-1][: end_column - 1]
    text[0] = text[0][column - 1 :]
    return " ".join(" ".join(text).split())


def main():
    export = json.loads(Path(sys.argv[1]).read_text())["data"][0]
    reasons = read_reasons()
    used = set()
    functions = read_functions(export)
    totals = [0, 0, 0]
    unreached = []
    print(f"{'':44} branches  excepted  reached")
    for file in export["files"]:
        path = str(Path(file["filename"]).relative_to(ROOT))
        lines = Path(file["filename"]).read_text().splitlines()
        row = [0, 0, 0]
        for place, count in sorted(directions_of(file).items()):
            text = text_of(lines, place)
            around = [name for first, last, name in functions.get(file["filename"], ()) if first <= place[0] <= last]
            known = [i for i, (where, what, _) in enumerate(reasons)
                     if where == path and (what in text or any(what in name for name in around))]
            for times, direction in zip(count, ["true", "false"]):
                row[0] += 1
                if times > 0:
                    row[2] += 1
                elif known:
                    used.update(known)
                    row[1] += 1
                else:
                    unreached.append(f"{path}:{place[0]}: never {direction}: {text}")
        totals = [a + b for a, b in zip(totals, row)]
        print(row_of(path, row))
    print(row_of("all of them", totals))
    print("\n".join(["", "not reached:", *unreached]))
    for i, (where, what, _) in enumerate(reasons):
        if i not in used:
            print(f"fuzz/unreached.txt: '{what}' of {where} is reached, or is not there")
    return 0 if share(totals) >= GOAL else 1


def share(row):
    branches, excepted, reached = row
    return 100 * reached / max(branches - excepted, 1)


def row_of(name, row):
    return f"{name:44} {row[0]:8}  {row[1]:8}  {share(row):6.1f}%"


sys.exit(main())
