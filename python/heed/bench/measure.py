"""Measuring, in turn: each repetition times every peer once, so that whatever else the machine does meets all alike."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field

import numpy as np

import torch

from .cases import Case
from .peers import Manual, flat

# A repetition is as many calls as fill this time.
SECONDS_PER_REPETITION = 5e-3
# OpenMP's threads spin for some milliseconds after a call; with several threads that would disturb whoever is next.
SECONDS_UNTIL_THREADS_SLEEP = 0.03
# Of float32 against float64, relative to the largest element.
LARGEST_ERROR = 2e-5


@dataclass
class Measured:
    """One peer's times for one case, in seconds a call."""

    case: Case
    peer: str
    seconds: list[float] = field(default_factory=list)

    def summary(self) -> dict:
        median = statistics.median(self.seconds)
        low, high = np.quantile(self.seconds, [0.25, 0.75])
        return {
            "case": vars(self.case),
            "peer": self.peer,
            "median_ms": 1e3 * median,
            "quartiles_ms": [1e3 * float(low), 1e3 * float(high)],
            "best_ms": 1e3 * min(self.seconds),
            "gflops": self.case.operations() / median / 1e9,
            "repetitions": len(self.seconds),
        }


def expected(case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    """What every peer must return, by the textbook's steps in double."""
    *inputs, grad_out = (torch.from_numpy(array).double() for array in (*arrays, arrays[0])[:4])
    inputs = [tensor.requires_grad_(case.is_backward) for tensor in inputs]
    out = Manual().attend(case, *inputs)
    return flat(torch.autograd.grad(out, inputs, grad_out)) if case.is_backward else out[0].numpy()


def check(case: Case, peer, result: np.ndarray, right: np.ndarray) -> None:
    error = np.abs(result - right).max() / max(1.0, np.abs(right).max())
    if not error <= LARGEST_ERROR:
        sys.exit(f"heed.bench: {peer.title} is wrong by {error:.1e}: {case}")


def seconds_per_call(call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def measure(case: Case, peers: list, repetitions: int) -> list[Measured]:
    """Checks every peer's result, then times all of them in alternation."""
    arrays = case.arrays()
    right = expected(case, arrays)
    contestants = []
    for peer in peers:
        if peer.can(case):
            call, result = peer.prepare(case, arrays)
            check(case, peer, result(), right)
            count = max(1, round(SECONDS_PER_REPETITION / seconds_per_call(call, 1)))
            contestants.append((Measured(case, peer.title), call, count))
    for _ in range(repetitions):
        for measured, call, count in contestants:
            if case.threads > 1:
                time.sleep(SECONDS_UNTIL_THREADS_SLEEP)
            call()  # brings its operands back into the cache
            measured.seconds.append(seconds_per_call(call, count))
    return [measured for measured, _, _ in contestants]
