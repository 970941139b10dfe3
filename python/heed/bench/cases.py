"""What is measured: calls of attention, its gradients, and single queries over a cache."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import heed

if TYPE_CHECKING:
    import argparse

PASSES = ("tutorial", "forward", "backward", "decode")
DTYPES = ("float32", "float16", "bfloat16")
STORAGES = ("float32", "float16", "bfloat16", "int8", "int4")
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "int4": 0.5}
# Longer sequences come from memory, as in a model whose other layers were read in between: of them there are as many
# copies, taken in turn, as have so many bytes together.
_LONG_SEQUENCE = 4096
_COLD_BYTES = 256 << 20


@functools.cache
def visible(mask: str, heads: int, length: int) -> np.ndarray:
    """Which pairs of a query and a key a mask shows, [heads, length, length]; of one head where all see the same."""
    shown = heed.parse_mask(mask).allow((1, heads, length, length))[0]
    return shown[:1] if (shown == shown[:1]).all() else shown


@dataclass(frozen=True)
class Case:
    """One call: batch 1, and as many keys as queries, or one query of each head over cached keys ("decode"), whose numbers
    are float32 but for what the cache stores."""

    way: str  # "forward", "backward" or "decode"
    threads: int = 1
    mask: str = "none"  # as heed prints it
    heads: int = 8
    kv_heads: int = 8
    seq: int = 1024
    kv_seq: int = 1024
    head_dim: int = 64
    storage: str = "float32"
    is_tutorial: bool = False
    dtype: str = "float32"

    @property
    def name(self) -> str:
        length = f"T = {self.seq}"
        width = "" if self.head_dim == 64 else f", d = {self.head_dim}"
        if self.is_tutorial:
            return f"tutorial: {self.mask}, {length}"
        if self.way == "decode":
            storage = "" if self.storage == "float32" else f", {self.storage}"
            return f"decode, {self.kv_heads} key heads, {self.kv_seq} keys{width}{storage}"
        dtype = "" if self.dtype == "float32" else f", {self.dtype}"
        return f"{self.way}, {'full' if self.mask == 'none' else self.mask}, {length}{width}{dtype}"

    def __str__(self) -> str:
        return f"{self.name}, {self.threads} thread{'s'[: self.threads > 1]}"

    @property
    def is_dense(self) -> bool:
        """No pairs are hidden, or only those of the future: what every peer knows by name."""
        return self.mask in ("none", "causal")

    def visible(self) -> np.ndarray:
        return visible(self.mask, self.heads, self.seq)

    def pairs(self) -> int:
        """Of query and key that see each other, over all heads."""
        if self.mask == "none":
            return self.heads * self.seq * self.kv_seq
        if self.mask == "causal":
            return self.heads * self.seq * (self.seq + 1) // 2
        return int(np.count_nonzero(self.visible())) * self.heads // self.visible().shape[0]

    def operations(self) -> int:
        """Of the products: two of them, or five for the gradients."""
        return (10 if self.way == "backward" else 4) * self.pairs() * self.head_dim

    def arrays(self) -> list[np.ndarray]:
        """query, key, value and, for the gradients, grad_out: [1, heads, length, head_dim], as float32; numbers that are
        left in half precision are rounded to it."""
        random = np.random.default_rng(0)
        query = (1, self.heads, self.seq, self.head_dim)
        key = (1, self.kv_heads, self.kv_seq, self.head_dim)
        shapes = [query, key, key] + [query] * (self.way == "backward")
        drawn = [random.standard_normal(shape, np.float32) for shape in shapes]
        return drawn if self.dtype == "float32" else [tensor.float().numpy() for tensor in self.tensors(drawn)]

    def tensors(self, arrays: list[np.ndarray]) -> list:
        """The same as PyTorch's, in the type that the case is computed in."""
        import torch

        return [torch.from_numpy(array).to(getattr(torch, self.dtype)) for array in arrays]

    def copies(self) -> int:
        """How many caches there are."""
        if self.way != "decode" or self.kv_seq < _LONG_SEQUENCE:
            return 1
        return int(_COLD_BYTES // (2 * self.kv_heads * self.kv_seq * self.head_dim * _BYTES[self.storage])) + 1

    def describe(self) -> dict:
        members = ("threads", "mask", "heads", "kv_heads", "seq", "kv_seq", "head_dim", "storage", "dtype")
        return {"name": self.name, "pass": self.way, **{member: getattr(self, member) for member in members}}


def _cases_of(way: str, threads: int, chosen: argparse.Namespace) -> list[Case]:
    if way == "tutorial":
        return [Case("forward", threads, "causal", seq=256, kv_seq=256, is_tutorial=True)]
    heads = chosen.heads
    if way == "decode":
        each = itertools.product(chosen.head_dim, chosen.kv_heads, chosen.storage, chosen.seq)
        return [
            Case("decode", threads, "none", heads, kv_heads, 1, kv_seq, head_dim, storage)
            for head_dim, kv_heads, storage, kv_seq in each
            if heads % kv_heads == 0
        ]
    each = itertools.product(chosen.dtype, chosen.head_dim, chosen.mask, chosen.seq)
    return [
        Case(way, threads, mask, heads, heads, seq, seq, head_dim, dtype=dtype) for dtype, head_dim, mask, seq in each
    ]


def all_cases(chosen: argparse.Namespace) -> list[Case]:
    """Every combination of the lists in `chosen`: way, seq, head_dim, mask, dtype, kv_heads, storage, threads, and
    `heads`."""
    return [
        case for threads in chosen.threads for way in chosen.way for case in _cases_of(way, threads, chosen)
    ]
