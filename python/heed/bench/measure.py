"""Measuring in turn: each repetition times every peer once, so that whatever else the machine does meets all alike.

`heed bench` measures by the same code. Medians and quartiles are over all repetitions."""

from __future__ import annotations

import itertools
import statistics
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
    """One peer's repetitions for one case."""

    case: Case
    peer: str
    seconds: list[float] = field(default_factory=list)  # per call
    busy_threads: list[float] = field(default_factory=list)  # processor time by wall time


def in_turn(calls: list[Callable]) -> Callable:
    """A function that makes the next of the calls."""
    if len(calls) == 1:
        return calls[0]
    following = itertools.cycle(calls)
    return lambda: next(following)()


def measure(case: Case, contestants: list[tuple[Measured, Callable]], repetitions: int) -> None:
    """Times all of them in turn; the repetitions are put into each Measured."""
    rest = _SECONDS_UNTIL_THREADS_SLEEP if case.threads > 1 else 0.0
    calls = [call for _, call in contestants]
    times = _heed.time_in_turn(calls, case.threads, repetitions, _SECONDS_PER_REPETITION, rest)
    for (measured, _), (seconds, busy) in zip(contestants, times):
        measured.seconds += seconds
        measured.busy_threads += busy


def _summary(measured: Measured) -> dict:
    """One object in the form of `heed bench`."""
    rate = _heed.peak_rate(measured.case.threads)
    median, best = statistics.median(measured.seconds), min(measured.seconds)
    operations = measured.case.operations()
    return {
        "case": {**measured.case.describe(), "implementation": measured.peer},
        "median_ms": 1e3 * median,
        "best_ms": 1e3 * best,
        "quartiles_ms": [1e3 * float(x) for x in np.quantile(measured.seconds, [0.25, 0.75])],
        "gflops": operations / median / 1e9,
        "peak_gflops": rate / 1e9,
        "peak_share_median": operations / median / rate,
        "peak_share_best": operations / best / rate,
        "repetitions": len(measured.seconds),
        # Not the largest: a virtual machine of two processors charged single repetitions with 2.9.
        "busy_threads": statistics.median(measured.busy_threads),
    }


def summarize(all_measured: list[Measured]) -> list[dict]:
    return [_summary(measured) for measured in all_measured]
