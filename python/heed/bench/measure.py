"""Measuring in turn: each repetition times every peer once, so that whatever else the machine does meets all alike.

Each repetition stands between two probes of the machine; which are quiet, `heed bench` and this package decide by the same
code. Medians are over quiet repetitions, or over all where none was."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from heed import _heed

from .cases import Case

# A repetition is as many calls as fill this time.
_SECONDS_PER_REPETITION = 5e-3
# OpenMP's threads spin for some milliseconds after a call; with several threads that would disturb whoever is next.
_SECONDS_UNTIL_THREADS_SLEEP = 0.03


@dataclass
class Measured:
    """One peer's repetitions for one case, as heed._heed.are_quiet() takes them."""

    case: Case
    peer: str
    repetitions: list[tuple[float, ...]] = field(default_factory=list)
    busy_threads: list[float] = field(default_factory=list)  # processor time by wall time, of each repetition


def in_turn(calls: list[Callable]) -> Callable:
    """A function that makes the next of the calls."""
    if len(calls) == 1:
        return calls[0]
    following = itertools.cycle(calls)
    return lambda: next(following)()


def _seconds_per_call(call: Callable, count: int) -> tuple[float, float]:
    """Wall time of one of them, and how many processors were busy."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    elapsed = time.perf_counter() - wall
    return elapsed / count, (time.process_time() - cpu) / elapsed


def _probe(threads: int) -> tuple[float, float, float]:
    if threads > 1:
        time.sleep(_SECONDS_UNTIL_THREADS_SLEEP)
    return _heed.probe_machine(threads)


def measure(case: Case, contestants: list[tuple[Measured, Callable]], repetitions: int) -> None:
    """Times all of them in turn; the repetitions are put into each Measured."""
    counts = [max(1, round(_SECONDS_PER_REPETITION / _seconds_per_call(call, 1)[0])) for _, call in contestants]
    settled = _heed.settle_machine(case.threads)
    before = _probe(case.threads)
    for _ in range(repetitions):
        for (measured, call), count in zip(contestants, counts):
            if count > 1:
                call()  # brings its operands back into the cache
            waiting = _heed.waiting_so_far()
            seconds, busy = _seconds_per_call(call, count)
            waited = _heed.waited(waiting, _heed.waiting_so_far()) / (seconds * count)
            after = _probe(case.threads)
            measured.repetitions.append((seconds, *before, *after, waited, *settled))
            measured.busy_threads.append(busy)
            before = after


def _summary(measured: Measured, undisturbed: tuple[float, float]) -> dict:
    """One object in the form of `heed bench`."""
    rate = undisturbed[0]
    quiet = _heed.are_quiet(measured.repetitions, undisturbed)
    every = [repetition[0] for repetition in measured.repetitions]
    used = [seconds for seconds, is_quiet in zip(every, quiet) if is_quiet] or every
    median, best = statistics.median(used), min(used)
    operations = measured.case.operations()
    return {
        "case": {**measured.case.describe(), "implementation": measured.peer},
        "median_ms": 1e3 * median,
        "best_ms": 1e3 * best,
        "quartiles_ms": [1e3 * float(x) for x in np.quantile(used, [0.25, 0.75])],
        "gflops": operations / median / 1e9,
        "peak_gflops": rate / 1e9,
        "peak_share_median": operations / median / rate,
        "peak_share_best": operations / best / rate,
        "quiet": sum(quiet),
        "repetitions": len(every),
        # Not the largest: a virtual machine of two processors charged single repetitions with 2.9.
        "busy_threads": statistics.median(measured.busy_threads),
    }


def summarize(all_measured: list[Measured]) -> list[dict]:
    """One object for each, judged by the probes with equal threads."""
    results = []
    for threads in dict.fromkeys(measured.case.threads for measured in all_measured):
        group = [measured for measured in all_measured if measured.case.threads == threads]
        undisturbed = _heed.undisturbed_rates([one for measured in group for one in measured.repetitions])
        results += [_summary(measured, undisturbed) for measured in group]
    return results
