"""Modifications of scores that are written in PyTorch's operations, a tile of scores at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy
    from torch import Tensor

_FUNCTION = "heed.torch.attention"


def _indices(b: int, *others: numpy.ndarray) -> list[Tensor]:
    return [torch.tensor(b), *(torch.from_numpy(index).long() for index in others)]


class TileFunction:
    """What the library calls for a tile: the function, its derivative with respect to the score, and what a tile adds
    to the gradients of its parameters. The arrays are [keys, rows], and those of indices broadcast to that.

    needs: which parameters want gradients; none in the forward pass
    """

    def __init__(
        self,
        function: Callable[..., Tensor],
        parameters: Sequence[Tensor],
        needs: Sequence[bool],
        operands: Sequence[Tensor],
        scores: tuple[float | None, float],
    ) -> None:
        if not callable(function):
            raise ValueError(f"{_FUNCTION}: score_mod is a {type(function).__name__}, expected a function")
        self._function = function
        self._query, self._key = (tensor.detach() for tensor in operands[:2])
        self._scale = scores[0] if scores[0] is not None else self._query.shape[-1] ** -0.5
        self._softcap = scores[1]
        self._parameters = [parameter.detach() for parameter in parameters]
        self._wanted = [i for i, is_needed in enumerate(needs) if is_needed]
        self._sums = {i: torch.zeros_like(self._parameters[i], dtype=torch.float64) for i in self._wanted}
        # Operators let other threads run.
        self._lock = threading.Lock()

    @property
    def learns(self) -> bool:
        return bool(self._wanted)

    @property
    def gradients(self) -> list[Tensor | None]:
        """Of the parameters, None where none is wanted."""
        return [
            self._sums[i].to(parameter.dtype) if i in self._sums else None
            for i, parameter in enumerate(self._parameters)
        ]

    def _modified(self, score: Tensor, indices: list[Tensor], parameters: Sequence[Tensor]) -> Tensor:
        found = self._function(score, *indices, *parameters)
        if not isinstance(found, torch.Tensor) or not found.dtype.is_floating_point:
            what = f"a tensor of {found.dtype}" if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
            raise ValueError(
                f"{_FUNCTION}: score_mod returned {what}, expected a tensor of scores that broadcasts to "
                f"[keys, rows] = {list(score.shape)}"
            )
        return found

    def __call__(self, score: numpy.ndarray, b: int, *others: numpy.ndarray) -> numpy.ndarray:
        with torch.enable_grad():
            found = self._modified(torch.from_numpy(score), _indices(b, *others), self._parameters)
        if found.requires_grad:
            raise ValueError(
                f"{_FUNCTION}: score_mod uses a tensor that requires a gradient; expected such tensors to be given as "
                "score_mod_parameters, which the function receives after kv_idx, or .detach() where none is wanted"
            )
        return found.numpy()

    def differentiate(self, score: numpy.ndarray, b: int, *others: numpy.ndarray) -> tuple[Any, Any]:
        """The modified scores, and the derivative of each with respect to what it was."""
        before = torch.from_numpy(score).requires_grad_()
        with torch.enable_grad():
            after = self._modified(before, _indices(b, *others), self._parameters).expand(before.shape)
            total = after.sum()
        if not after.requires_grad:  # a number that no score has a part in
            return after.numpy(), torch.zeros_like(before).detach().numpy()
        # One score of the result for one of what it was made of: the derivative of their sum is that of each.
        (derivative,) = torch.autograd.grad(total, before, materialize_grads=True)
        return after.detach().numpy(), derivative.numpy()

    def _scores(self, b: int, heads: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What the function was given, [keys, rows], computed again."""
        query, key = (x[(None,) * (4 - x.dim())] for x in (self._query, self._key))
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        group = query.shape[1] // key.shape[1]
        # The rows of a tile have the same keys.
        some = key[b, int(heads[0]) // group, keys[0] : keys[-1] + 1].to(dtype)
        score = self._scale * (some @ query[b, heads, rows].to(dtype).T)
        return score if self._softcap == 0 else self._softcap * torch.tanh(score / self._softcap)

    def learn(self, grad: numpy.ndarray, query_offset: int, b: int, *others: numpy.ndarray) -> None:
        """Adds what these gradients of modified scores say about the parameters."""
        if not self._wanted:
            return
        grad_scores, indices = torch.from_numpy(grad), _indices(b, *others)
        _, heads, q_idx, kv_idx = indices
        score = self._scores(b, heads, q_idx - query_offset, kv_idx[:, 0])
        # A score that nobody sees may be anything, and so may be what the function makes of it.
        is_seen = grad_scores != 0
        score = torch.where(is_seen, score, 0.0)
        parameters = [x.detach().requires_grad_(i in self._sums) for i, x in enumerate(self._parameters)]
        with torch.enable_grad():
            after = self._modified(score, indices, parameters).expand(score.shape)
        if not after.requires_grad:
            return
        wanted = [parameters[i] for i in self._wanted]
        found = torch.autograd.grad(after, wanted, grad_scores.to(after.dtype), allow_unused=True)
        with self._lock:
            for i, gradient in zip(self._wanted, found):
                if gradient is not None:
                    self._sums[i] += gradient
