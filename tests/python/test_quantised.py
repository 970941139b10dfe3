"""Attention over quantised caches, compared with ONNX Runtime, which quantises with the same scales by itself."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import heed

TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
}


def draw(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def run(nodes: list, inputs: dict[str, np.ndarray], outputs: dict[str, type]) -> list[np.ndarray]:
    """The outputs of a graph of ONNX Runtime."""

    def declared(name: str, dtype: type, shape) -> object:
        return helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)], shape)

    given = [declared(name, array.dtype, array.shape) for name, array in inputs.items()]
    graph = helper.make_graph(nodes, "graph", given, [declared(name, dtype, None) for name, dtype in outputs.items()])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(list(outputs), inputs)


def attended(query: np.ndarray, key: np.ndarray, value: np.ndarray, page_size: int) -> tuple[np.ndarray, heed.KvSequence]:
    """Causal attention of the last positions over an int8 cache, [num_heads, q_len, value_dim]."""
    pool = heed.KvPool(key.shape[0], key.shape[2], value.shape[2], key_storage="int8", page_size=page_size)
    sequence = heed.KvSequence(pool)
    sequence.append(key, value)
    return heed.attend(query, sequence, causal="bottom_right"), sequence


def with_row_maximum(array: np.ndarray, maximum: float) -> np.ndarray:
    """The array with rows scaled to the same largest magnitude, so that heed's scale of each row is one for all."""
    largest = np.abs(array).max(axis=-1, keepdims=True)
    scaled = array * (np.float32(maximum) / largest)
    return np.where(np.abs(array) == largest, np.copysign(np.float32(maximum), array), scaled)


@pytest.mark.parametrize(("q_len", "kv_len", "dim"), [(1, 300, 64), (1, 1024, 128), (40, 40, 64), (40, 40, 128)], ids=str)
def test_group_query_attention_over_int8(q_len: int, kv_len: int, dim: int) -> None:
    query = draw(8, q_len, dim, seed=0)
    scales = {"k_scale": np.float32(1 / 32), "v_scale": np.float32(1 / 64)}
    key, value = (
        with_row_maximum(draw(2, kv_len, dim, seed=seed), 127 * scale) for seed, scale in enumerate(scales.values(), 1)
    )
    found, sequence = attended(query, key, value, 16)

    def interleaved(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(1, 0, 2)).reshape(1, array.shape[1], -1)

    # As many positions as queries are new; the others are in the cache already.
    past = {
        name: np.rint(array[None, :, : kv_len - q_len] / scale).astype(np.int8)
        for name, array, scale in zip(("past_key", "past_value"), (key, value), scales.values())
    }
    new = [interleaved(array[:, kv_len - q_len :]) for array in (key, value)]
    inputs = {"query": interleaved(query), "key": new[0], "value": new[1], **past}
    inputs["seqlens_k"] = np.array([kv_len - 1], np.int32)
    inputs["total_sequence_length"] = np.array(kv_len, np.int32)
    names = [*inputs, *[""] * 5, *scales]
    inputs |= {name: np.array([scale]) for name, scale in scales.items()}
    outputs = {"out": np.float32, "present_key": np.int8, "present_value": np.int8}
    attributes = {"num_heads": 8, "kv_num_heads": 2, "kv_cache_bit_width": 8}
    attributes |= dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_TENSOR")
    node = helper.make_node("GroupQueryAttention", names, list(outputs), domain="com.microsoft", **attributes)
    out, *stored = run([node], inputs, outputs)

    for kept, integers, scale in zip(sequence.dequantised(), stored, scales.values()):
        np.testing.assert_array_equal(kept, integers[0] * scale)
    expected = out.reshape(q_len, 8, dim).transpose(1, 0, 2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    # Compared with attention to the stored numbers, which differ from the given ones.
    exact = heed.attention(query, key, value, causal="bottom_right")
    assert np.abs(exact - expected).max() > 1e-3


@pytest.mark.parametrize("page_size", [16, 128])
@pytest.mark.parametrize("dims", [(64, 64), (128, 40), (33, 7)], ids=str)
def test_a_scale_for_each_row(dims: tuple[int, int], page_size: int) -> None:
    query = draw(2, 1, dims[0], seed=3)
    # Rows whose magnitudes differ by powers of ten, and a row of zeros.
    sizes = 10.0 ** np.random.default_rng(4).uniform(-2, 1, (2, 200, 1)).astype(np.float32)
    sizes[:, 17] = 0
    key, value = (draw(2, 200, dim, seed=dim) * sizes for dim in dims)
    found, sequence = attended(query, key, value, page_size)

    nodes = []
    inputs = {"query": query}
    for name, array in (("key", key), ("value", value)):
        scale = np.abs(array).max(axis=-1) / np.float32(127)
        inputs[f"{name}_rows"] = array.reshape(-1, array.shape[2])
        inputs[f"{name}_scale"] = np.where(scale > 0, scale, 1).ravel()
        inputs[f"{name}_zero"] = np.zeros(400, np.int8)
        parameters = [f"{name}_scale", f"{name}_zero"]
        nodes.append(helper.make_node("QuantizeLinear", [f"{name}_rows", *parameters], [f"{name}_int8"], axis=0))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_int8", *parameters], [f"{name}_read"], axis=0))
    inputs |= {f"{name}_shape": np.array([2, 200, dim], np.int64) for name, dim in zip(("key", "value"), dims)}
    inputs["scale"] = np.array(dims[0] ** -0.5, np.float32)
    for name in ("key", "value"):
        nodes.append(helper.make_node("Reshape", [f"{name}_read", f"{name}_shape"], [name]))
    nodes.append(helper.make_node("Transpose", ["key"], ["transposed"], perm=[0, 2, 1]))
    nodes.append(helper.make_node("MatMul", ["query", "transposed"], ["products"]))
    nodes.append(helper.make_node("Mul", ["products", "scale"], ["scores"]))
    nodes.append(helper.make_node("Softmax", ["scores"], ["weights"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["weights", "value"], ["out"]))
    out, *read = run(nodes, inputs, {"out": np.float32, "key": np.float32, "value": np.float32})

    for kept, expected in zip(sequence.dequantised(), read):
        np.testing.assert_allclose(kept, expected, rtol=2e-7)
    np.testing.assert_allclose(found, out, rtol=0, atol=1e-6 * np.abs(value).max())
