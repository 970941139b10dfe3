"""The rule of torch.func.vmap: each entry of a batch is computed alone, with the bits it has alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def _stacked(results: list[Any]) -> tuple[Any, Any]:
    """What the entries gave, and in which dimension each is stacked: tensors, None, or tuples of these."""
    first = results[0]
    if isinstance(first, tuple):
        parts = [_stacked(list(part)) for part in zip(*results)]
        return tuple(stack for stack, _ in parts), tuple(dim for _, dim in parts)
    return (None, None) if first is None else (torch.stack(results), 0)


class _EachEntry(torch.autograd.Function):
    @staticmethod
    def forward(compute, *tensors):
        return compute(*tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *_grads):
        raise RuntimeError("heed.torch has no gradient within torch.func.vmap: take it of what vmap returns")

    @staticmethod
    def vmap(info, in_dims, compute, *tensors):
        dims = in_dims[1:]
        return _stacked(
            [
                each_entry(compute, *(x if dim is None else x.select(dim, index) for x, dim in zip(tensors, dims)))
                for index in range(info.batch_size)
            ]
        )


def each_entry(compute: Callable[..., Any], *tensors: Any) -> Any:
    """compute(*tensors), under torch.func.vmap for each entry."""
    if torch._C._are_functorch_transforms_active() and any(
        isinstance(tensor, torch.Tensor) and torch._C._functorch.is_batchedtensor(tensor) for tensor in tensors
    ):
        return _EachEntry.apply(compute, *tensors)
    return compute(*tensors)
