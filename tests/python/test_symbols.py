"""What the extension exports."""

import pathlib
import subprocess
import sys

import heed

CHECK = pathlib.Path(__file__).parents[1] / "support/exported_symbols.py"


def test_the_extension_exports_what_python_calls_and_nothing_else() -> None:
    """Symbols of the libraries inside it would meet those of the same libraries in other extensions."""
    found = subprocess.run([sys.executable, CHECK, heed._heed.__file__], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
