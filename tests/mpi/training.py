#!/usr/bin/env python3
"""`heed train` under mpirun: the losses of one process, the same bits again, one voice, checkpoints, a rank that is killed.

Usage: training.py HEED MPIRUN..."""

import array
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
import mpirun  # noqa: E402

HEED, *MPIRUN = sys.argv[1:]
SMALL = ["--d-model", "16", "--heads", "2", "--layers", "1", "--threads", "1"]
TINY = [*SMALL, "--context", "16", "--batch", "4"]
LIMIT = 180


def command(ranks: int, *arguments: object) -> list[str]:
    start = [*MPIRUN, "-n", str(ranks)] if ranks else []
    return [*start, HEED, "train", *map(str, arguments)]


def run(ranks: int, *arguments: object) -> subprocess.CompletedProcess:
    return mpirun.run(command(ranks, *arguments), timeout=LIMIT)


def result(ranks: int, *arguments: object, steps: int = 30) -> dict:
    done = run(ranks, *arguments, "--steps", steps, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1, done.stdout
    assert done.stderr.count(f"step {steps}/{steps}") == 1, done.stderr
    return json.loads(done.stdout)


def model(folder: pathlib.Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def header(file: bytes) -> tuple[dict, bytes]:
    """What a safetensors file says of itself, and the bytes of its tensors."""
    length = int.from_bytes(file[:8], "little")
    return json.loads(file[8 : 8 + length]), file[8 + length :]


def weights(folder: pathlib.Path) -> array.array:
    """All weights but the biases of keys, which change no softmax: of their gradients, rounding errors, Adam makes whole steps."""
    tensors, content = header(model(folder))
    found = array.array("f")
    for name, tensor in tensors.items():
        if name != "__metadata__" and not name.endswith("k_proj.bias"):
            found.frombytes(content[slice(*tensor["data_offsets"])])
    return found


def check_losses(folder: pathlib.Path) -> None:
    alone = result(0, "lm", *TINY)
    for ranks in (1, 2, 3, 5):  # the fifth has no sequence
        runs = [folder / f"{ranks}-{i}" for i in range(2)]
        for save in runs:
            loss = result(ranks, "lm", *TINY, "--save", save)["loss"]
            assert abs(loss - alone["loss"]) < 1e-4, (ranks, loss, alone["loss"])
        assert model(runs[0]) == model(runs[1]), ranks
    copy = ["copy", "--length", "3", "--symbols", "4", "--batch", "5", "--threads", "1"]
    result(0, *copy, "--save", folder / "copy")
    result(3, *copy, "--save", folder / "copy3")
    one, three = weights(folder / "copy"), weights(folder / "copy3")
    assert len(one) == len(three) > 1000
    assert max(abs(x - y) for x, y in zip(one, three)) < 1e-5


def check_context_parallel(folder: pathlib.Path) -> None:
    """Sequences of three segments of 1024, the last one of 52."""
    long = [*SMALL, "--context", 2100, "--batch", 2, "--positions", "rotary"]
    alone = result(0, "lm", *long, "--context-parallel", steps=5)
    for ranks in (2, 4):  # the fourth has no token
        runs = [folder / f"long-{ranks}-{i}" for i in range(2)]
        for save in runs:
            loss = result(ranks, "lm", *long, "--context-parallel", "--save", save, steps=5)["loss"]
            assert abs(loss - alone["loss"]) < 1e-4, (ranks, loss, alone["loss"])
        assert model(runs[0]) == model(runs[1]), ranks
    done = run(3, "lm", "--resume", folder / "long-2-0", "--context-parallel", "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert abs(json.loads(done.stdout)["loss"] - alone["loss"]) < 1e-4, done.stdout


def check_errors(folder: pathlib.Path) -> None:
    cases = [
        (2, ["lm", "--heads", "3"], "--d-model is 64, expected a multiple of --heads, 3"),
        (2, ["lm", "--no-such-option"], "--no-such-option"),
        (1, ["lm", "--text", folder / "nowhere"], "rank 0: cannot read"),
        (1, ["lm", "--resume", folder / "nowhere"], "nowhere' has no checkpoint"),
        (1, ["lm", *TINY, "--save", folder / "2-0"], "holds a run already"),
        (2, ["translate"], "heed train translate: train translate does not divide its work: 3 processes were started"),
    ]
    for code, arguments, text in cases:
        done = run(3, *arguments)
        assert done.returncode == code, (arguments, done)
        assert done.stderr.count(text) == 1, (arguments, done.stderr)
        assert done.stdout == "" or "mpirun" in done.stdout, done.stdout


def pid_of_rank(launcher: int, rank: int) -> int:
    names = [f"{name}={rank}".encode() for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")]
    for child in mpirun.children(launcher):
        try:
            environment = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:  # the process has ended
            continue
        if any(name in environment for name in names):
            return child
    raise AssertionError(f"mpirun has no child of rank {rank}")


def step_of(checkpoint: pathlib.Path) -> int:
    return int(header(checkpoint.read_bytes())[0]["__metadata__"]["step"]) if checkpoint.exists() else -1


def check_killed(folder: pathlib.Path) -> None:
    save = folder / "killed"
    arguments = command(3, "lm", *TINY, "--steps", 2000, "--save-every", 10, "--save", save)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        end = time.monotonic() + LIMIT
        while step_of(save / "checkpoint.safetensors") < 20 and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(pid_of_rank(process.pid, 1), signal.SIGKILL)
        killed = time.monotonic()
        said = mpirun.communicate(process, timeout=LIMIT)
    seconds = time.monotonic() - killed
    print(f"a rank was killed: over after {seconds:.1f} s")
    assert process.returncode != 0 and seconds < LIMIT, (process.returncode, seconds)
    assert said is None or "rank 1" in said[0], said
    step = step_of(save / "checkpoint.safetensors")
    assert 20 <= step < 2000 and step % 10 == 0, step
    done = run(2, "lm", "--resume", save, "--threads", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["loss"] < 3, done.stdout
    assert step_of(save / "checkpoint.safetensors") == 2000


def check_interrupted(folder: pathlib.Path) -> None:
    save = folder / "interrupted"
    arguments = command(2, "lm", *TINY, "--steps", 100000, "--save-every", 100000, "--save", save)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        end = time.monotonic() + LIMIT
        while step_of(save / "checkpoint.safetensors") < 0 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(3)
        os.kill(process.pid, signal.SIGTERM)
        said = mpirun.communicate(process, timeout=LIMIT)
    print(f"mpirun was ended: exit code {process.returncode}, at step {step_of(save / 'checkpoint.safetensors')}")
    assert process.returncode != 0, said
    assert step_of(save / "checkpoint.safetensors") > 0, said


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for check in (check_losses, check_context_parallel, check_errors, check_killed, check_interrupted):
            start = time.monotonic()
            check(folder)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
