"""attn_implementation="heed" for any model of transformers, with any of its caches or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function, sdpa_mask

from ._attention import attention
from ._transformers_cache import HEED, Cached, attend

if TYPE_CHECKING:
    from torch import Tensor

# The padding, or None, of which a causal mask of rank 4 was made: a KvCache needs no more.
_PADDING = "heed_padding"


def _is_causal(module: Any, is_causal: bool | None, attention_mask: Tensor | None, q_len: int) -> bool:
    """As transformers' sdpa: no mask means causal for several queries, and everything for one."""
    if attention_mask is not None or q_len == 1:
        return False
    return bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)


def _attention(
    module: Any,
    query: Tensor,
    key: Any,
    value: Any,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """transformers' attention of query [batch, num_heads, q_len, head_dim] over keys and values of any cache:
    [batch, q_len, num_heads, value_dim], and the weights where output_attentions asks for them."""
    options = {"scale": scaling, "softcap": softcap or 0.0, "sinks": s_aux}
    if isinstance(key, Cached):
        padding = getattr(attention_mask, _PADDING, attention_mask)
        options |= {"is_causal": is_causal, "position_bias": position_bias}
        return attend(module, query, key, value, padding, dropout, **options), None
    if others.get("cache") is not None:
        raise ValueError(f"{HEED}: there is a {type(others['cache']).__name__}, expected keys and values in tensors")
    if len(query) == 1 < len(key):
        query = query.expand(len(key), -1, -1, -1)
    if attention_mask is not None:
        attention_mask = attention_mask[..., : key.shape[2]]
    found = attention(
        query,
        key,
        value,
        mask=attention_mask,
        # A cache of fixed size has more keys than queries; those that are filled come first.
        causal="top_left" if _is_causal(module, is_causal, attention_mask, query.shape[2]) else False,
        bias=None if position_bias is None else position_bias[..., : key.shape[2]],
        dropout=dropout,
        return_weights=bool(others.get("output_attentions")),
        **options,
    )
    out, weights = found if isinstance(found, tuple) else (found, None)
    return out.transpose(1, 2).contiguous(), weights


def _mask(*, mask_function=causal_mask_function, attention_mask=None, **others: Any) -> Tensor | None:
    """The mask of sdpa: booleans [batch, 1, q_len, kv_len], or None where is_causal says everything."""
    made = sdpa_mask(mask_function=mask_function, attention_mask=attention_mask, **others)
    if made is not None and mask_function is causal_mask_function:
        setattr(made, _PADDING, attention_mask)
    return made


def register() -> None:
    AttentionInterface.register("heed", _attention)
    AttentionMaskInterface.register("heed", _mask)
