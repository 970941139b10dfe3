#!/usr/bin/env python3
"""How programs end whose ranks fail: all with the same error, or soon and with a text that names the rank.

Usage: endings.py PROGRAM MPIRUN..."""

import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
import mpirun  # noqa: E402

# The argument, mpirun's exit code, the printed text and how often.
CASES = [
    ("well", 0, "", 0),
    ("agreed", 3, "caught rank 2: the disk is full", 3),
    ("alone", 1, "heed: rank 2 failed: the disk is full", 1),
    ("sending", 1, "heed: rank 2: send to rank 0 with tag 0: an exception left", 1),
    ("outside", 1, "heed: rank 1: an exception left the session of MPI", 1),
    ("killed", 134, "rank 2 ", 1),
]
LIMIT = 180  # seconds, also where other tests keep the processors busy


def main() -> int:
    program, *launcher = sys.argv[1:]
    problems = []
    for how, code, text, count in CASES:
        start = time.monotonic()
        done = mpirun.run([*launcher, "-n", "3", program, how], timeout=LIMIT)
        seconds = time.monotonic() - start
        said = done.stdout + done.stderr
        print(f"{how}: exit code {done.returncode}, {seconds:.1f} s")
        found = sum(text in line for line in said.splitlines()) if text else 0
        if done.returncode != code or found != count:
            problems.append(f"{how}: expected exit code {code} and {count} times {text!r}, found {found} in\n{said}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
