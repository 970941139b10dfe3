"""ONNX Runtime's operators, each in a session of its own, outputs bound."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from .cases import Case

_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}
_CONTRIBUTED = "com.microsoft"


def _session(node, inputs: dict[str, np.ndarray], outputs: dict[str, int], threads: int):
    """Of one node; outputs are names and types."""
    opsets = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(node.domain, 1)] if node.domain else [])
    given = [helper.make_tensor_value_info(name, _TYPES[str(x.dtype)], x.shape) for name, x in inputs.items()]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph([node], "attention", given, made)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads spin within a call, as they do by default, but not into the next peer's.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _interleaved(array: np.ndarray) -> np.ndarray:
    """[1, heads, length, dim] as [1, length, heads · dim]."""
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(1, array.shape[2], -1)


def _separated(out: np.ndarray, case: Case) -> np.ndarray:
    """The inverse, [heads, length, dim]."""
    return out.reshape(case.seq, case.heads, case.head_dim).transpose(1, 0, 2)


class _Forward:
    """model() gives a node and its inputs; its first output is the result, separate() makes [heads, length, dim] of it."""

    outputs = ("out",)

    def separate(self, out: np.ndarray, case: Case) -> np.ndarray:
        return _separated(out, case)

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        node, inputs = self.model(case, arrays)
        session = _session(node, inputs, dict.fromkeys(self.outputs, TensorProto.FLOAT), case.threads)
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for name in self.outputs:
            binding.bind_output(name)

        def call(_kept=inputs):
            session.run_with_iobinding(binding)

        def result():
            call()
            return self.separate(binding.copy_outputs_to_cpu()[0], case)

        return call, result


class StandardAttention(_Forward):
    """The operator of ONNX itself, opset 23. The contributed operator Attention is not compared: it contains the
    projections of its input, which nobody else here computes."""

    title = "ORT Attention"

    def can(self, case: Case) -> bool:
        return case.way == "forward" and case.dtype == "float32"

    def separate(self, out: np.ndarray, case: Case) -> np.ndarray:
        return out[0]

    def model(self, case: Case, arrays: list[np.ndarray]):
        inputs = dict(zip(("query", "key", "value"), arrays))
        if not case.is_dense:
            inputs["attn_mask"] = case.visible()[None]
        return helper.make_node("Attention", list(inputs), ["out"], is_causal=int(case.mask == "causal")), inputs


class MultiHeadAttention(_Forward):
    """ONNX Runtime's own operator, which has as many key heads as query heads."""

    title = "ORT MultiHeadAttention"

    def can(self, case: Case) -> bool:
        return case.way == "forward" and case.is_dense and case.heads == case.kv_heads and case.dtype == "float32"

    def model(self, case: Case, arrays: list[np.ndarray]):
        inputs = dict(zip(("query", "key", "value"), map(_interleaved, arrays)))
        options = {"num_heads": case.heads, "unidirectional": int(case.mask == "causal")}
        return helper.make_node("MultiHeadAttention", list(inputs), ["out"], domain=_CONTRIBUTED, **options), inputs


class GroupQueryAttention(_Forward):
    """Causal sequences, and single queries over a cache that is input and output at once, as a text is written: the token's
    own key and value are written over the last of the cache in each call, where they are already. int8 and int4 have one
    scale for all keys and one for all values."""

    title = "ORT GroupQueryAttention"
    outputs = ("out", "present_key", "present_value")
    storages = ("float32", "float16", "int8", "int4")

    def can(self, case: Case) -> bool:
        if case.way == "decode":
            return case.storage in self.storages
        return case.way == "forward" and case.mask == "causal" and case.dtype == "float32"

    def model(self, case: Case, arrays: list[np.ndarray]):
        inputs = dict(zip(("query", "key", "value"), map(_interleaved, arrays)))
        return self._node(case, inputs | self._lengths(case), {}), inputs | self._lengths(case)

    @staticmethod
    def _lengths(case: Case) -> dict[str, np.ndarray]:
        keys = case.kv_seq
        return {"seqlens_k": np.array([keys - 1], np.int32), "total_sequence_length": np.array(keys, np.int32)}

    def _node(self, case: Case, inputs: dict[str, np.ndarray], attributes: dict):
        names = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"]
        names = [name if name in inputs else "" for name in names]
        if "k_scale" in inputs:
            names += [""] * 5 + ["k_scale", "v_scale"]
        attributes = attributes | {"num_heads": case.heads, "kv_num_heads": case.kv_heads}
        return helper.make_node("GroupQueryAttention", names, list(self.outputs), domain=_CONTRIBUTED, **attributes)

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        if case.way != "decode":
            return super().prepare(case, arrays)
        inputs, attributes = self._cache(case, *(array[0] for array in arrays))
        node = self._node(case, inputs, attributes)
        types = (_TYPES[str(inputs[name].dtype)] for name in ("query", "past_key", "past_value"))
        session = _session(node, inputs, dict(zip(self.outputs, types)), case.threads)
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
        binding = session.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("out")
        for past, present in (("past_key", "present_key"), ("past_value", "present_value")):
            binding.bind_ortvalue_output(present, values[past])

        def call(_kept=values):
            session.run_with_iobinding(binding)

        def result():
            call()
            return binding.get_outputs()[0].numpy().reshape(case.heads, 1, case.head_dim)

        return call, result

    def _cache(self, case: Case, query: np.ndarray, key: np.ndarray, value: np.ndarray):
        """Inputs and attributes."""
        dtype = np.float16 if case.storage == "float16" else np.float32
        inputs = {"query": query.reshape(1, 1, -1).astype(dtype)}
        attributes: dict = {}
        for name, array in (("key", key), ("value", value)):
            inputs[name] = array[:, -1].reshape(1, 1, -1).astype(dtype)
            stored = array
            if case.storage in ("int8", "int4"):
                scale = np.abs(array).max() / np.float32({"int8": 127, "int4": 7}[case.storage])
                stored = np.rint(array / scale).astype(np.int8)
                inputs[f"{name[0]}_scale"] = np.array([scale], np.float32)
                attributes[f"{name[0]}_quant_type"] = "PER_TENSOR"
                attributes["kv_cache_bit_width"] = 8 if case.storage == "int8" else 4
                if case.storage == "int4":
                    shifted = (stored + 8).astype(np.uint8)
                    stored = shifted[..., ::2] | shifted[..., 1::2] << 4
            else:
                stored = stored.astype(dtype)
            inputs[f"past_{name}"] = stored[None]
        return inputs | self._lengths(case), attributes


def all_peers() -> list:
    return [StandardAttention(), MultiHeadAttention(), GroupQueryAttention()]
