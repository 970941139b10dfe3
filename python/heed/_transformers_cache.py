"""The cache of heed.transformers, and attention over what it has."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from . import _heed
from ._kv_cache import attend as attend_to_sequences

if TYPE_CHECKING:
    from torch import Tensor

# Whom errors name.
_CACHE = "heed.transformers.KvCache"
HEED = 'attn_implementation="heed"'


class Cached(torch.Tensor):
    """Keys or values as a cache gives them to a model: a tensor's shape, the states that are new, and the layer that
    has all others. Whoever wants its elements is told who may read them."""

    @staticmethod
    def __new__(cls, layer: _Layer, states: Tensor) -> Cached:
        batch, num_kv_heads, n, dim = states.shape
        shape = (batch, num_kv_heads, layer.get_seq_length() + n, dim)
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=states.dtype, device=states.device)

    def __init__(self, layer: _Layer, states: Tensor) -> None:
        self.layer = layer
        self.states = states

    def __repr__(self) -> str:
        return f"<{list(self.shape)} in a heed.transformers.KvCache>"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise ValueError(
            f"{_CACHE}: {function} of cached keys or values, which only the attention of a model with {HEED} reads"
        )


class _Layer(CacheLayerMixin):
    """What a layer of a model caches: a KvSequence for each entry of the batch, of the entry's text without padding."""

    is_croppable = True
    supports_early_init = False

    def __init__(self, **storage: Any) -> None:
        super().__init__()
        self._storage = storage
        self._pool: _heed.KvPool | None = None
        self._sequences: list[_heed.KvSequence] = []
        self._is_text = torch.ones(0, 0, dtype=torch.bool)  # [batch, length]; the others are padding

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        batch, num_kv_heads, _, head_dim = key_states.shape
        if self._pool is None:
            self._pool = _heed.KvPool(num_kv_heads, head_dim, value_states.shape[-1], **self._storage)
        self._sequences = [_heed.KvSequence(self._pool) for _ in range(batch)]
        self._is_text = torch.ones(batch, 0, dtype=torch.bool)
        self.batch_size = batch
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_, **__) -> tuple[Cached, Cached]:
        """Nothing is appended before attention says which of these states are padding."""
        if key_states.device.type != "cpu":
            raise ValueError(f"{_CACHE}: keys are on {key_states.device}, expected cpu")
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if len(key_states) != self.batch_size:
            raise ValueError(f"{_CACHE}: a batch of {len(key_states)}, expected {self.batch_size} as cached")
        return Cached(self, key_states), Cached(self, value_states)

    def new_text(self, attention_mask: Tensor | None, n: int) -> Tensor:
        """Which of n new positions are text, [batch, n], by a mask of all positions [batch, length + n]."""
        length = self.get_seq_length()
        if attention_mask is None:
            attention_mask = torch.ones(self.batch_size, length + n, dtype=torch.bool)
        self._check_extents(attention_mask.shape, (self.batch_size, length + n), n)
        is_text = attention_mask.bool()
        if not torch.equal(is_text[:, :length], self._is_text):
            raise ValueError(f"{_CACHE}: attention_mask has other padding than when keys were cached")
        return is_text[:, length:]

    def all_text(self, attention_mask: Tensor, n: int) -> Tensor:
        """The same where a mask [batch or 1, num_heads or 1, n, length + n] says what is seen: all positions are kept."""
        expected = (*attention_mask.shape[:2], n, self.get_seq_length() + n)
        self._check_extents(attention_mask.shape, expected, n)
        return torch.ones(self.batch_size, n, dtype=torch.bool)

    def _check_extents(self, found: tuple[int, ...], expected: tuple[int, ...], n: int) -> None:
        if tuple(found) != expected:
            raise ValueError(
                f"{_CACHE}: attention_mask is {list(found)}, expected {list(expected)}: {self.get_seq_length()} "
                f"positions are cached, {n} are new"
            )

    def append(self, key: Tensor, value: Tensor, is_text: Tensor) -> None:
        """[batch, num_kv_heads, n, dim], of which entry b keeps the positions that are text. All entries or none."""
        is_padded = not is_text.all()
        for entry, sequence in enumerate(self._sequences):
            new = (key[entry], value[entry])
            if is_padded:
                new = (states[:, is_text[entry]] for states in new)
            try:
                sequence.append(*new)
            except Exception:
                self._truncate(self._is_text)
                raise
        self._is_text = torch.cat([self._is_text, is_text], dim=1)

    def attend(self, query: Tensor, is_text: Tensor, **options: Any) -> Tensor:
        """Causal attention of query [batch, num_heads, n, head_dim], the last n positions, where they are text:
        [batch, n, num_heads, value_dim]; 0 where they are padding."""
        boundaries = [0, *is_text.sum(1).cumsum(0).tolist()]
        is_padded = boundaries[-1] < is_text.numel()
        rows = query.transpose(1, 2)
        packed = rows[is_text] if is_padded else rows.flatten(0, 1)
        found = attend_to_sequences(packed, self._sequences, boundaries, causal="bottom_right", **options)
        if not is_padded:
            return found.unflatten(0, is_text.shape)
        out = found.new_zeros(*is_text.shape, *found.shape[1:])
        out[is_text] = found
        return out

    def attend_as_masked(self, query: Tensor, mask: Tensor, **options: Any) -> Tensor:
        """The same with a mask [batch or 1, num_heads or 1, n, length], booleans (true = may attend) or to be added."""
        make = _heed.allow if mask.dtype == torch.bool else _heed.additive
        mask = mask.expand(self.batch_size, -1, -1, -1)
        outs = []
        for entry, sequence in enumerate(self._sequences):
            seen = mask[entry][..., self._is_text[entry]].contiguous()
            outs.append(attend_to_sequences(query[entry], sequence, mask=make(seen), **options))
        return torch.stack(outs).transpose(1, 2)

    def _truncate(self, is_text: Tensor) -> None:
        """Forgets what does not belong to these first positions."""
        for sequence, length in zip(self._sequences, is_text.sum(1).tolist()):
            sequence.truncate(length)
        self._is_text = is_text

    def _select(self, entries: list[int]) -> None:
        """These entries become the batch; pages are shared."""
        if self.is_initialized:
            self._sequences = [self._sequences[entry].fork() for entry in entries]
            self._is_text = self._is_text[entries]
            self.batch_size = len(entries)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self._select(beam_idx.tolist())

    def batch_select_indices(self, indices: Tensor) -> None:
        self._select(torch.arange(len(self._sequences))[indices.cpu()].tolist())

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._select([entry for entry in range(len(self._sequences)) for _ in range(repeats)])

    def crop(self, tokens_to_remove: int) -> None:
        """Of -n: forgets the last n positions."""
        length = self.get_seq_length() + tokens_to_remove
        if tokens_to_remove > 0 or length < 0:
            raise ValueError(
                f"{_CACHE}: crop of {tokens_to_remove}, expected {-self.get_seq_length()} to 0: minus the number of "
                "positions to forget"
            )
        self._truncate(self._is_text[:, :length])

    def reset(self) -> None:
        self._truncate(self._is_text[:, :0])
        self.is_initialized = False

    def get_seq_length(self) -> int:
        return self._is_text.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1

    def __deepcopy__(self, _memo: dict) -> _Layer:
        copied = _Layer(**self._storage)
        copied.__dict__.update(self.__dict__)
        copied._select(list(range(len(self._sequences))))
        return copied

    @property
    def allocated_bytes(self) -> int:
        return 0 if self._pool is None else self._pool.allocated_bytes


class KvCache(Cache):
    """past_key_values of a model with attn_implementation="heed": a heed.KvSequence for each layer and entry of the
    batch.

    key_storage, value_storage: "float32", "float16", "bfloat16", "int8" or "int4", as of a heed.KvPool
    page_size, max_pages: of each layer, whose pages are a pool. Where they run out, heed.OutOfPages is raised and the
                          layer is as it was. Layers that are all alike run out in the first of them: the cache is
                          then as it was before the model was called

    Prompts of different lengths are padded as their attention_mask says, and padding is not stored, but in layers with
    windows or other masks of their own. Beams share the pages of what they have in common, and so do copies:
    copy.deepcopy(cache) takes memory only for what is appended afterwards.

    >>> cache = heed.transformers.KvCache(key_storage="int8", value_storage="int4")
    >>> tokens = model.generate(**inputs, past_key_values=cache)
    """

    def __init__(
        self,
        *,
        key_storage: str = "float32",
        value_storage: str | None = None,
        page_size: int = 128,
        max_pages: int | None = None,
    ) -> None:
        storage = {
            "key_storage": key_storage, "value_storage": value_storage, "page_size": page_size, "max_pages": max_pages,
        }  # fmt: skip
        _heed.KvPool(1, 1, **storage)  # what is wrong with these is said before a model runs
        super().__init__(layer_class_to_replicate=functools.partial(_Layer, **storage))

    @property
    def allocated_bytes(self) -> int:
        """Memory allocated for the pages of all layers."""
        return sum(layer.allocated_bytes for layer in self.layers)


def _check(
    module: Any,
    query: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    is_causal: bool | None,
    position_bias: Tensor | None,
) -> None:
    """Refuses what is not computed here, before anything is appended."""
    if torch.is_grad_enabled() and query.requires_grad:
        raise ValueError(f"{HEED}: the query requires a gradient, which a cache does not have; use torch.no_grad()")
    if dropout:
        raise ValueError(f"{HEED}: dropout is {dropout}, expected 0 with a cache")
    if position_bias is not None:
        raise ValueError(f"{HEED}: there is a position_bias, expected none")
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is None and not is_causal:
        raise ValueError(f"{HEED}: the layer is not causal and has no attention_mask")


def attend(
    module: Any, query: Tensor, key: Cached, value: Cached, attention_mask: Tensor | None, dropout: float, **options: Any
) -> Tensor:
    """Attention of query [batch, num_heads, n, head_dim] over what a KvCache has: [batch, n, num_heads, value_dim].
    attention_mask is the padding [batch, length] of a causal layer, or of rank 4; is_causal and position_bias are
    those of the layer, the others as attention takes them."""
    refused = {name: options.pop(name) for name in ("is_causal", "position_bias")}
    _check(module, query, attention_mask, dropout, **refused)
    options["num_threads"] = torch.get_num_threads()
    layer, n = key.layer, query.shape[2]
    if attention_mask is None or attention_mask.ndim == 2:
        is_text = layer.new_text(attention_mask, n)
        layer.append(key.states, value.states, is_text)
        return layer.attend(query, is_text, **options)
    layer.append(key.states, value.states, layer.all_text(attention_mask, n))
    return layer.attend_as_masked(query, attention_mask, **options)
