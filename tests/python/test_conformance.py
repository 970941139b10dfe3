"""The ONNX standard's cases: those that lie here, and those in the folder that HEED_CONFORMANCE names."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from heed.conformance import graph, messages, operators, tensor_scatter
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
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


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
# A window that differs between heads, then a softcap, then a bias. Shape and Range give the positions.
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
    assert np.isfinite(expected).all() and (expected == 0).all(axis=-1).any()  # some rows see nothing
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


def scattered(past: np.ndarray, update: np.ndarray, write_indices: np.ndarray, axis: int, mode: str) -> np.ndarray:
    """TensorScatter as the standard's pseudocode has it."""
    present = past.copy()
    for prefix in np.ndindex(past.shape[:axis]):
        for row in range(update.shape[axis]):
            at = write_indices[prefix[0]] + row
            at = at % past.shape[axis] if mode == "circular" else at
            present[(*prefix, at)] = update[(*prefix, row)]
    return present


def run_scatter(past, update, write_indices, path: str = "fused", **attributes: object) -> np.ndarray:
    names = ["past_cache", "update", "write_indices"]
    scatter = messages.Node("", "TensorScatter", names, ["present_cache"], attributes)
    return operators.run(scatter, [past, update, write_indices], path)[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32"])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 7, 5), -2), ((3, 2, 7, 5), 2), ((3, 7, 2, 5), 1), ((3, 2, 7), -1)])
@pytest.mark.parametrize("path", ["fused", "reference"])
def test_tensor_scatter(path: str, shape: tuple[int, ...], axis: int, mode: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    past = (100 * random.standard_normal(shape)).astype(dtype)
    before = past.copy()
    positive = axis % past.ndim
    for length, indices in ((1, [0, 3, 6]), (4, [0, 3, 1]), (7, [0, 0, 0]), (0, [0, 7, 2])):
        update = (100 * random.standard_normal((*shape[:positive], length, *shape[positive + 1 :]))).astype(dtype)
        indices = np.array(indices) + (6 if mode == "circular" else 0)
        found = run_scatter(past, update, indices, path, axis=axis, mode=mode)
        assert found.dtype == past.dtype
        np.testing.assert_array_equal(found, scattered(past, update, indices, positive, mode))
    np.testing.assert_array_equal(past, before)
    update = np.take(past, [2, 4], axis=positive)
    np.testing.assert_array_equal(
        run_scatter(past, update, None, path, axis=axis), scattered(past, update, np.zeros(3, int), positive, "linear")
    )


def test_tensor_scatter_is_an_append(monkeypatch: pytest.MonkeyPatch) -> None:
    past, update = np.ones((2, 3, 8, 4), np.float32), np.zeros((2, 3, 2, 4), np.float32)
    lengths: list[int] = []

    class Sequence(tensor_scatter.heed.KvSequence):
        def append(self, key, value):
            lengths.append(key.shape[1])
            super().append(key, value)

    monkeypatch.setattr(tensor_scatter.heed, "KvSequence", Sequence)
    run_scatter(past, update, np.array([1, 6]))
    assert lengths == [8, 2, 8, 2]
    run_scatter(past, update, np.array([1, 6]), "reference")
    run_scatter(past, update, np.array([1, 6]), mode="circular")
    assert len(lengths) == 4


PAST = np.zeros((2, 1, 4, 5), np.float32)


@pytest.mark.parametrize(
    ("text", "update_shape", "indices", "attributes"),
    [
        (r"a write index is 4, expected 0 to 3", (2, 1, 1, 5), [0, 4], {}),
        (r"a write index is -1, expected 0 to 3", (2, 1, 1, 5), [-1, 0], {}),
        (r"a write index is -1, expected 0 or more", (2, 1, 1, 5), [-1, 0], {"mode": "circular"}),
        (r"update is \[2, 1, 5, 5\], expected \[2, 1, 4, 5\] as past_cache", (2, 1, 5, 5), [0, 0], {}),
        (r"update is \[2, 2, 1, 5\]", (2, 2, 1, 5), [0, 0], {}),
        (r"update is \[2, 1\]", (2, 1), [0, 0], {}),
        (r"write_indices is \[3\], expected \[2\]", (2, 1, 1, 5), [0, 0, 0], {}),
        (r"axis is 0 of 4, expected one after the batch", (2, 1, 1, 5), [0, 0], {"axis": -4}),
        (r"mode is around, expected linear or circular", (2, 1, 1, 5), [0, 0], {"mode": "around"}),
    ],
)
def test_misuse_of_tensor_scatter(text: str, update_shape: tuple, indices: list, attributes: dict) -> None:
    with pytest.raises(ValueError, match=f"TensorScatter: {text}"):
        run_scatter(PAST, np.ones(update_shape, np.float32), np.array(indices), **attributes)


@pytest.mark.parametrize("path", ["fused", "reference"])
def test_padded_caches_of_different_lengths(path: str) -> None:
    """nonpad_kv_seqlen with a causal mask and a window: each sequence alone, without its padding."""
    random = np.random.default_rng(0)
    query, key, value = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 2, 3, 8), (4, 1, 9, 8), (4, 1, 9, 6)))
    lengths = np.array([9, 3, 5, 1])
    names = ["Q", "K", "V", "", "", "", "nonpad_kv_seqlen"]
    for attributes in ({}, {"is_causal": 1}, {"is_causal": 1, "left_window_size": 1}, {"left_window_size": 2, "right_window_size": 1}):
        case = messages.Node("", "Attention", names, ["Y"], attributes)
        found = operators.run(case, [query, key, value, None, None, None, lengths], path)[0]
        for entry, length in enumerate(lengths):
            position = np.arange(3)[:, None] + length - 3
            k = np.arange(length)
            seen = (k <= position) | ("is_causal" not in attributes)
            seen &= k >= position - attributes.get("left_window_size", 9)
            seen &= k <= position + attributes.get("right_window_size", 9)
            cut = (x[entry : entry + 1, :, :length] for x in (key, value))
            alone = operators.heed.attention(query[entry : entry + 1], *cut, mask=operators.heed.allow(seen))
            np.testing.assert_allclose(found[entry], alone[0], atol=1e-6)
