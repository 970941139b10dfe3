#!/usr/bin/env python3
"""Records repetitions of `heed bench` of which it is known when another program ran: tests/data/quiet.

Usage: record_quiet.py HEED FILE [--seconds N] [--work WORK…] [--threads N…] [--disturbance NAME…] [--append]

For each kind of work, number of threads and disturbance, `heed bench forward --samples` runs while this program disturbs it: programs
start and rest again at random, and write down when. FILE gets every repetition with its probes and the share of its time during
which one of them ran. What else the machine does meanwhile is not known: let it rest."""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

# Arguments of `heed bench forward`: in the caches of a core, longer calls, and bound by memory.
WORK = {
    "short": ["--seq", "128"],
    "long": ["--seq", "512"],
    "memory": ["--seq", "1", "--kv-seq", "65536"],
}
# The number of disturbing programs, their work, and the ranges of their seconds of rest and of work.
DISTURBANCES = {
    "none": (0, "", (1, 1), (1, 1)),
    "compute": (1, "compute", (0.08, 0.4), (0.03, 0.3)),
    "memory": (1, "memory", (0.08, 0.4), (0.03, 0.3)),
    "processes": (1, "processes", (0.08, 0.4), (0.03, 0.3)),
    "two": (2, "compute", (0.08, 0.4), (0.03, 0.3)),
    "bursts": (2, "compute", (0.02, 0.06), (0.001, 0.004)),
}


ABOUT = """Each run of `heed bench forward --samples` was disturbed by programs of known times, as benchmarks/record_quiet.py says. \
probes: calls of attention a second and seconds of a read, one before each repetition and one behind the last; repetitions: seconds of a \
call, share of waiting, share of its time during which such a program ran."""


def disturb(what, rest, busy, seed, intervals):
    """Works and rests until it is terminated; puts (begin, end) of each piece of work into the queue."""
    draw = random.Random(seed)
    matrix = np.ones((128, 128), np.float32)
    memory = np.ones(1 << 24, np.float32) if what == "memory" else None
    while True:
        time.sleep(draw.uniform(*rest))
        begin = time.monotonic()
        end = begin + draw.uniform(*busy)
        while time.monotonic() < end:
            if what == "compute":
                matrix @ matrix
            elif what == "memory":
                memory += 1
            else:
                subprocess.run(["/bin/true"], check=True)
        intervals.put((begin, time.monotonic()))


def overlap(begin, end, intervals):
    return sum(max(0.0, min(end, stop) - max(begin, start)) for start, stop in intervals)


def rounded(rows):
    return [[float(f"{number:.3g}") for number in row] for row in rows]


def record(heed, work, threads, disturbance, repetitions, seed):
    count, what, rest, busy = DISTURBANCES[disturbance]
    queue = multiprocessing.Queue()
    programs = [
        multiprocessing.Process(target=disturb, args=(what, rest, busy, 10 * seed + i, queue), daemon=True)
        for i in range(count)
    ]
    for program in programs:
        program.start()
    command = [heed, "bench", "forward", *WORK[work], "--threads", threads, "--repeat", repetitions]
    out = subprocess.run([*map(str, command), "--json", "--samples"], check=True, capture_output=True, text=True).stdout
    time.sleep(0.5 if count else 0)  # lets programs that still work record it
    for program in programs:
        program.terminate()
    intervals = []
    while not queue.empty():
        intervals.append(queue.get())
    samples = json.loads(out)["results"][0]["samples"]
    probes = [one[3:5] for one in samples] + [samples[-1][5:7]]
    rows = [[one[2], one[7], overlap(one[0], one[0] + one[1], intervals) / one[1]] for one in samples]
    print(f"{work}, {threads} threads, {disturbance}: {len(rows)} repetitions in {samples[-1][0] - samples[0][0]:.1f} s", flush=True)
    run = {"work": work, "threads": threads, "disturbance": disturbance, "settled_rate": samples[0][8]}
    return run | {"probes": rounded(probes), "repetitions": rounded(rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heed")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=2.5, help="of each run, about")
    parser.add_argument("--work", choices=list(WORK), nargs="+", default=list(WORK))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--disturbance", choices=list(DISTURBANCES), nargs="+", default=list(DISTURBANCES))
    parser.add_argument("--append", action="store_true", help="to what the file has")
    arguments = parser.parse_args()
    runs = json.loads(arguments.file.read_text(encoding="utf-8"))["runs"] if arguments.append else []
    for work in arguments.work:
        for threads in arguments.threads:
            for disturbance in arguments.disturbance:
                seconds = {"short": 0.005, "long": 0.04, "memory": 0.01}[work]
                repetitions = max(20, round(arguments.seconds / seconds))
                runs.append(record(arguments.heed, work, threads, disturbance, repetitions, len(runs)))
    lines = ",\n".join(json.dumps(run, separators=(",", ":")) for run in runs)
    arguments.file.write_text(f'{{"about": {json.dumps(ABOUT)},\n"runs":[\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
