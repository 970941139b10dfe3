"""What the extension exports, and what it may leave to others."""

import pathlib
import shutil
import subprocess
import sys

import heed
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests/support/exported_symbols.py"


def test_the_extension_exports_what_python_calls_and_nothing_else() -> None:
    """Symbols of the libraries inside it would meet those of the same libraries in other extensions."""
    found = subprocess.run([sys.executable, CHECK, heed._heed.__file__], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler")
def test_an_extension_that_uses_what_nothing_defines_is_not_built(tmp_path: pathlib.Path) -> None:
    """It would link, and not load. The interpreter's own functions may be missing."""
    source, extension = tmp_path / "extension.cc", tmp_path / "extension.so"
    for used, expected in [("int PyLong_Something(int)", 0), ("int heed_something(int)", 1)]:
        name = used.split()[1].split("(")[0]
        source.write_text(f'extern "C" {used};\nint f() {{ return {name}(1); }}\n')
        subprocess.run(["c++", "-shared", "-fPIC", source, "-o", extension], check=True)
        done = subprocess.run([ROOT / "cmake/refuse-undefined", extension], capture_output=True, text=True, check=False)
        assert done.returncode == expected
        assert ("heed_something" in done.stderr) == bool(expected)
