#!/usr/bin/env python3
"""`heed bench distributed` under mpirun: the ranks there are, one voice, one error.

Usage: bench.py HEED MPIRUN..."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
import mpirun  # noqa: E402

HEED, *MPIRUN = sys.argv[1:]
SMALL = ["--seq", "2100", "--heads", "2", "--head-dim", "8", "--repeat", "2"]
LIMIT = 180


def run(ranks: int, *arguments: object) -> subprocess.CompletedProcess:
    command = [*MPIRUN, "-n", str(ranks), HEED, "bench", "distributed", *map(str, arguments)]
    return mpirun.run(command, timeout=LIMIT)


def check_report() -> None:
    for ranks in (2, 3):
        done = run(ranks, *SMALL, "--pass", "forward,backward", "--threads", ranks, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(done.stdout.splitlines()) == 1, done.stdout
        forward, backward = json.loads(done.stdout)["results"]
        for row, name in ((forward, "forward"), (backward, "backward")):
            case = row["case"]
            assert (case["pass"], case["seq"], case["ranks"], case["threads"]) == (name, 2100, ranks, 1), case
            assert row["median_ms"] > 0 and 0 < row["waiting_share"] < 1, row
            assert row["repetitions"] == 2, row
            assert (row["one_process_ms"] is None) == (row["efficiency"] is None), row
            if row["efficiency"] is not None:
                assert abs(row["efficiency"] * row["median_ms"] / row["one_process_ms"] - 1) < 1e-9, row
        # Two segments and 52 tokens; the last of three ranks reads the two before it.
        segments = {2: 1, 3: 2}[ranks]
        assert forward["bytes_received"] == segments * 1024 * 2 * (8 + 8) * 4, forward


def check_many_threads() -> None:
    """More than the first rank has processors for: it is not measured alone."""
    processors = os.cpu_count()
    done = run(2, *SMALL, "--threads", 2 * processors)
    assert done.returncode == 0, done.stdout + done.stderr
    row = done.stdout.splitlines()[2].split()
    assert row[:5] == ["forward", "2100", "tokens", "2", str(processors)] and row[7:9] == ["-", "-"], done.stdout


def check_errors() -> None:
    cases = [
        (["--ranks", "2"], "--ranks: 2 processes were started, which are the ranks"),
        (["--mask", "banana"], "--mask"),
        (["--kv-heads", "3"], "num_heads is 2, expected a multiple of num_kv_heads, 3"),
    ]
    for arguments, text in cases:
        done = run(2, *SMALL, *arguments)
        assert done.returncode == 2, (arguments, done)
        assert done.stderr.count("heed bench distributed: ") == 1 and text in done.stderr, (arguments, done.stderr)


if __name__ == "__main__":
    for check in (check_report, check_many_threads, check_errors):
        check()
