#!/usr/bin/env python3
"""heed against its peers in one process, alternating from repetition to repetition: measure.py says how."""

import argparse
import json
import os
import sys
from dataclasses import dataclass

# NumPy only checks results here; its threads would spin into the first measurement.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

import decode
from library import Library
from measure import Measured, measure, print_aligned, ratio, summarize
from peers import Mask, all_peers, backward_peers, versions

LARGEST_ERROR = 2e-5


@dataclass(frozen=True)
class Case:
    threads: int
    mask: Mask
    dim: int
    heads: int
    is_backward: bool = False

    @property
    def length(self):
        return self.mask.visible.shape[1]

    def __str__(self):
        way = "backward, " if self.is_backward else ""
        return f"{self.threads} threads, {way}{self.mask.text}, d = {self.dim}, T = {self.length}"

    def operations(self):
        heads = self.mask.visible.shape[0]
        pairs = int(np.count_nonzero(self.mask.visible)) * self.heads // heads
        return (10 if self.is_backward else 4) * pairs * self.dim

    def describe(self):
        return {
            "pass": "backward" if self.is_backward else "forward",
            "mask": self.mask.text,
            "head_dim": self.dim,
            "seq": self.length,
            "heads": self.heads,
        }


def weights_of_rows(query, key, visible, row):
    """Weights in double of some rows, which begin at `row`."""
    scores = query[:, row : row + 256] @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
    scores = np.where(visible[:, row : row + 256], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def expected(arrays, visible):
    """Attention in double, a block of rows at a time."""
    query, key, value = (array.astype(np.float64) for array in arrays)
    out = np.empty(query.shape)
    for row in range(0, query.shape[1], 256):
        out[:, row : row + 256] = weights_of_rows(query, key, visible, row) @ value
    return out


def expected_gradients(arrays, visible):
    """Its gradients in the same way."""
    query, key, value, grad_out = (array.astype(np.float64) for array in arrays)
    scale = 1 / np.sqrt(query.shape[2])
    gradients = np.zeros((3, *query.shape))
    for row in range(0, query.shape[1], 256):
        rows = np.s_[:, row : row + 256]
        weights = weights_of_rows(query, key, visible, row)
        grad_weights = grad_out[rows] @ value.transpose(0, 2, 1)
        grad_scores = scale * weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
        gradients[0][rows] = grad_scores @ key
        gradients[1] += grad_scores.transpose(0, 2, 1) @ query[rows]
        gradients[2] += weights.transpose(0, 2, 1) @ grad_out[rows]
    return gradients


def check(peer, case, result, right):
    error = np.abs(result - right).max()
    if not error <= LARGEST_ERROR:
        sys.exit(f"compare.py: {peer.title} is wrong by {error:.1e}: {case}")


def run(library, cases, repetitions, is_wanted):
    """Measures every case, checking results before anything is timed."""
    all_measured = []
    for index, case in enumerate(cases):
        print(f"measuring: case {index + 1} of {len(cases)}: {case}", file=sys.stderr)
        library.set_num_threads(case.threads)
        random = np.random.default_rng(0)
        shape = (case.heads, case.length, case.dim)
        arrays = [random.standard_normal(shape, np.float32) for _ in range(4 if case.is_backward else 3)]
        right = (expected_gradients if case.is_backward else expected)(arrays, case.mask.visible)
        contestants = []
        for peer in (backward_peers if case.is_backward else all_peers)(library):
            if not peer.can(case.mask) or not is_wanted(peer):
                continue
            call, result = peer.prepare(arrays, case.mask, case.threads)
            check(peer, case, result(), right)
            contestants.append((Measured(case, peer.title), call))
        measure(library, case, contestants, repetitions)
        all_measured += [measured for measured, _ in contestants]
    return all_measured


def machine(library):
    name = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next((line.split(": ")[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    return {"processor": name, "attention_target": library.attention_target(), "versions": versions(library)}


def cell(result):
    mark = "" if result["quiet"] else "!"
    return f"{100 * result['peak_share_median']:.0f}{mark} ({100 * result['peak_share_best']:.0f})"


def print_group(title, results):
    """Rows are implementations, columns lengths."""
    lengths = list(dict.fromkeys(result["case"]["seq"] for result in results))
    names = list(dict.fromkeys(result["case"]["implementation"] for result in results))
    at = {(result["case"]["implementation"], result["case"]["seq"]): result for result in results}
    print(f"\n{title}: share of the peak of {results[0]['peak_gflops']:.0f} GFLOP/s in %, median (best)\n")
    rows = [[""] + [f"T = {length}" for length in lengths]]
    rows += [[name] + [cell(at[name, length]) for length in lengths] for name in names]
    if len(names) > 1 and names[0] == "heed":
        faster = [ratio(at["heed", length], [at[name, length] for name in names[1:]]) for length in lengths]
        rows.append(["heed against the best peer"] + faster)
    quiet = [min(at[name, length]["quiet"] for name in names) for length in lengths]
    rows.append([f"quiet repetitions of {results[0]['repetitions']}, at least"] + [str(count) for count in quiet])
    print_aligned(rows)


def print_report(report):
    versions_ = ", ".join(f"{name} {version}" for name, version in report["machine"]["versions"].items())
    print(f"{report['machine']['processor']}, {report['machine']['attention_target']}; {versions_}")
    if any(result["case"]["pass"] == "decode" for result in report["results"]):
        decode.print_results(report["results"])
    else:
        print_groups(report["results"])
    print_warnings(report)


def print_groups(results):
    groups = {}
    for result in results:
        case = result["case"]
        groups.setdefault((case["threads"], case["pass"], case["mask"], case["head_dim"]), []).append(result)
    for (threads, way, mask, dim), group in groups.items():
        print_group(f"{threads} thread{'s'[: threads > 1]}, {way}, mask {mask}, d = {dim}", group)


def print_warnings(report):
    if any(result["quiet"] == 0 for result in report["results"]):
        print("\n! no repetition was quiet: the figures are those of all")
    for result in report["results"]:
        if result["busy_threads"] > result["case"]["threads"] * 1.1:
            case = ", ".join(f"{name} {value}" for name, value in result["case"].items())
            print(f"! {result['busy_threads']:.1f} processors were busy: {case}")


def names(text):
    return text.split(",")


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libheed_peers.so")
    parser.add_argument("--pass", dest="way", choices=["forward", "backward", "decode"], default="forward")
    parser.add_argument("--seq", type=numbers, help="lengths T: 128,512,…; of decode, how many keys")
    parser.add_argument("--head-dim", type=numbers, default=[64, 128])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=numbers, default=[8, 2], help="key heads of decode")
    parser.add_argument("--storage", type=names, default=decode.STORAGES, help="how decode's keys and values are kept")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--mask", nargs="+", default=["none", "causal"], metavar="MASK", help="as heed prints them")
    parser.add_argument("--only", default="", help="peers whose names contain this, and heed")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one object in the form of `heed bench`")
    arguments = parser.parse_args()
    if arguments.seq is None:
        arguments.seq = [1024, 4096, 16384] if arguments.way == "decode" else [128, 256, 512, 1024, 2048, 4096]
    return arguments


def mask_of(library, text, heads, length):
    try:
        return Mask(text, library.visible(text, heads, length))
    except ValueError as error:
        sys.exit(f"compare.py: --mask: {error}")


def cases_of(arguments, library):
    if arguments.way == "decode":
        return decode.cases_of(arguments)
    heads = arguments.heads
    masks = [[mask_of(library, text, heads, length) for length in arguments.seq] for text in arguments.mask]
    return [
        Case(threads, mask, dim, heads, arguments.way == "backward")
        for threads in arguments.threads
        for of_lengths in masks
        for dim in arguments.head_dim
        for mask in of_lengths
    ]


def main():
    arguments = parse_arguments()
    lists = arguments.seq + arguments.head_dim + arguments.threads + arguments.kv_heads
    if min([*lists, arguments.heads, arguments.repeat]) < 1:
        sys.exit("compare.py: --seq, --head-dim, --threads, --heads, --kv-heads and --repeat are at least 1")
    unknown = set(arguments.storage) - set(decode.STORAGES)
    if unknown:
        sys.exit(f"compare.py: --storage: {unknown.pop()!r}, expected of {', '.join(decode.STORAGES)}")
    library = Library(arguments.library)
    wanted = arguments.only.lower()
    compute = decode.run if arguments.way == "decode" else run
    measured = compute(
        library,
        cases_of(arguments, library),
        arguments.repeat,
        lambda peer: peer.title == "heed" or wanted in peer.title.lower(),
    )
    report = {"machine": machine(library), "results": summarize(measured)}
    if arguments.json:
        print(json.dumps(report))
    else:
        print_report(report)


if __name__ == "__main__":
    main()
