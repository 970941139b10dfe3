"""ONNX's TensorScatter: an update is written into caches of a fixed length."""

from __future__ import annotations

import numpy as np

import heed

from .graph import Unsupported

_MODES = ("linear", "circular")


def _check(past: np.ndarray, update: np.ndarray, write_indices: np.ndarray, axis: int, mode: str) -> None:
    if mode not in _MODES:
        raise Unsupported(f"TensorScatter: mode is {mode}, expected linear or circular")
    if not 0 < axis < past.ndim:
        raise ValueError(f"TensorScatter: axis is {axis} of {past.ndim}, expected one after the batch")
    expected = (*past.shape[:axis], update.shape[axis] if axis < update.ndim else 0, *past.shape[axis + 1 :])
    if update.shape != expected or update.shape[axis] > past.shape[axis]:
        raise ValueError(
            f"TensorScatter: update is {list(update.shape)}, expected {list(past.shape)} as past_cache, but for axis "
            f"{axis}, where it may be shorter"
        )
    if write_indices.shape != past.shape[:1]:
        raise ValueError(f"TensorScatter: write_indices is {list(write_indices.shape)}, expected [{past.shape[0]}]")
    last = past.shape[axis] - update.shape[axis] if mode == "linear" else None
    for index in write_indices:
        if index < 0 or (last is not None and index > last):
            bound = "" if last is None else f" to {last}"
            raise ValueError(f"TensorScatter: a write index is {index}, expected 0{bound or ' or more'}")


def scatter(past: np.ndarray, update: np.ndarray, write_indices: np.ndarray, axis: int) -> np.ndarray:
    """A copy of `past` with the rows of `update` along axis, row i of entry b at (write_indices[b] + i) modulo the
    length of `past`."""
    present = past.copy()
    for entry, index in enumerate(write_indices):
        rows = (index + np.arange(update.shape[axis])) % past.shape[axis]
        np.moveaxis(present[entry], axis - 1, 0)[rows] = np.moveaxis(update[entry], axis - 1, 0)
    return present


def _append(past: np.ndarray, update: np.ndarray, index: int) -> np.ndarray:
    """[heads, max_len, dim]: the past, which a KvSequence keeps to `index`, then the update, then what is left."""
    sequence = heed.KvSequence(heed.KvPool(past.shape[0], past.shape[2], page_size=16))
    sequence.append(past, past)
    sequence.truncate(index)
    sequence.append(update, update)
    key, value = sequence.dequantised()
    if not np.array_equal(key, value, equal_nan=True):
        raise RuntimeError("TensorScatter: keys and values of a KvSequence differ where they were appended alike")
    return np.concatenate([key.astype(past.dtype), past[:, len(sequence) :]], axis=1)


def append(past: np.ndarray, update: np.ndarray, write_indices: np.ndarray) -> np.ndarray:
    """scatter() along the last axis but one, in float32 or float16 and without going round, by a heed.KvSequence for each
    entry."""
    batch, *heads, _, dim = past.shape
    pasts, updates = (x.reshape(batch, int(np.prod(heads)), x.shape[-2], dim) for x in (past, update))
    entries = [_append(*entry) for entry in zip(pasts, updates, write_indices.tolist())]
    return np.stack(entries).reshape(past.shape)


def _is_append(past: np.ndarray, update: np.ndarray, axis: int, mode: str) -> bool:
    """Whether this is what a KvSequence does."""
    return mode == "linear" and axis == past.ndim - 2 and past.dtype in (np.float32, np.float16) and update.size > 0


def tensor_scatter(attributes: dict, inputs: dict, *, by_sequences: bool) -> np.ndarray:
    """The operator; by_sequences: by heed.KvSequence where that can be."""
    past, update = inputs["past_cache"], inputs["update"]
    write_indices = inputs.get("write_indices")
    if write_indices is None:
        write_indices = np.zeros(past.shape[0], np.int64)
    axis, mode = attributes.get("axis", -2), attributes.get("mode", "linear")
    axis = axis + past.ndim if axis < 0 else axis
    _check(past, update, write_indices, axis, mode)
    if by_sequences and _is_append(past, update, axis, mode):
        return append(past, update, write_indices)
    return scatter(past, update, write_indices, axis)
