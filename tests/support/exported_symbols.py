#!/usr/bin/env python3
"""Checks that a shared library exports symbols of its own only, and that no table of functions can be written to.

Usage: exported_symbols.py LIBRARY..."""

import re
import subprocess
import sys
from pathlib import Path

# Symbols in the namespace heed: functions and variables, their type information and virtual tables, thunks, guards and
# static variables.
OF_LIBRARY = re.compile(r"_Z(T[ISTV]|T[hv][n0-9_]+|GV|Z)*NK?4heed\w*")
# The entry point that Python calls.
OF_EXTENSION = re.compile(r"PyInit__heed")


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library: Path) -> list[str]:
    """The names, without the version that a symbol may have."""
    lines = output("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    return [line.split()[0].split("@")[0] for line in lines]


def foreign(library: Path) -> list[str]:
    own = OF_EXTENSION if library.name.startswith("_heed.") else OF_LIBRARY
    return [name for name in exported(library) if not own.fullmatch(name)]


def is_read_only_once_loaded(library: Path) -> bool:
    """Whether relocations are done at the start and write-protected afterwards ("full RELRO")."""
    headers = output("readelf", "--wide", "--program-headers", "--dynamic", library)
    return "GNU_RELRO" in headers and re.search(r"\((FLAGS|FLAGS_1|BIND_NOW)\).*\b(BIND_NOW|NOW)\b", headers) is not None


def main() -> int:
    problems = []
    for library in map(Path, sys.argv[1:]):
        others = foreign(library)
        if others:
            problems.append(f"{library} exports {len(others)} symbols of others, such as {', '.join(others[:5])}")
        if not exported(library):
            problems.append(f"{library} exports nothing")
        if not is_read_only_once_loaded(library):
            problems.append(f"{library} leaves tables of functions writable")
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
