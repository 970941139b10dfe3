"""Measuring in turn, from repetition to repetition.

Each repetition stands between two probes of the machine, a burst of multiply-adds and a small matrix product; it is
quiet when both probes came within 5 % of their best. Medians are over quiet repetitions, or over all where none was."""

import statistics
import time
from dataclasses import dataclass, field

QUIET_SHARE = 0.95
# A repetition is as many calls as fill this time.
SECONDS_PER_REPETITION = 5e-3
# OpenMP's threads spin for some milliseconds after a call; with several threads that would disturb whoever is next.
SECONDS_UNTIL_THREADS_SLEEP = 0.03


@dataclass
class Measured:
    case: object  # has threads, operations() and describe()
    title: str
    repetitions: list = field(default_factory=list)  # (seconds, probe before, probe after)
    busy_threads: float = 0  # processor time by wall time, at most


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
                    "case": {"threads": threads, **measured.case.describe(), "implementation": measured.title},
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


def ratio(row, rivals):
    """How many times faster than the best of them, by medians and by best times."""
    return "×  (".join(
        f"{min(rival[name] for rival in rivals) / row[name]:.2f}" for name in ("median_ms", "best_ms")
    ) + "×)"


def print_aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [text.rjust(width) for text, width in zip(row[1:], widths[1:])]))
