#!/usr/bin/env python3
"""Sets two reports of `heed bench … --json`, or of heed_measure, beside each other: the ratio of each case.

Usage: compare_reports.py EARLIER LATER [--json]

A ratio is the earlier figure divided by the later one: 1.05 is 5 % faster. Compared are median_ms, of decode us_per_token, of
storage the error `out`. Results whose cases are equal are compared, of several equal ones the first with the first. Below the
table are cases that only one report has, and differences in processor, instruction set, number of threads or model."""

import argparse
import json
import pathlib
import sys

# The number of each result, by the verb; less is better.
NUMBERS = {"decode": "us_per_token", "storage": "out", "memory forward": "extra_bytes", "memory backward": "extra_bytes"}
# Members of a case that are measured results. They do not identify the case.
MEASURED = {"error"}
MOST_BYTES = 64 << 20


class Failed(Exception):
    pass


def printable(text):
    return "".join(character if character.isprintable() else "?" for character in str(text))


def name_of(case):
    return printable(", ".join(f"{key}={value}" for key, value in sorted(case.items()) if key not in MEASURED))


class Report:
    def __init__(self, path):
        self.path = path
        try:
            if pathlib.Path(path).stat().st_size > MOST_BYTES:
                raise Failed(f"{path}: more than {MOST_BYTES} bytes, expected a report of heed bench")
            whole = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise Failed(f"{path}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise Failed(f"{path}: this is no JSON: {error}") from None
        if not isinstance(whole, dict) or not isinstance(whole.get("verb"), str):
            raise Failed(f"{path}: this is no report of heed bench, expected what `heed bench … --json` printed")
        self.verb = whole["verb"]
        self.number = NUMBERS.get(self.verb, "median_ms")
        self.facts = {key: str(value) for key, value in whole.get("machine", {}).items() if key != "version"}
        if "model" in whole:
            self.facts["model"] = str(whole["model"].get("name"))
        self.results = [self.result(index, result) for index, result in enumerate(self.items(whole))]

    def items(self, whole):
        if not isinstance(whole.get("results"), list):
            raise Failed(f"{self.path}: results is {type(whole.get('results')).__name__}, expected an array")
        return whole["results"]

    def result(self, index, result):
        """The case and the number."""
        if not isinstance(result, dict) or not isinstance(result.get("case"), dict):
            raise Failed(f"{self.path}: results[{index}].case is no object")
        number = result.get(self.number)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
            raise Failed(f"{self.path}: results[{index}].{self.number} is {number!r}, expected a number of at least 0")
        return result["case"], number

    def threads(self):
        return " and ".join(sorted({str(case["threads"]) for case, _ in self.results if "threads" in case}))


def ratio(earlier, later):
    return 1.0 if earlier == later else earlier / later if later else None


def compared(earlier, later):
    if earlier.verb != later.verb:
        raise Failed(f"{later.path} is of `{printable(later.verb)}`, {earlier.path} of `{printable(earlier.verb)}`, expected one verb")
    left = {}
    for case, number in earlier.results:
        left.setdefault(name_of(case), []).append(number)
    rows, added = [], []
    for case, number in later.results:
        name = name_of(case)
        if left.get(name):
            before = left[name].pop(0)
            rows.append({"case": case, "earlier": before, "later": number, "ratio": ratio(before, number)})
        else:
            added.append(name)
    differences = [
        f"{printable(key)} is {printable(later.facts.get(key, 'not said'))}, earlier {printable(value)}"
        for key, value in earlier.facts.items()
        if later.facts.get(key, "not said") != value
    ]
    if earlier.threads() != later.threads():
        differences.append(f"threads is {later.threads()}, earlier {earlier.threads()}")
    missing = [name for name, numbers in left.items() for _ in numbers]
    return {"number": earlier.number, "results": rows, "differences": differences, "missing": missing, "added": added}


def table(report):
    """What all cases share is left out."""
    cases = [row["case"] for row in report["results"]]
    keys = [key for key in (cases[0] if cases else {}) if len({str(case.get(key)) for case in cases}) > 1 and key not in MEASURED]
    rows = [[*keys, f"earlier {report['number']}", "later", "ratio"]]
    for row in report["results"]:
        cells = [printable(row["case"].get(key)) for key in keys]
        of = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        rows.append([*cells, f"{row['earlier']:.4g}", f"{row['later']:.4g}", of])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
    lines += [f"! {difference}" for difference in report["differences"]]
    lines += [f"! only earlier: {name}" for name in report["missing"]]
    lines += [f"! only later: {name}" for name in report["added"]]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier")
    parser.add_argument("later")
    parser.add_argument("--json", action="store_true", help="print one object instead of the table")
    arguments = parser.parse_args()
    try:
        report = compared(Report(arguments.earlier), Report(arguments.later))
    except Failed as failed:
        sys.exit(f"compare_reports.py: {failed}")
    print(json.dumps(report) if arguments.json else table(report))


if __name__ == "__main__":
    main()
