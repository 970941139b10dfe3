"""Attention for arrays: one fused operator with masks, gradients and the means to look inside it.

>>> import heed, numpy
>>> query = numpy.random.randn(1, 8, 128, 64).astype("float32")  # [batch, num_heads, q_len, head_dim]
>>> key = numpy.random.randn(1, 2, 128, 64).astype("float32")  # [batch, num_kv_heads, kv_len, head_dim]
>>> out = heed.attention(query, key, key, mask=heed.causal() & heed.sliding_window(31, 0))
>>> out.shape
(1, 8, 128, 64)
"""

from . import reference
from ._heed import (
    Mask,
    Plan,
    __version__,
    additive,
    alibi_slopes,
    allow,
    attention_target,
    attention_targets,
    block,
    causal,
    documents,
    feature_map_attention,
    key_lengths,
    key_padding,
    linear_attention,
    num_threads,
    prefix,
    rotary_embedding,
    rotary_embedding_backward,
    rows,
    set_num_threads,
    sliding_window,
    where,
)
from ._operator import (
    AttentionGradients,
    AttentionStatistics,
    attention,
    attention_backward,
    attention_statistics,
    attention_weights,
    merge_attention,
    plan,
)
from ._relatives import (
    FeatureMapGradients,
    LinearAttentionGradients,
    attention_packed,
    attention_packed_backward,
    feature_map_attention_backward,
    linear_attention_backward,
)
from ._show import Page, show

__all__ = [
    "AttentionGradients",
    "AttentionStatistics",
    "FeatureMapGradients",
    "LinearAttentionGradients",
    "Mask",
    "Page",
    "Plan",
    "__version__",
    "additive",
    "alibi_slopes",
    "allow",
    "attention",
    "attention_backward",
    "attention_packed",
    "attention_packed_backward",
    "attention_statistics",
    "attention_target",
    "attention_targets",
    "attention_weights",
    "block",
    "causal",
    "documents",
    "feature_map_attention",
    "feature_map_attention_backward",
    "key_lengths",
    "key_padding",
    "linear_attention",
    "linear_attention_backward",
    "merge_attention",
    "num_threads",
    "plan",
    "prefix",
    "reference",
    "rotary_embedding",
    "rotary_embedding_backward",
    "rows",
    "set_num_threads",
    "show",
    "sliding_window",
    "where",
]
