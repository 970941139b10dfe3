"""What every peer must return, in double precision, and how far from it results may be."""

from __future__ import annotations

import numpy as np

from .cases import Case

# Relative to the largest element, or to 1 where all are smaller.
_LARGEST_ERROR = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}
# Of caches the root of the mean square, relative to that of the result with the numbers that were stored.
_LARGEST_CACHE_ERROR = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2, "int8": 3e-2, "int4": 0.4}
_ROWS = 256  # that are computed at once


def _operands(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    query, key, value, *rest = (array[0].astype(np.float64) for array in arrays)
    group = case.heads // case.kv_heads
    return [query, np.repeat(key, group, axis=0), np.repeat(value, group, axis=0), *rest]


def _weights(case: Case, query: np.ndarray, key: np.ndarray, row: int) -> np.ndarray:
    scores = query[:, row : row + _ROWS] @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
    if case.mask != "none":
        scores = np.where(case.visible()[:, row : row + _ROWS], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _output(case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    query, key, value = _operands(case, arrays)
    out = np.empty(query.shape)
    for row in range(0, query.shape[1], _ROWS):
        out[:, row : row + _ROWS] = _weights(case, query, key, row) @ value
    return out


def _gradients(case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    query, key, value, grad_out = _operands(case, arrays)
    gradients = np.zeros((3, *query.shape))
    for row in range(0, query.shape[1], _ROWS):
        rows = np.s_[:, row : row + _ROWS]
        weights = _weights(case, query, key, row)
        grad_weights = grad_out[rows] @ value.transpose(0, 2, 1)
        grad_scores = weights * (grad_weights - (weights * grad_weights).sum(axis=-1, keepdims=True))
        grad_scores /= np.sqrt(query.shape[2])
        gradients[0][rows] = grad_scores @ key
        gradients[1] += grad_scores.transpose(0, 2, 1) @ query[rows]
        gradients[2] += weights.transpose(0, 2, 1) @ grad_out[rows]
    return gradients


def expected(case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    """[heads, seq, head_dim], or the gradients of query, key and value, [3, heads, seq, head_dim]."""
    return (_gradients if case.way == "backward" else _output)(case, arrays)


def problem_with(case: Case, result: np.ndarray, right: np.ndarray) -> str:
    """What is wrong with a result; empty: nothing."""
    if case.way == "decode":
        error = np.sqrt(np.square(result - right).sum() / np.square(right).sum())
        most = _LARGEST_CACHE_ERROR[case.storage]
    else:
        error = np.abs(result - right).max() / max(1.0, np.abs(right).max())
        most = _LARGEST_ERROR[case.dtype]
    return "" if error <= most else f"wrong by {error:.1e}"
