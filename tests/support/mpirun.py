"""Runs mpirun, which does not always end when its ranks have.

OpenMPI 4.1 with PMIx 4.2, as in Debian 12, now and then waits for itself after a rank called MPI_Abort: all ranks have
ended, and in PMIx_server_finalize mpirun joins its thread of progress, which waits for a lock. Such a run has no exit code
that would say anything, so it is made again."""

import pathlib
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

# The number of mpirun attempts that may hang, one after the other.
ATTEMPTS = 4


def children(pid: int) -> dict[int, str]:
    """The processes that `pid` started and has not collected, by their states: Z has ended."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[:2]
        except OSError:  # the process has ended
            continue
        if int(parent) == pid:
            found[int(entry.name)] = state
    return found


def communicate(process: subprocess.Popen, *, timeout: float, patience: float = 15) -> tuple[str, str] | None:
    """What mpirun printed until it ended, to stdout and stderr; None if it did not end within `patience` seconds after its
    ranks and was killed. Raises TimeoutExpired after `timeout` seconds, when it was killed too."""
    end, last_seen = time.monotonic() + timeout, None
    while True:
        try:
            return process.communicate(timeout=0.2)
        except subprocess.TimeoutExpired as error:
            now = time.monotonic()
            if any(state not in "ZX" for state in children(process.pid).values()):
                last_seen = now
            waits_for_itself = process.poll() is None and last_seen is not None and now - last_seen > patience
            if not waits_for_itself and now < end:
                continue
            process.kill()
            process.wait()
            if waits_for_itself:
                print(f"mpirun did not end after its ranks, which printed {error.output!r}, {error.stderr!r}", file=sys.stderr)
                return None
            raise subprocess.TimeoutExpired(process.args, timeout, error.output, error.stderr) from None


def run(
    command: Sequence[str], *, timeout: float, patience: float = 15, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess:
    """As subprocess.run(command, capture_output=True, text=True), once more where mpirun waits for itself; the timeout is
    of each run."""
    for _ in range(ATTEMPTS):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
            said = communicate(process, timeout=timeout, patience=patience)
        if said is not None:
            return subprocess.CompletedProcess(command, process.returncode, *said)
    raise AssertionError(f"{ATTEMPTS} times mpirun did not end after its ranks: {command}")
