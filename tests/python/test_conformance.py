"""The ONNX standard's cases: those that lie here, and those in the folder that HEED_CONFORMANCE names."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from heed.conformance import graph, messages, operators
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


def function_of(*nodes: messages.Node, **initializers: np.ndarray) -> messages.Graph:
    return messages.Graph(list(nodes), ["scores"], [nodes[-1].outputs[0]], initializers)


def node(op_type: str, inputs: str, output: str, **attributes: object) -> messages.Node:
    return messages.Node("", op_type, inputs.split(), [output], attributes)


SHAPE = (2, 4, 70, 90)
BIAS = np.random.default_rng(0).standard_normal((4, 1, 90)).astype(np.float32)
# A window that differs from head to head, then a cap, then a bias: what belongs to positions is made of Shape and Range.
ELEMENTWISE = function_of(
    node("Shape", "scores", "extents"),
    node("Gather", "extents two", "q_len"),
    node("Gather", "extents three", "kv_len"),
    node("Range", "zero q_len one", "q_range"),
    node("Unsqueeze", "q_range last", "q_idx"),
    node("Range", "zero kv_len one", "kv_idx"),
    node("Sub", "q_idx kv_idx", "distance"),
    node("Less", "distance widths", "is_near"),
    node("Tanh", "scores", "capped"),
    node("Mul", "capped bias", "weighed"),
    node("Add", "weighed scores", "sum"),
    node("Where", "is_near sum hidden", "out"),
    zero=np.int64(0), one=np.int64(1), two=np.int64(2), three=np.int64(3), last=np.array([-1]), bias=BIAS,
    widths=np.arange(-30, 50, 20).reshape(4, 1, 1), hidden=np.full((1, 1, 1, 1), -np.inf, np.float32),
)  # fmt: skip


def run_flex(attributes: dict, path: str) -> np.ndarray:
    random = np.random.default_rng(1)
    shapes = [(2, heads, length, 16) for heads, length in ((4, 70), (2, 90), (2, 90))]
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    flex = messages.Node("ai.onnx.preview", "FlexAttention", ["Q", "K", "V"], ["Y"], attributes)
    return operators.run(flex, arrays, path)[0]


def test_functions_of_single_scores_run_on_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {"score_mod": ELEMENTWISE}
    expected = run_flex(attributes, "reference")
    assert np.isfinite(expected).all() and (expected == 0).all(axis=-1).any()  # some see nothing
    monkeypatch.setattr(operators.heed.reference, "flex_attention", None)
    np.testing.assert_allclose(run_flex(attributes, "fused"), expected, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        function_of(node("Softmax", "scores", "out")),
        function_of(node("ReduceMax", "scores", "largest"), node("Sub", "scores largest", "out")),
        function_of(node("Transpose", "scores", "out", perm=[0, 1, 2, 3])),
        function_of(node("Add", "scores more", "out"), more=np.zeros((1, 2, 4, 70, 90), np.float32)),
        function_of(node("Identity", "constant", "out"), constant=np.zeros(SHAPE, np.float32)),
    ],
    ids=["softmax", "reduce", "transpose", "rank", "constant"],
)
def test_functions_of_more_than_single_scores_want_the_matrix(function: messages.Graph) -> None:
    assert graph.as_score_mod(function, SHAPE) is None
    assert graph.as_score_mod(ELEMENTWISE, SHAPE) is not None


def test_functions_of_the_matrix_are_computed_on_either_path() -> None:
    attributes = {"score_mod": function_of(node("ReduceMax", "scores", "largest"), node("Sub", "scores largest", "out"))}
    np.testing.assert_array_equal(run_flex(attributes, "fused"), run_flex(attributes, "reference"))
    np.testing.assert_allclose(run_flex(attributes, "fused"), run_flex({}, "fused"), atol=1e-5)
