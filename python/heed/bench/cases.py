"""What is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """One call: batch 1, float32."""

    name: str
    num_heads: int = 8
    num_kv_heads: int = 8
    q_len: int = 1024
    kv_len: int = 1024
    head_dim: int = 64
    is_causal: bool = False
    is_backward: bool = False
    threads: int = 1

    def __str__(self) -> str:
        return f"{self.name}, {self.threads} thread{'s'[: self.threads > 1]}"

    def pairs(self) -> int:
        """Of query and key that see each other, over all heads."""
        length = self.q_len
        visible = length * (length + 1) // 2 if self.is_causal else length * self.kv_len
        return self.num_heads * visible

    def operations(self) -> int:
        """Of the products: two of them, or five for the gradients."""
        return (10 if self.is_backward else 4) * self.pairs() * self.head_dim

    def arrays(self) -> list[np.ndarray]:
        """query, key, value and, for the gradients, grad_out."""
        random = np.random.default_rng(0)
        query = (1, self.num_heads, self.q_len, self.head_dim)
        key = (1, self.num_kv_heads, self.kv_len, self.head_dim)
        shapes = [query, key, key] + [query] * self.is_backward
        return [random.standard_normal(shape, np.float32) for shape in shapes]


def all_cases(lengths: list[int], threads: list[int]) -> list[Case]:
    """The tutorial's benchmark, whole sequences, their gradients, and single queries as a model makes that generates."""
    cases = [Case("tutorial: causal, T = 256", q_len=256, kv_len=256, is_causal=True)]
    for is_backward in (False, True):
        for is_causal in (False, True):
            for length in lengths:
                name = f"{'backward' if is_backward else 'forward'}, {'causal' if is_causal else 'full'}, T = {length}"
                cases.append(
                    Case(name, q_len=length, kv_len=length, is_causal=is_causal, is_backward=is_backward)
                )
    for num_kv_heads in (8, 2):
        for length in lengths:
            name = f"decode, {num_kv_heads} key heads, {length} keys"
            cases.append(Case(name, num_kv_heads=num_kv_heads, q_len=1, kv_len=length))
    return [Case(**{**vars(case), "threads": count}) for count in threads for case in cases]
