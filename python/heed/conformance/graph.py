"""A small evaluator of ONNX graphs: what functions of scores are written in."""

from __future__ import annotations

import operator
from typing import Callable

import numpy as np

from .messages import Graph, Node

_CAST_TYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
    11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip


class Unsupported(ValueError):
    """An operator, or something about one, that is not known here."""


def _divide(a, b):
    if not np.issubdtype(np.result_type(a), np.integer):
        return a / b
    quotient = np.abs(a) // np.abs(b)  # ONNX cuts off towards 0
    return np.where((a < 0) != (b < 0), -quotient, quotient).astype(a.dtype)


def _sigmoid(x):
    return (1 / (1 + np.exp(-x))).astype(x.dtype)


def _softmax(x, axis):
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _reshape(x, shape, allowzero):
    extents = [x.shape[i] if extent == 0 and not allowzero else extent for i, extent in enumerate(shape)]
    return x.reshape(extents)


def _axes(inputs, attributes):
    """Of operators that have them as an attribute or, since opset 13, as a second input."""
    axes = inputs[1] if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")
    return None if axes is None else tuple(int(axis) for axis in axes)


def _unsqueeze(x, axes):
    rank = x.ndim + len(axes)
    return np.expand_dims(x, tuple(axis % rank for axis in axes))


def _slice(x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    cut = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        # An end before the first element, counted backwards, is one that a slice cannot name.
        last = None if step < 0 and end < -x.shape[axis] else int(end)
        cut[axis] = slice(int(start), last, int(step))
    return x[tuple(cut)]


def _reduce(function):
    def reduced(inputs, attributes):
        axes = _axes(inputs, attributes)
        if axes is None and attributes.get("noop_with_empty_axes", 0):
            return inputs[0]
        return function(inputs[0], axis=axes, keepdims=bool(attributes.get("keepdims", 1)))

    return reduced


def _constant(_, attributes):
    for name, kind in (("value", None), ("value_float", np.float32), ("value_int", np.int64),
                       ("value_floats", np.float32), ("value_ints", np.int64)):  # fmt: skip
        if name in attributes:
            return np.asarray(attributes[name], kind)
    raise Unsupported("Constant has no value of numbers")


def _clip(inputs, _):
    x, low, high = (*inputs, None, None)[:3]
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _cast(inputs, attributes):
    kind = attributes["to"]
    if kind not in _CAST_TYPES:
        raise Unsupported(f"Cast to data type {kind}")
    return inputs[0].astype(_CAST_TYPES[kind])


def _range(inputs, _):
    start, limit, step = inputs
    return np.arange(start.item(), limit.item(), step.item(), dtype=start.dtype)


def _trilu(inputs, attributes):
    offset = int(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else 0
    return (np.triu if attributes.get("upper", 1) else np.tril)(inputs[0], offset)


def _fold(function):
    """An operator of any number of inputs."""

    def folded(inputs, _):
        result = inputs[0]
        for other in inputs[1:]:
            result = function(result, other)
        return result

    return folded


def _plain(function):
    """An operator without attributes."""
    return lambda inputs, _: function(*inputs)


_PLAIN = {
    "Abs": np.abs, "Add": operator.add, "And": np.logical_and, "Ceil": np.ceil, "Cos": np.cos, "Div": _divide,
    "Equal": np.equal, "Exp": np.exp, "Expand": lambda x, shape: x * np.ones(shape, x.dtype), "Floor": np.floor,
    "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "Identity": lambda x: x, "IsNaN": np.isnan,
    "Less": np.less, "LessOrEqual": np.less_equal, "Log": np.log, "MatMul": np.matmul, "Mul": operator.mul,
    "Neg": np.negative, "Not": np.logical_not, "Or": np.logical_or, "Pow": lambda x, y: np.power(x, y).astype(x.dtype),
    "Reciprocal": np.reciprocal, "Relu": lambda x: np.maximum(x, x.dtype.type(0)), "Round": np.round,
    "Sigmoid": _sigmoid, "Sign": np.sign, "Sin": np.sin, "Size": lambda x: np.array(x.size), "Slice": _slice,
    "Sqrt": np.sqrt, "Sub": operator.sub, "Tanh": np.tanh, "Where": np.where, "Xor": np.logical_xor,
}  # fmt: skip

_OPERATORS: dict[str, Callable] = {name: _plain(function) for name, function in _PLAIN.items()} | {
    "Cast": _cast,
    "CastLike": lambda inputs, _: inputs[0].astype(inputs[1].dtype),
    "Clip": _clip,
    "Concat": lambda inputs, attributes: np.concatenate(inputs, attributes["axis"]),
    "Constant": _constant,
    "ConstantOfShape": lambda inputs, attributes: np.full(inputs[0], *attributes.get("value", np.zeros(1, np.float32))),
    "Gather": lambda inputs, attributes: np.take(inputs[0], inputs[1], axis=attributes.get("axis", 0)),
    "Max": _fold(np.maximum),
    "Min": _fold(np.minimum),
    "Mod": lambda inputs, attributes: (np.fmod if attributes.get("fmod", 0) else np.mod)(*inputs),
    "Range": _range,
    "ReduceMax": _reduce(np.max),
    "ReduceMean": _reduce(np.mean),
    "ReduceMin": _reduce(np.min),
    "ReduceSum": _reduce(np.sum),
    "Reshape": lambda inputs, attributes: _reshape(*inputs, attributes.get("allowzero", 0)),
    "Shape": lambda inputs, attributes: np.array(
        inputs[0].shape[attributes.get("start", 0) : attributes.get("end")], np.int64
    ),
    "Softmax": lambda inputs, attributes: _softmax(inputs[0], attributes.get("axis", -1)),
    "Squeeze": lambda inputs, attributes: np.squeeze(inputs[0], _axes(inputs, attributes)),
    "Sum": _fold(operator.add),
    "Transpose": lambda inputs, attributes: np.transpose(inputs[0], attributes.get("perm")),
    "Trilu": _trilu,
    "Unsqueeze": lambda inputs, attributes: _unsqueeze(inputs[0], _axes(inputs, attributes)),
}


def _outputs(node: Node, inputs: list) -> tuple:
    if node.domain not in ("", "ai.onnx") or node.op_type not in _OPERATORS:
        raise Unsupported(f"the function of scores uses {node.domain}{node.op_type}, which is not known here")
    return (np.asarray(_OPERATORS[node.op_type](inputs, node.attributes)),)


def as_function(graph: Graph) -> Callable[..., np.ndarray]:
    """The graph, which has one output, as a function of its inputs."""

    def function(*arguments: np.ndarray) -> np.ndarray:
        values = dict(graph.initializers)
        values.update(zip(graph.inputs, arguments))
        for node in graph.nodes:
            inputs = [values[name] if name else None for name in node.inputs]
            values.update(zip(node.outputs, _outputs(node, inputs)))
        return values[graph.outputs[0]]

    return function


# Operators that make each element of the elements at the same place, and of nothing else.
_ELEMENTWISE = frozenset(
    """Abs Add And Cast CastLike Ceil Clip Cos Div Equal Exp Floor Greater GreaterOrEqual Identity IsNaN Less LessOrEqual
    Log Max Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sin Sqrt Sub Sum Tanh Where Xor""".split()
)


def _split(graph: Graph, shape: tuple[int, ...]) -> tuple[list[Node], dict[str, np.ndarray]] | None:
    """The operators that see scores, and the values of all others; None where one sees more than single scores."""
    (scores,) = graph.inputs
    known, varying, program = dict(graph.initializers), {scores}, []
    for node in graph.nodes:
        if varying.isdisjoint(node.inputs):
            inputs = [known[name] if name else None for name in node.inputs]
        elif node.op_type in ("Shape", "Size"):
            inputs = [np.broadcast_to(np.float32(0), shape)]
        elif node.op_type in _ELEMENTWISE:
            program.append(node)
            varying.update(node.outputs)
            continue
        else:
            return None
        known.update(zip(node.outputs, _outputs(node, inputs)))
    if graph.outputs[0] not in varying:
        return None
    used = {name for node in program for name in node.inputs if name in known}
    if any(np.broadcast_shapes(known[name].shape, shape) != shape for name in used):
        return None
    return program, {name: known[name] for name in used}


def as_score_mod(graph: Graph, shape: tuple[int, ...]) -> Callable[..., np.ndarray] | None:
    """A function of the whole matrix of scores, [batch, num_heads, q_len, kv_len], as the score_mod of heed.attention,
    which sees a tile of it: what does not depend on the scores is computed once, and each tile takes its part. None
    where the function is not made element by element."""
    split = _split(graph, shape) if len(graph.inputs) == 1 else None
    if split is None:
        return None
    program, known = split
    whole = {name: array.reshape(()) if array.size == 1 else np.broadcast_to(array, shape) for name, array in known.items()}

    def score_mod(score, b, h, q_idx, kv_idx):
        values = {name: array[b, h, q_idx, kv_idx] if array.ndim else array for name, array in whole.items()}
        values[graph.inputs[0]] = score
        for node in program:
            inputs = [values[name] if name else None for name in node.inputs]
            values.update(zip(node.outputs, _outputs(node, inputs)))
        return values[graph.outputs[0]]

    return score_mod
