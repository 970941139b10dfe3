"""python -m heed.conformance FOLDER: see docs/conformance.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .cases import find_cases, run_case


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m heed.conformance",
        description="Run test cases of the ONNX standard on heed: Attention, FlexAttention, LinearAttention, "
        "RotaryEmbedding and TensorScatter. Exit status 0 when all passed, 1 when one failed, 2 for a misuse.",
    )
    parser.add_argument("folder", type=Path, help="holds a folder for each case, with model.onnx and test_data_set_0")
    parser.add_argument(
        "--path", choices=["fused", "reference"], default="fused", help="what computes: the kernels, or the plain loops"
    )
    chosen = parser.parse_args(arguments)
    cases = find_cases(chosen.folder)
    if not cases:
        parser.error(f"{chosen.folder}: no folder with a model.onnx")
    failed = 0
    for case in cases:
        outcome = run_case(case, chosen.path)
        failed += bool(outcome.error)
        print(outcome, flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
