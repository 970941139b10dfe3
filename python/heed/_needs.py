"""Packages that a part of heed computes with and that the rest can do without."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def needed_by(part: str) -> Iterator[None]:
    """Says what to install where an import within does not find a package."""
    try:
        yield
    except ModuleNotFoundError as error:
        # A module that is missing in a package is another matter.
        if error.name is None or "." in error.name:
            raise
        message = f"{part} needs {error.name}, which is not installed: pip install {error.name}"
        raise ModuleNotFoundError(message, name=error.name) from None
