"""Test cases of the ONNX standard: a folder each, with model.onnx and tensors in test_data_set_*."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import messages, operators

# A difference may be so many times the expected number, or as many times 1e-3 where that is smaller.
_TOLERANCES = {"float32": 1e-4, "float64": 1e-4, "float16": 2e-2, "bfloat16": 2e-2}
_SMALLEST_MAGNITUDE = 1e-3


@dataclass
class Outcome:
    name: str
    error: str = ""  # empty: passed

    def __str__(self) -> str:
        return f"FAILED {self.name}: {self.error}" if self.error else f"passed {self.name}"


def find_cases(folder: Path) -> list[Path]:
    """The cases in a folder, in the order of their names; the folder itself may be one."""
    if (folder / "model.onnx").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/model.onnx"))


def _read_tensors(folder: Path, kind: str, names: list[str]) -> list[messages.Tensor | None]:
    """The files KIND_0.pb, KIND_1.pb, …, one for each name that is not empty."""
    tensors: list[messages.Tensor | None] = []
    count = 0
    for name in names:
        if not name:
            tensors.append(None)
            continue
        tensors.append(messages.parse_tensor((folder / f"{kind}_{count}.pb").read_bytes()))
        count += 1
    return tensors


def difference(found: np.ndarray, expected: messages.Tensor) -> str:
    """What is wrong with an output; empty when nothing is."""
    wanted = expected.array
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)}, expected {list(wanted.shape)}"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype}, expected {wanted.dtype}"
    if expected.type_name not in _TOLERANCES:
        return "" if np.array_equal(found, wanted) else "other numbers"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    tolerance = _TOLERANCES[expected.type_name]
    with np.errstate(invalid="ignore"):
        error = np.abs(a - b) / np.maximum(np.abs(b), _SMALLEST_MAGNITUDE)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    wrong = ~same & ~(np.isfinite(b) & (error <= tolerance))
    if not wrong.any():
        return ""
    at = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(error, nan=np.inf), -1)), wrong.shape)
    index = ", ".join(str(int(i)) for i in at)
    return f"{int(wrong.sum())} of {wrong.size} elements differ; at [{index}] {a[at]:g}, expected {b[at]:g}"


def _run_data_set(node: messages.Node, folder: Path, path: str) -> str:
    inputs = _read_tensors(folder, "input", node.inputs)
    expected = _read_tensors(folder, "output", node.outputs)
    outputs = operators.run(node, [tensor and tensor.array for tensor in inputs], path)
    for name, found, wanted in zip(node.outputs, outputs, expected):
        if wanted is None:
            continue
        if found is None:
            return f"{name}: not computed"
        problem = difference(found, wanted)
        if problem:
            return f"{name}: {problem}"
    return ""


def run_case(folder: Path, path: str) -> Outcome:
    """One case on one path, "fused" or "reference"."""
    try:
        graph = messages.parse_model((folder / "model.onnx").read_bytes())
        if len(graph.nodes) != 1:
            return Outcome(folder.name, f"the model has {len(graph.nodes)} nodes, expected 1")
        data_sets = sorted(folder.glob("test_data_set_*"))
        if not data_sets:
            return Outcome(folder.name, "there is no test_data_set_0")
        for data_set in data_sets:
            problem = _run_data_set(graph.nodes[0], data_set, path)
            if problem:
                return Outcome(folder.name, problem)
    except Exception as error:  # noqa: BLE001: whatever went wrong, the case failed and the next one is run
        return Outcome(folder.name, f"{type(error).__name__}: {error}")
    return Outcome(folder.name)
