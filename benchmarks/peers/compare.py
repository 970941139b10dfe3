#!/usr/bin/env python3
"""heed against its peers in one process, alternating from repetition to repetition.

Each repetition stands between two probes of the machine, a burst of multiply-adds and a small matrix product; it is
quiet when both probes came within 5 % of their best. Medians are over quiet repetitions, or over all where none was."""

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

# NumPy only checks results here; its threads would spin into the first measurement.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from library import Library
from peers import all_peers, backward_peers, versions

QUIET_SHARE = 0.95
# A repetition is as many calls as fill this time.
SECONDS_PER_REPETITION = 5e-3
# OpenMP's threads spin for some milliseconds after a call; with several threads that would disturb whoever is next.
SECONDS_UNTIL_THREADS_SLEEP = 0.03
LARGEST_ERROR = 2e-5


@dataclass(frozen=True)
class Case:
    threads: int
    is_causal: bool
    dim: int
    length: int
    heads: int
    is_backward: bool = False

    def __str__(self):
        mask = "causal" if self.is_causal else "full"
        way = "backward, " if self.is_backward else ""
        return f"{self.threads} threads, {way}{mask}, d = {self.dim}, T = {self.length}"

    def operations(self):
        pairs = self.length * (self.length + 1) // 2 if self.is_causal else self.length**2
        return (10 if self.is_backward else 4) * self.heads * pairs * self.dim


@dataclass
class Measured:
    case: Case
    title: str
    repetitions: list = field(default_factory=list)  # (seconds, probe before, probe after)
    busy_threads: float = 0  # processor time by wall time, at most


def weights_of_rows(query, key, is_causal, row):
    """Weights in double of some rows, which begin at `row`."""
    _, length, dim = query.shape
    scores = query[:, row : row + 256] @ key.transpose(0, 2, 1) / np.sqrt(dim)
    if is_causal:
        rows = np.arange(row, row + scores.shape[1])
        scores[:, np.arange(length) > rows[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def expected(arrays, is_causal):
    """Attention in double, a block of rows at a time."""
    query, key, value = (array.astype(np.float64) for array in arrays)
    out = np.empty(query.shape)
    for row in range(0, query.shape[1], 256):
        out[:, row : row + 256] = weights_of_rows(query, key, is_causal, row) @ value
    return out


def expected_gradients(arrays, is_causal):
    """Its gradients in the same way."""
    query, key, value, grad_out = (array.astype(np.float64) for array in arrays)
    scale = 1 / np.sqrt(query.shape[2])
    gradients = np.zeros((3, *query.shape))
    for row in range(0, query.shape[1], 256):
        rows = np.s_[:, row : row + 256]
        weights = weights_of_rows(query, key, is_causal, row)
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


def seconds_per_call(call, count):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    elapsed = time.perf_counter() - wall
    return elapsed / count, (time.process_time() - cpu) / elapsed


def probe(library, threads):
    if threads > 1:
        time.sleep(SECONDS_UNTIL_THREADS_SLEEP)
    return library.probe(threads)


def measure(library, case, contestants, repetitions):
    """contestants: (Measured, call), one after the other in every repetition."""
    counts = [max(1, round(SECONDS_PER_REPETITION / seconds_per_call(call, 1)[0])) for _, call in contestants]
    library.settle(case.threads)
    before = probe(library, case.threads)
    for _ in range(repetitions):
        for (measured, call), count in zip(contestants, counts):
            if count > 1:
                call()  # brings its operands back into the cache
            seconds, busy = seconds_per_call(call, count)
            after = probe(library, case.threads)
            measured.repetitions.append((seconds, before, after))
            measured.busy_threads = max(measured.busy_threads, busy)
            before = after


def run(library, cases, repetitions, is_wanted):
    """Measures every case, checking results before anything is timed."""
    all_measured = []
    for index, case in enumerate(cases):
        print(f"measuring: case {index + 1} of {len(cases)}: {case}", file=sys.stderr)
        library.set_num_threads(case.threads)
        random = np.random.default_rng(0)
        shape = (case.heads, case.length, case.dim)
        arrays = [random.standard_normal(shape, np.float32) for _ in range(4 if case.is_backward else 3)]
        right = (expected_gradients if case.is_backward else expected)(arrays, case.is_causal)
        contestants = []
        for peer in (backward_peers if case.is_backward else all_peers)(library):
            if not peer.can(case.is_causal) or not is_wanted(peer):
                continue
            call, result = peer.prepare(arrays, case.is_causal, case.threads)
            check(peer, case, result(), right)
            contestants.append((Measured(case, peer.title), call))
        measure(library, case, contestants, repetitions)
        all_measured += [measured for measured, _ in contestants]
    return all_measured


def is_quiet(probe_, best_rate, best_seconds):
    return probe_.fma_rate >= QUIET_SHARE * best_rate and best_seconds >= QUIET_SHARE * probe_.product_seconds


def summarize(all_measured):
    """One object for each, in the form of `heed bench`, judged by the best probes with equal threads."""
    results = []
    for threads in dict.fromkeys(measured.case.threads for measured in all_measured):
        group = [measured for measured in all_measured if measured.case.threads == threads]
        probes = [p for measured in group for _, before, after in measured.repetitions for p in (before, after)]
        peak = max(p.fma_rate for p in probes)
        product = min(p.product_seconds for p in probes)
        for measured in group:
            quiet = [
                seconds
                for seconds, before, after in measured.repetitions
                if is_quiet(before, peak, product) and is_quiet(after, peak, product)
            ]
            used = quiet or [seconds for seconds, _, _ in measured.repetitions]
            median, best = statistics.median(used), min(used)
            operations = measured.case.operations()
            results.append(
                {
                    "case": {
                        "threads": threads,
                        "pass": "backward" if measured.case.is_backward else "forward",
                        "mask": "causal" if measured.case.is_causal else "none",
                        "head_dim": measured.case.dim,
                        "seq": measured.case.length,
                        "heads": measured.case.heads,
                        "implementation": measured.title,
                    },
                    "median_ms": median * 1e3,
                    "best_ms": best * 1e3,
                    "gflops": operations / median / 1e9,
                    "peak_gflops": peak / 1e9,
                    "peak_share_median": operations / median / peak,
                    "peak_share_best": operations / best / peak,
                    "quiet": len(quiet),
                    "repetitions": len(measured.repetitions),
                    "busy_threads": measured.busy_threads,
                }
            )
    return results


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


def ratio(row, rivals):
    """How many times faster than the best of them, by medians and by best times."""
    return "×  (".join(
        f"{min(rival[name] for rival in rivals) / row[name]:.2f}" for name in ("median_ms", "best_ms")
    ) + "×)"


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
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(row[1:], widths[1:])]))


def print_report(report):
    versions_ = ", ".join(f"{name} {version}" for name, version in report["machine"]["versions"].items())
    print(f"{report['machine']['processor']}, {report['machine']['attention_target']}; {versions_}")
    groups = {}
    for result in report["results"]:
        case = result["case"]
        groups.setdefault((case["threads"], case["pass"], case["mask"], case["head_dim"]), []).append(result)
    for (threads, way, mask, dim), results in groups.items():
        shown_mask = "causal" if mask == "causal" else "full"
        print_group(f"{threads} thread{'s'[: threads > 1]}, {way}, {shown_mask}, d = {dim}", results)
    if any(result["quiet"] == 0 for result in report["results"]):
        print("\n! no repetition was quiet: the figures are those of all")
    for result in report["results"]:
        if result["busy_threads"] > result["case"]["threads"] * 1.1:
            case = ", ".join(f"{name} {value}" for name, value in result["case"].items())
            print(f"! {result['busy_threads']:.1f} processors were busy: {case}")


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="libheed_peers.so")
    parser.add_argument("--pass", dest="way", choices=["forward", "backward"], default="forward")
    parser.add_argument("--seq", type=numbers, default=[128, 256, 512, 1024, 2048, 4096], help="lengths T: 128,512,…")
    parser.add_argument("--head-dim", type=numbers, default=[64, 128])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--mask", choices=["none", "causal", "both"], default="both")
    parser.add_argument("--only", default="", help="peers whose names contain this, and heed")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one object in the form of `heed bench`")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if min(arguments.seq + arguments.head_dim + arguments.threads + [arguments.heads, arguments.repeat]) < 1:
        sys.exit("compare.py: --seq, --head-dim, --threads, --heads and --repeat are at least 1")
    library = Library(arguments.library)
    masks = {"none": [False], "causal": [True], "both": [False, True]}[arguments.mask]
    cases = [
        Case(threads, is_causal, dim, length, arguments.heads, arguments.way == "backward")
        for threads in arguments.threads
        for is_causal in masks
        for dim in arguments.head_dim
        for length in arguments.seq
    ]
    wanted = arguments.only.lower()
    measured = run(library, cases, arguments.repeat, lambda peer: peer.title == "heed" or wanted in peer.title.lower())
    report = {"machine": machine(library), "results": summarize(measured)}
    if arguments.json:
        print(json.dumps(report))
    else:
        print_report(report)


if __name__ == "__main__":
    main()
