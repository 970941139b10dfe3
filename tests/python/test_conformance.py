"""The ONNX standard's cases: those that lie here, and those in the folder that HEED_CONFORMANCE names."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from heed.conformance import graph, messages
from heed.conformance.cases import difference, find_cases, run_case

HERE = pathlib.Path(__file__).resolve().parent.parent / "data" / "onnx"
FOLDERS = [HERE] + [pathlib.Path(folder) for folder in os.environ.get("HEED_CONFORMANCE", "").split(os.pathsep) if folder]
CASES = [case for folder in FOLDERS for case in find_cases(folder)]


@pytest.mark.parametrize("path", ["fused", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: pathlib.Path, path: str) -> None:
    assert run_case(case, path).error == ""


def run(*arguments: object, build: pathlib.Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "heed.conformance", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def copy_case(case: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    copy = folder / case.name
    for file in case.rglob("*.*"):
        if file.is_file():
            target = copy / file.relative_to(case)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    return copy


def test_command_counts(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = run(HERE, build=build)
    count = len(find_cases(HERE))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == count + 1 and lines[-1] == f"{count} passed, 0 failed"

    copy = copy_case(find_cases(HERE)[0], tmp_path)
    expected = copy / "test_data_set_0" / "output_0.pb"
    data = bytearray(expected.read_bytes())
    data[-1] ^= 0x40  # the exponent of the last number
    expected.write_bytes(data)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.onnx").write_bytes(b"\x3a\x7f")
    done = run(tmp_path, build=build)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 2 failed"
    assert "FAILED broken: FormatError: byte 2: 127 bytes were announced, 0 are left" in done.stdout
    assert "elements differ; at [" in done.stdout

    done = run(tmp_path / "nothing", build=build)
    assert done.returncode == 2 and "no folder with a model.onnx" in done.stderr


def tensor(array: np.ndarray, type_name: str) -> messages.Tensor:
    return messages.Tensor("", array, type_name)


def test_tolerance() -> None:
    expected = tensor(np.array([1, 1e-5, -np.inf, np.nan], np.float32), "float32")
    exact = expected.array
    assert difference(exact, expected) == ""
    assert difference(exact + np.array([9e-5, 0, 0, 0], np.float32), expected) == ""
    assert "at [0]" in difference(exact + np.array([2e-4, 0, 0, 0], np.float32), expected)
    assert difference(exact + np.array([0, 5e-8, 0, 0], np.float32), expected) == ""
    assert "at [1]" in difference(exact + np.array([0, 3e-7, 0, 0], np.float32), expected)
    assert "at [2]" in difference(np.array([1, 1e-5, 0, np.nan], np.float32), expected)
    assert "at [3]" in difference(np.array([1, 1e-5, -np.inf, 0], np.float32), expected)
    assert difference(exact.astype(np.float64), expected) == "type float64, expected float32"
    assert difference(exact[:2], expected) == "shape [2], expected [4]"
    half = tensor(np.array([1], np.float16), "float16")
    assert difference(np.array([1.01], np.float16), half) == ""


def test_functions_of_scores() -> None:
    x = np.arange(-3, 3, dtype=np.float32).reshape(1, 1, 2, 3)

    def evaluate(op_type: str, *inputs: np.ndarray, **attributes: object) -> np.ndarray:
        names = [str(i) for i in range(len(inputs))]
        node = messages.Node("", op_type, names, ["out"], attributes)
        return graph.as_function(messages.Graph([node], names, ["out"], {}))(*inputs)

    integers = np.array([-7, 7], np.int64)
    assert evaluate("Div", integers, np.int64(2)).tolist() == [-3, 3]
    assert evaluate("Clip", x, np.float32(-1), np.float32(1)).max() == 1
    assert evaluate("Softmax", x).sum() == pytest.approx(2)
    assert evaluate("ReduceSum", x, np.array([-1]), keepdims=0).shape == (1, 1, 2)
    assert evaluate("Slice", x, np.array([2]), np.array([-9]), np.array([3]), np.array([-1])).shape == x.shape
    assert evaluate("Cast", x, to=7).dtype == np.int64
    with pytest.raises(graph.Unsupported, match="Einsum"):
        evaluate("Einsum", x)
