"""How the tests of ranks wait for mpirun, beside programs that behave like it."""

import pathlib
import subprocess
import sys

import mpirun
import pytest

# Starts a rank that runs briefly and waits for it. The first `stuck` runs wait forever.
LAUNCHER = """
import pathlib, subprocess, sys, time
runs, stuck = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rank = subprocess.Popen(["sleep", "2"])
runs.write_text(runs.read_text() + "x")
print("said", flush=True)
if len(runs.read_text()) <= stuck:
    time.sleep(60)
rank.wait()
sys.exit(3)
"""


def launch(runs: pathlib.Path, stuck: int, *, timeout: float = 30) -> subprocess.CompletedProcess:
    runs.write_text("")
    return mpirun.run([sys.executable, "-c", LAUNCHER, str(runs), str(stuck)], timeout=timeout, patience=3)


@pytest.mark.parametrize("stuck", [0, 1])
def test_what_waits_for_itself_is_run_again(stuck: int, tmp_path: pathlib.Path) -> None:
    done = launch(tmp_path / "runs", stuck)
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")
    assert (tmp_path / "runs").read_text() == "x" * (stuck + 1)


def test_what_never_ends_is_an_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(mpirun, "ATTEMPTS", 2)
    with pytest.raises(AssertionError, match="2 times mpirun did not end after its ranks"):
        launch(tmp_path / "runs", 2)
    assert capsys.readouterr().err.count("which printed b'said\\n'") == 2


def test_ranks_that_live_on_are_waited_for() -> None:
    program = "import subprocess; subprocess.run(['sleep', '5'])"
    assert mpirun.run([sys.executable, "-c", program], timeout=30, patience=3).returncode == 0
    with pytest.raises(subprocess.TimeoutExpired, match="1 seconds"):
        mpirun.run([sys.executable, "-c", program], timeout=1, patience=3)
