"""ONNX's operators as calls of heed. Each function takes what a node has by name, the path to compute on, and returns
the operator's outputs in their order; None stands for one that was not asked for."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

import heed

from .graph import Unsupported, as_function, as_score_mod
from .messages import Node
from .tensor_scatter import tensor_scatter

FUSED, REFERENCE = "fused", "reference"
_DOUBLE = 11
# The steps of heed.reference.attention() that qk_matmul_output_mode names.
_STEPS = ("scores", "capped", "masked", "weights")


def _split_heads(array: np.ndarray, num_heads: int) -> np.ndarray:
    """[batch, length, num_heads * dim] as a view [batch, num_heads, length, dim]."""
    batch, length, width = array.shape
    if num_heads < 1 or width % num_heads:
        raise ValueError(f"width {width} is not a multiple of {num_heads} heads")
    return array.reshape(batch, length, num_heads, width // num_heads).transpose(0, 2, 1, 3)


def _merge_heads(array: np.ndarray) -> np.ndarray:
    batch, num_heads, length, dim = array.shape
    return array.transpose(0, 2, 1, 3).reshape(batch, length, num_heads * dim)


def _precise(array: np.ndarray, softmax_precision: int | None) -> np.ndarray:
    """In a type in which heed computes softmax no less precisely than asked for: in float, or in double."""
    if array.dtype == np.float64 or softmax_precision == _DOUBLE:
        return array.astype(np.float64)
    return array


def _both(a, b):
    return b if a is None else a & b


def _query_offset(q_len: int, inputs: dict) -> int | list[int]:
    """Where queries stand: after the past, or at the end of what of each sequence is no padding."""
    lengths, past_key = inputs.get("nonpad_kv_seqlen"), inputs.get("past_key")
    if lengths is not None:
        return [int(length) - q_len for length in lengths]
    return 0 if past_key is None else past_key.shape[2]


def _mask(kv_len: int, inputs: dict, attributes: dict):
    """attn_mask, nonpad_kv_seqlen, is_causal and the window's sides as one mask."""
    lengths = inputs.get("nonpad_kv_seqlen")
    mask = None if lengths is None else heed.key_lengths([int(length) for length in lengths])
    attn_mask = inputs.get("attn_mask")
    if attn_mask is not None:
        make = heed.allow if attn_mask.dtype == np.bool_ else heed.additive
        mask = _both(mask, make(attn_mask, kv_len=kv_len))
    if attributes.get("is_causal", 0):
        mask = _both(mask, heed.causal("top_left"))
    sides = [attributes.get(name, -1) for name in ("left_window_size", "right_window_size")]
    if max(sides) >= 0:
        left, right = (None if side < 0 else side for side in sides)
        mask = _both(mask, heed.sliding_window(left, right, "top_left"))
    return mask


def _weights_of_all(query, key, options) -> np.ndarray:
    rows = list(np.ndindex(*query.shape[:3]))
    return heed.attention_weights(query, key, rows, **options).reshape(*query.shape[:3], key.shape[2])


def _attend(query, key, value, options: dict, path: str, step: str | None):
    """The output, and the step that was asked for."""
    if path == FUSED:
        out = heed.attention(query, key, value, **options)
        if step == "weights":
            return out, _weights_of_all(query, key, options)
        if step is None:
            return out, None
    # The reference computes in float and double.
    plain = [array.astype(np.result_type(array.dtype, np.float32)) for array in (query, key, value)]
    result = heed.reference.attention(*plain, keep=[step] if step else [], **options)
    return out if path == FUSED else result.out, getattr(result, step) if step else None


def attention(node: Node, inputs: dict, path: str) -> list:
    attributes = node.attributes
    query, key, value = (inputs[name] for name in "QKV")
    dtype, is_packed = query.dtype, query.ndim == 3
    if is_packed:
        query = _split_heads(query, attributes["q_num_heads"])
        key, value = (_split_heads(array, attributes["kv_num_heads"]) for array in (key, value))
    if inputs.get("past_key") is not None:
        key = np.concatenate([inputs["past_key"], key], axis=2)
        value = np.concatenate([inputs["past_value"], value], axis=2)
    options = {
        "mask": _mask(key.shape[2], inputs, attributes),
        "query_offset": _query_offset(query.shape[2], inputs),
        "scale": attributes.get("scale"),
        "softcap": attributes.get("softcap", 0.0),
    }
    wants_step = len(node.outputs) > 3 and node.outputs[3]
    step = _STEPS[attributes.get("qk_matmul_output_mode", 0)] if wants_step else None
    operands = (_precise(array, attributes.get("softmax_precision")) for array in (query, key, value))
    out, matrix = _attend(*operands, options, path, step)
    out = out.astype(dtype)
    return [
        _merge_heads(out) if is_packed else out,
        np.ascontiguousarray(key),
        np.ascontiguousarray(value),
        None if matrix is None else matrix.astype(dtype),
    ]


def _score_mod_of_tiles(attributes: dict, shape: tuple):
    """The keywords of heed.attention that stand for the functions of FlexAttention; None where there are none."""
    if "prob_mod" in attributes:
        return None  # weights are known only when a row has been read to its end
    if "score_mod" not in attributes:
        return {}
    score_mod = as_score_mod(attributes["score_mod"], shape)
    return None if score_mod is None else {"score_mod": score_mod}


def flex_attention(node: Node, inputs: dict, path: str) -> list:
    attributes = node.attributes
    dtype, precision = inputs["Q"].dtype, attributes.get("softmax_precision")
    query, key, value = (_precise(inputs[name], precision) for name in "QKV")
    scale = attributes.get("scale")
    if path == FUSED:
        options = _score_mod_of_tiles(attributes, (*query.shape[:3], key.shape[2]))
        if options is not None:
            return [heed.attention(query, key, value, scale=scale, **options).astype(dtype)]
    # Functions of the whole matrix want it to be there.
    functions = {name: as_function(attributes[name]) for name in ("score_mod", "prob_mod") if name in attributes}
    plain = [array.astype(np.result_type(array.dtype, np.float32)) for array in (query, key, value)]
    return [heed.reference.flex_attention(*plain, scale=scale, **functions).astype(dtype)]


# What a rule of LinearAttention reads beside query, key and value.
_RULES = {"linear": (), "gated": ("decay",), "delta": ("beta",), "gated_delta": ("decay", "beta")}


def linear_attention(node: Node, inputs: dict, path: str) -> list:
    attributes = node.attributes
    num_kv_heads = attributes["kv_num_heads"]
    dtype = inputs["query"].dtype
    query = _split_heads(inputs["query"], attributes["q_num_heads"])
    key, value = (_split_heads(inputs[name], num_kv_heads) for name in ("key", "value"))
    rule = attributes.get("update_rule", "gated_delta")
    if rule not in _RULES:
        raise Unsupported(f"update_rule {rule}")
    options: dict[str, Any] = {"state": inputs.get("past_state"), "scale": attributes.get("scale", 0.0) or None}
    for name in _RULES[rule]:
        if inputs.get(name) is None:
            raise ValueError(f"update_rule {rule} needs {name}")
    if "decay" in _RULES[rule]:
        options["decay"] = _split_heads(inputs["decay"], num_kv_heads)
    if "beta" in _RULES[rule]:
        options["beta"] = inputs["beta"].transpose(0, 2, 1)
    if path == FUSED:
        out, state = heed.linear_attention(query, key, value, **options)
    else:
        plain = (array.astype(np.result_type(array.dtype, np.float32)) for array in (query, key, value))
        out, state = heed.reference.linear_attention(*plain, **options)
    return [_merge_heads(out).astype(dtype), state.astype(dtype)]


def rotary_embedding(node: Node, inputs: dict, _path: str) -> list:
    attributes = node.attributes
    x = inputs["X"]
    out = heed.rotary_embedding(
        x,
        inputs["cos_cache"],
        inputs["sin_cache"],
        pairing="neighbours" if attributes.get("interleaved", 0) else "halves",
        position_ids=inputs.get("position_ids"),
        rotary_dim=attributes.get("rotary_embedding_dim", 0) or None,
        num_heads=attributes["num_heads"] if x.ndim == 3 else None,
    )
    return [out]


def scatter(node: Node, inputs: dict, path: str) -> list:
    return [tensor_scatter(node.attributes, inputs, by_sequences=path == FUSED)]


# (domain, type): the operator, the names of its inputs, and the attributes it knows.
OPERATORS: dict[tuple[str, str], tuple[Callable, tuple[str, ...], frozenset[str]]] = {
    ("", "Attention"): (
        attention,
        ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"),
        frozenset({
            "is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
            "right_window_size", "scale", "softcap", "softmax_precision",
        }),
    ),
    ("ai.onnx.preview", "FlexAttention"): (
        flex_attention,
        ("Q", "K", "V"),
        frozenset({"prob_mod", "scale", "score_mod", "softmax_precision"}),
    ),
    ("", "LinearAttention"): (
        linear_attention,
        ("query", "key", "value", "past_state", "decay", "beta"),
        frozenset({"chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"}),
    ),
    ("", "RotaryEmbedding"): (
        rotary_embedding,
        ("X", "cos_cache", "sin_cache", "position_ids"),
        frozenset({"interleaved", "num_heads", "rotary_embedding_dim"}),
    ),
    ("", "TensorScatter"): (scatter, ("past_cache", "update", "write_indices"), frozenset({"axis", "mode"})),
}  # fmt: skip


def run(node: Node, arrays: list, path: str) -> list:
    """The outputs of a node whose inputs are `arrays`, None for absent ones."""
    known = OPERATORS.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    if known is None:
        raise Unsupported(f"operator {node.domain or 'ai.onnx'}.{node.op_type}")
    function, names, attributes = known
    for name in sorted(set(node.attributes) - attributes):
        raise Unsupported(f"attribute {name} of {node.op_type}")
    if len(arrays) > len(names):
        raise Unsupported(f"input {len(names)} of {node.op_type}")
    return function(node, dict(zip(names, arrays)), path)
