#!/usr/bin/env python3
"""Trained models: `heed bench model` beside transformers (float32, bfloat16) and llama.cpp, in turn from round to round.

Usage: models.py HEED --model PATH [--llama-python PYTHON] [--json FILE], and later models.py --markdown FILE.

Each round starts a process for each of them, heed first, which does the same work on the same tokens once, after once to
warm up: model_peers.py is those of the peers. Figures are medians over rounds. transformers takes part where this Python
has it, llama.cpp where the one of --llama-python has llama-cpp-python and the model is a GGUF file that writes."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

WORKER = pathlib.Path(__file__).with_name("model_peers.py")


# --- what is measured ---------------------------------------------------------------------------------------------------


class Failed(Exception):
    pass


def output_of(command, given=None):
    """Runs a program and returns the JSON text that it prints."""
    run = subprocess.run(list(map(str, command)), input=given, capture_output=True, text=True)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        raise Failed(lines[-1])
    return run.stdout


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def peers_of(arguments, writes):
    """Returns (Python, name) of each peer that can take part, and the reasons why others cannot."""
    peers, missing = [], {}
    if has(sys.executable, "torch, transformers"):
        peers += [(sys.executable, f"transformers {dtype}") for dtype in ("float32", "bfloat16")]
    else:
        missing["transformers"] = f"{sys.executable} cannot import torch and transformers"
    if not writes or not arguments.model.endswith(".gguf"):
        missing["llama.cpp"] = "takes part with GGUF files that write"
    elif not has(arguments.llama_python, "llama_cpp"):
        missing["llama.cpp"] = f"{arguments.llama_python} cannot import llama_cpp; --llama-python names one that can"
    else:
        peers.append((arguments.llama_python, "llama.cpp"))
    wanted = arguments.only.lower()
    return [peer for peer in peers if wanted in peer[1]], missing


def heed_command(arguments):
    command = [arguments.heed, "bench", "model", "--model", arguments.model, "--runs", 1, "--json"]
    for name in ("prompt", "past", "tokens", "threads"):
        if getattr(arguments, name):
            command += [f"--{name}", getattr(arguments, name)]
    return command


def request_of(arguments, heed):
    """Returns the request to peers: the work that heed did."""
    cases = [result["case"] for result in heed["results"]]
    threads = list(dict.fromkeys(case["threads"] for case in cases))
    request = {"model": arguments.model, "threads": threads}
    if "sentences" in heed:
        tokens = next(case["tokens"] for case in cases if case["work"] == "embed")
        return request | {"sentences": heed["sentences"], "tokens": tokens}
    written = [case for case in cases if case["work"] == "write"]
    return request | {
        "ids": heed["ids"],
        "prompt": next(case["tokens"] for case in cases if case["work"] == "read"),
        "past": list(dict.fromkeys(case["past"] for case in written)),
        "tokens": written[0]["tokens"] if written else 0,
    }


def run(arguments):
    """Returns the reports of all rounds by implementation, and the missing peers."""
    rounds, missing = {}, {}
    for index in range(arguments.rounds):
        print(f"measuring: round {index + 1} of {arguments.rounds}: heed", file=sys.stderr)
        heed = json.loads(output_of(heed_command(arguments)))
        rounds.setdefault("heed", []).append(heed)
        request = json.dumps(request_of(arguments, heed))
        if index == 0:
            peers, missing = peers_of(arguments, "ids" in heed)
        for python, name in list(peers):
            print(f"measuring: round {index + 1} of {arguments.rounds}: {name}", file=sys.stderr)
            try:
                rounds.setdefault(name, []).append(json.loads(output_of([python, WORKER, name], request)))
            except Failed as failed:
                peers.remove((python, name))
                rounds.pop(name)
                missing[name] = str(failed)
    return rounds, missing


# --- what is reported ---------------------------------------------------------------------------------------------------


def same_tokens(ids, right):
    """Returns the number of leading tokens that are equal."""
    return next((i for i, (a, b) in enumerate(zip(ids, right)) if a != b), len(right))


def summary(name, reports):
    """Returns the results of one implementation in the form of `heed bench model`."""
    results = []
    for index, first in enumerate(reports[0]["results"]):
        times = [report["results"][index]["median_ms"] for report in reports]
        case = first["case"]
        median = statistics.median(times)
        result = {"case": {**case, "implementation": name}, "median_ms": median, "best_ms": min(times), "ms": times}
        for counted in ("tokens", "sentences"):
            if case["work"] != "start" and counted in case:
                result[f"{counted}_per_second"] = 1e3 * case[counted] / median
        results.append(result | {"repetitions": len(times)})
    return results


def report_of(rounds, missing):
    heed = rounds["heed"][0]
    versions = {"heed": heed["machine"]["version"]}
    results, memory = [], []
    for name, reports in rounds.items():
        versions.update(reports[0].get("versions", {}))
        results += summary(name, reports)
        peak = statistics.median(report["peak_bytes"] for report in reports)
        one = {"implementation": name, "bytes": reports[0]["model"]["bytes"], "peak_bytes": peak}
        if "written" in heed:
            pairs = zip(reports[0]["written"], heed["written"])
            one["same_tokens"] = {str(own["past"]): same_tokens(own["ids"], right["ids"]) for own, right in pairs}
        memory.append(one)
    return {
        "machine": {**heed["machine"], "versions": versions},
        "model": heed["model"],
        "missing": missing,
        "memory": memory,
        "results": results,
    }


def titles_of(case):
    """Returns (member, factor, title, decimals) for each figure of a case."""
    threads = f"{case['threads']} thread{'s'[: case['threads'] > 1]}"
    if case["work"] == "start":
        behind = "first vector" if "sentences" in case else f"first token behind {case['tokens']}"
        return [("median_ms", 1e-3, f"from loading to the {behind}, s, {threads}", 2)]
    if case["work"] == "embed":
        return [
            ("sentences_per_second", 1, f"sentences a second, {threads}", 0),
            ("tokens_per_second", 1, f"tokens a second in them, {threads}", 0),
        ]
    what = f"read, {case['tokens']}" if case["work"] == "read" else f"written, behind {case['past']}"
    return [("tokens_per_second", 1, f"{what}: tokens a second, {threads}", 1)]


def rows_of(report):
    """Returns table cells as text: a row per figure, a column per implementation, with heed's figure divided by theirs in brackets."""
    names = [one["implementation"] for one in report["memory"]]
    figures = {}  # title and digits, to name and number
    for result in report["results"]:
        for member, factor, title, digits in titles_of(result["case"]):
            figures.setdefault((title, digits), {})[result["case"]["implementation"]] = factor * result[member]
    for member, title in (("bytes", "weights, MB"), ("peak_bytes", "the process at most, MB")):
        figures[title, 0] = {one["implementation"]: one[member] / 1e6 for one in report["memory"]}
    rows = [["", *names]]
    for (title, digits), numbers in figures.items():
        row = [title]
        for name in names:
            cell = f"{numbers[name]:.{digits}f}"
            row.append(cell if name == "heed" else f"{cell} ({numbers['heed'] / numbers[name]:.2f})")
        rows.append(row)
    return rows


def headline(report):
    machine, model = report["machine"], report["model"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{model['name']}, {model['architecture']}, {model['parameters'] / 1e6:.1f} million parameters; "
        f"{machine['processor']}, {machine['attention_target']}; {versions}"
    )


def notes_of(report):
    repetitions = report["results"][0]["repetitions"]
    notes = [f"Medians of {repetitions}; in brackets heed's figure divided by theirs."]
    for one in report["memory"][1:]:
        for past, same in one.get("same_tokens", {}).items():
            tokens = next(r["case"]["tokens"] for r in report["results"] if str(r["case"].get("past")) == past)
            notes.append(f"{one['implementation']} writes {same} of {tokens} tokens as heed does behind {past}.")
    notes += [f"{name} is missing: {why}." for name, why in report["missing"].items()]
    return notes


def print_aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(row[1:], widths[1:])]))


def print_report(report):
    print(headline(report) + "\n")
    print_aligned(rows_of(report))
    print("\n" + "\n".join(notes_of(report)))


def print_markdown(report):
    rows = rows_of(report)
    rows.insert(1, ["---", *["--:"] * (len(rows[0]) - 1)])
    print(headline(report) + "\n")
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    print("\n" + "\n".join(notes_of(report)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heed", nargs="?", help="the command")
    parser.add_argument("--model", help="a GGUF file, or a folder of transformers")
    for name in ("prompt", "past", "tokens", "threads"):
        parser.add_argument(f"--{name}", help="as `heed bench model` takes it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="peers whose names contain this")
    parser.add_argument("--llama-python", default=sys.executable, metavar="PYTHON", help="one that has llama-cpp-python")
    parser.add_argument("--json", metavar="FILE", help="also write everything measured; - prints it instead of the table")
    parser.add_argument("--markdown", metavar="FILE", help="measure nothing: print the table of such a file in Markdown")
    arguments = parser.parse_args()
    if not arguments.markdown and not (arguments.heed and arguments.model):
        parser.error("expected the command heed and --model, or --markdown")
    if arguments.rounds < 1:
        parser.error("--rounds is at least 1")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.markdown:
        print_markdown(json.loads(pathlib.Path(arguments.markdown).read_text(encoding="utf-8")))
        return
    try:
        report = report_of(*run(arguments))
    except Failed as failed:
        sys.exit(f"models.py: {failed}")
    text = json.dumps(report, indent=1)
    if arguments.json == "-":
        print(text)
        return
    if arguments.json:
        pathlib.Path(arguments.json).write_text(text + "\n", encoding="utf-8")
    print_report(report)


if __name__ == "__main__":
    main()
