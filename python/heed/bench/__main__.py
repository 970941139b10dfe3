"""heed against PyTorch, ONNX Runtime and others on this machine.

All run in one process and take turns: each repetition times every one of them once. Every result is first compared with
attention in double precision. Printed are medians in milliseconds a call, with half the distance between the quartiles.
Needs PyTorch; ONNX Runtime takes part where onnx and onnxruntime can be imported,
OpenBLAS and oneDNN with --library (`make bench-peers` in a clone of heed). Lists make every combination."""

from __future__ import annotations

import argparse
import json
import platform
import sys

import heed

from .cases import DTYPES, PASSES, STORAGES, all_cases


def numbers(text: str) -> list[int]:
    values = [int(number) for number in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError("expected numbers of at least 1")
    return values


class Names:
    """A list of some of the names that there are."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def __call__(self, text: str) -> list[str]:
        for name in text.split(","):
            if name not in self.known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(self.known)}")
        return text.split(",")


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m heed.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--pass", dest="way", type=Names(PASSES), default=list(PASSES), help=",".join(PASSES))
    add("--seq", type=numbers, default=[256, 1024], help="lengths, of decode how many keys: 256,1024")
    add("--head-dim", type=numbers, default=[64], help="64")
    add("--heads", type=int, default=8, help="of the query: 8")
    add("--kv-heads", type=numbers, default=[8, 2], help="of decode: 8,2")
    add("--storage", type=Names(STORAGES), default=["float32"], help=f"of decode, of {','.join(STORAGES)}: float32")
    add("--dtype", type=Names(DTYPES), default=["float32"], help=f"of forward and backward, of {','.join(DTYPES)}: float32")
    add("--mask", nargs="+", default=["none", "causal"], help="of forward and backward, as heed prints them: none causal")
    add("--threads", type=numbers, default=[1, 2], help="1,2")
    add("--only", default="", help="the cases whose names contain this, e.g. decode")
    add("--peer", default="", help="heed, and the peers whose names contain this")
    add("--repeat", type=int, default=11, help="how often each is timed: 11")
    add("--library", metavar="FILE", help="libheed_peers.so: heed is then what a C++ program calls")
    add("--json", metavar="FILE", help="write everything measured; - is standard output")
    add("--svg", metavar="FILE", help="draw a figure")
    parsed = parser.parse_args(arguments)
    if min(parsed.repeat, parsed.heads) < 1:
        parser.error("--repeat and --heads are at least 1")
    return parsed


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(": ")[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        return platform.processor()


def run(cases: list, peers: list, repetitions: int) -> list[dict]:
    """Checks every result before anything of its case is timed."""
    from .expected import expected, problem_with
    from .measure import Measured, in_turn, measure, summarize

    measured = []
    for index, case in enumerate(cases):
        print(f"measuring: case {index + 1} of {len(cases)}: {case}", file=sys.stderr)
        arrays = case.arrays()
        right = expected(case, arrays)
        contestants = []
        for peer in peers:
            if not peer.can(case):
                continue
            made = [peer.prepare(case, arrays) for _ in range(case.copies())]
            problem = problem_with(case, made[0][1](), right)
            if problem:
                sys.exit(f"heed.bench: {peer.title} is {problem}: {case}")
            contestants.append((Measured(case, peer.title), in_turn([call for call, _ in made])))
        measure(case, contestants, repetitions)
        measured += [one for one, _ in contestants]
    return summarize(measured)


def chosen_peers(parsed: argparse.Namespace) -> list:
    """OSError where there is no library."""
    from .library import Library
    from .peers import all_peers

    peers = all_peers(Library(parsed.library) if parsed.library else None)
    return [peer for peer in peers if peer.title == "heed" or parsed.peer.lower() in peer.title.lower()]


def write(report: dict, parsed: argparse.Namespace) -> None:
    from . import figure
    from . import report as reports

    if parsed.json and parsed.json != "-":
        with open(parsed.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if parsed.svg:
        with open(parsed.svg, "w", encoding="utf-8") as file:
            file.write(figure.figure(report))
    print(json.dumps(report) if parsed.json == "-" else reports.text(report))


def main(arguments: list[str] | None = None) -> int:
    parsed = parse_arguments(arguments)
    try:
        import torch  # noqa: F401
    except ImportError:
        print("heed.bench: PyTorch, which heed is compared with, is not installed: pip install torch", file=sys.stderr)
        return 1
    from .peers import versions

    try:
        for mask in parsed.mask:
            heed.parse_mask(mask)
        cases = [case for case in all_cases(parsed) if parsed.only in case.name]
    except ValueError as error:
        print(f"heed.bench: --mask: {error}", file=sys.stderr)
        return 2
    if not cases:
        print(f'heed.bench: no case has "{parsed.only}" in its name', file=sys.stderr)
        return 2
    try:
        peers = chosen_peers(parsed)
    except OSError as error:
        print(f"heed.bench: --library: {error}", file=sys.stderr)
        return 1
    results = run(cases, peers, parsed.repeat)
    machine = {"processor": processor(), "attention_target": heed.attention_target(), "versions": versions()}
    write({"verb": "python -m heed.bench", "machine": machine, "results": results}, parsed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
