"""Fixtures that run what lies in the build folder, for the tests in Python and in the browser."""

import os
import pathlib
import subprocess
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    return pathlib.Path(os.environ["HEED_BUILD"]).resolve()


@pytest.fixture(scope="session")
def heed(build: pathlib.Path) -> Callable[..., str]:
    """Runs the command with the given arguments and returns what it prints; fails when it fails."""

    def run(*arguments: object) -> str:
        command = [str(build / "heed"), *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run
