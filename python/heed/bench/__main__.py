"""heed against PyTorch and ONNX Runtime on this machine.

All run in one process and take turns: each repetition times every one of them once. Every result is first compared with
attention in double precision. Printed are medians in milliseconds a call, with half the distance between the quartiles.
Needs PyTorch; ONNX Runtime takes part where onnx and onnxruntime can be imported."""

from __future__ import annotations

import argparse
import json
import platform
import sys


def numbers(text: str) -> list[int]:
    values = [int(number) for number in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError("expected numbers of at least 1")
    return values


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m heed.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seq", type=numbers, default=[256, 1024], help="lengths: 256,1024")
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="numbers of threads: 1,2")
    parser.add_argument("--only", default="", help="the cases whose names contain this, e.g. decode")
    parser.add_argument("--repeat", type=int, default=11, help="how often each is timed")
    parser.add_argument("--json", metavar="FILE", help="write everything measured; - is standard output")
    parser.add_argument("--svg", metavar="FILE", help="draw a figure")
    parsed = parser.parse_args(arguments)
    if parsed.repeat < 1:
        parser.error("--repeat is at least 1")
    return parsed


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(": ")[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor()


def main(arguments: list[str] | None = None) -> int:
    parsed = parse_arguments(arguments)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("heed.bench: PyTorch, which heed is compared with, is not installed: pip install torch", file=sys.stderr)
        return 1
    import heed

    from . import report as reports
    from .cases import all_cases
    from .measure import measure
    from .peers import all_peers, versions

    cases = [case for case in all_cases(parsed.seq, parsed.threads) if parsed.only in case.name]
    if not cases:
        print(f'heed.bench: no case has "{parsed.only}" in its name', file=sys.stderr)
        return 2
    peers = all_peers()
    results = []
    for index, case in enumerate(cases):
        print(f"measuring: case {index + 1} of {len(cases)}: {case}", file=sys.stderr)
        results += [measured.summary() for measured in measure(case, peers, parsed.repeat)]
    machine = {"processor": processor(), "attention_target": heed.attention_target(), "versions": versions()}
    report = {"machine": machine, "results": results}
    if parsed.json and parsed.json != "-":
        with open(parsed.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    if parsed.svg:
        with open(parsed.svg, "w", encoding="utf-8") as file:
            file.write(reports.figure(report))
    if parsed.json == "-":
        print(json.dumps(report))
    else:
        print(reports.table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
