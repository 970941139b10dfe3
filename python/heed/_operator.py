"""The operator with the keywords of Python. Everything is computed by the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _heed
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Unpack

    from ._options import Options


class AttentionOutput(tuple):
    """What attention is and what it was divided by: the tuple (out, lse), or (out, lse, weights) where weights_of asked for
    them, with two attributes more, lse_low and out_low.

    A float32 lse of magnitude m is off by up to m · 2⁻²⁴, and so would be all weights that attention_backward()
    computes from it, each by so much of itself. lse_low, in the shape and type of lse, is what it lacks. out_low, in the
    shape and type of out, is what an out of half precision lacks; None of other types, and with precision="exact".
    """

    lse_low: Any
    out_low: Any

    def __new__(cls, out: Any, lse: Any, lse_low: Any, out_low: Any = None, *weights: Any) -> AttentionOutput:
        self = super().__new__(cls, (out, lse, *weights))
        self.lse_low, self.out_low = lse_low, out_low
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self[:2], self.lse_low, self.out_low, *self[2:])

    @property
    def out(self) -> Any:
        return self[0]

    @property
    def lse(self) -> Any:
        return self[1]


class AttentionGradients(NamedTuple):
    """The derivatives of a loss with respect to what attention was given, each in the shape of the thing it belongs to;
    None for what was not given."""

    query: Any
    key: Any
    value: Any
    alibi_slopes: Any
    bias: Any
    sinks: Any
    relative_bias: Any
    """of its table"""
    relative_key: Any
    """of the key table of relative_vectors"""
    relative_value: Any
    """of their value table"""


class AttentionStatistics(NamedTuple):
    """What attention weights are like. A query that sees no key has entropy 0, max_weight 0 and max_key -1."""

    lse: Any
    """[batch, num_heads, q_len]: the natural logarithm of the softmax's denominator, the sink included"""
    entropy: Any
    """[batch, num_heads, q_len], in nats: 0 when one key has all the weight, ln n for n equal weights"""
    max_weight: Any
    """[batch, num_heads, q_len]"""
    max_key: Any
    """int64 [batch, num_heads, q_len]: the first of equals"""
    top_weights: Any
    """[batch, num_heads, q_len, top_k], in falling order"""
    top_keys: Any
    """int64 [batch, num_heads, q_len, top_k]; -1 where fewer keys have a weight above 0"""
    key_mass: Any
    """[batch, num_heads, kv_len]: the attention a key receives, summed over the queries"""


def attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    mask: _heed.Mask | str | None = None,
    causal: bool | str = False,
    window: int | tuple[int | None, int | None] | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    score_mod: Callable[..., Any] | None = None,
    bias: Any = None,
    alibi_slopes: Any = None,
    relative_bias: tuple[Any, _heed.RelativeBuckets] | None = None,
    relative_vectors: tuple[Any, Any, _heed.RelativeBuckets] | None = None,
    sinks: Any = None,
    dropout: float = 0.0,
    seed: int = 0,
    query_offset: int | Sequence[int] = 0,
    precision: str = "fast",
    return_lse: bool = False,
    weights_of: Sequence[tuple[int, int, int]] | None = None,
    num_threads: int | None = None,
) -> Any:
    """softmax(scale · query · keyᵀ) · value, in one pass and in memory linear in the lengths.

    query: [batch, num_heads, q_len, head_dim]
    key:   [batch, num_kv_heads, kv_len, head_dim]
    value: [batch, num_kv_heads, kv_len, value_dim]

    Arrays of NumPy, PyTorch or anything else with DLPack or the buffer protocol, in the processor's memory, all float32,
    float16, bfloat16 or float64. Strides may be any but in the last dimension, whose elements lie side by side; nothing
    is copied. Dimensions in front may be left out. num_heads is a multiple of num_kv_heads. Half precision is computed
    in float32 and only the result is rounded, but bfloat16 is multiplied as it is where the processor does so faster;
    float64 is computed in float64.

    In this order: scale, softcap, score_mod, ALiBi, bias, relative positions, mask, sinks, softmax, dropout, values.

    mask              a heed.Mask, made by name and combined with & and |, or its text: "causal & sliding_window(31, 0)"
    causal            True: as many queries as keys, each sees the keys up to itself; "top_left" or "bottom_right" where
                      there are not as many, or mask=heed.causal(n), query 0 at key n
    window            (left, right): a query sees that many keys besides itself, None all; n is (n, n). It stands where
                      `causal` says
    scale             1/√head_dim when not given
    softcap           c > 0: a score s becomes c · tanh(s / c)
    score_mod         score_mod(score, b, h, q_idx, kv_idx) -> score, called with NumPy arrays for a tile of scores:
                      score [keys, rows], h and q_idx [rows], kv_idx [keys, 1]; it must work element by element, and is
                      called from any thread. Several times slower than the options by name
    bias              added to the scores; broadcasts to [batch, num_heads, q_len, kv_len]
    alibi_slopes      [num_heads]: the score falls by slope · distance; heed.alibi_slopes(num_heads)
    relative_bias     (table, buckets), a heed.RelativeBuckets: table[head, buckets(kv_idx - q_idx)] is added to the
                      score; table [num_heads, buckets.count]
    relative_vectors  (key, value, buckets), either table or None: key[..., buckets(kv_idx - q_idx), :] is added to the
                      key and likewise to the value, as each query sees them; [num_heads, buckets.count, dim], or
                      [buckets.count, dim] for all heads
    sinks             [num_heads]: one more logit in the softmax's denominator, without a value
    dropout           the probability with which a weight becomes 0; which ones is decided by `seed`
    query_offset      the position of query 0 in the sequence: a number, or a list of one for each batch entry. With
                      alibi_slopes or relative positions and masks aligned "bottom_right" it need not be given
    precision         "fast": where the processor multiplies bfloat16 twice as fast as float32, weights are rounded to it
                      and sums are float32; "exact": as the floats they stand for
    num_threads       at most so many

    bias, alibi_slopes, tables and sinks are float32 (float64 for float64 queries); other floating-point types are copied.

    Returns out [batch, num_heads, q_len, value_dim], an array of the query's kind. With return_lse also
    lse [batch, num_heads, q_len], float32 for half precision: log Σ exp(score), in an AttentionOutput. With weights_of,
    rows (batch, head, query), also their weights [rows, kv_len], before dropout. A query that sees no key gets 0.

    Raises ValueError, before anything is computed, when shapes or options do not fit.

    >>> import heed, numpy
    >>> x = numpy.random.randn(1, 8, 128, 64).astype("float32")
    >>> out, lse, weights = heed.attention(x, x, x, causal=True, return_lse=True, weights_of=[(0, 3, 127)])
    >>> out.shape, lse.shape, weights.shape
    ((1, 8, 128, 64), (1, 8, 128), (1, 128))
    """
    options = make_options(
        "attention",
        mask=mask,
        causal=causal,
        window=window,
        scale=scale,
        softcap=softcap,
        score_mod=score_mod,
        bias=bias,
        alibi_slopes=alibi_slopes,
        relative_bias=relative_bias,
        relative_vectors=relative_vectors,
        sinks=sinks,
        dropout=dropout,
        seed=seed,
        query_offset=query_offset,
        precision=precision,
    )
    found = _heed.attention(query, key, value, options, return_lse, num_threads)
    more = () if weights_of is None else (_heed.attention_weights(query, key, weights_of, options, num_threads),)
    if return_lse:
        return AttentionOutput(*found, *more)
    return (found, *more) if more else found


def attention_backward(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    *,
    lse_low: Any = None,
    out_low: Any = None,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> AttentionGradients:
    """The gradients of attention(query, key, value, **options), given grad_out [batch, num_heads, q_len, value_dim], the
    derivative of the loss with respect to out, and what attention(…, return_lse=True) returned. Without lse_low all
    weights of a row are off by |lse| · 2⁻²⁴ of themselves.

    Half precision is computed in float32; the gradients of the options and lse are float32 then. Without out_low, or with
    precision="exact", out is computed again, which takes as long as attention() does. Where bfloat16 is multiplied as it is,
    gradients of scores are rounded to it before queries and keys are multiplied by them. The options are those of
    attention() but for score_mod.

    >>> made = heed.attention(x, x, x, causal=True, return_lse=True)
    >>> gradients = heed.attention_backward(numpy.ones_like(x), x, x, x, *made, lse_low=made.lse_low, causal=True)
    >>> gradients.query.shape
    (1, 8, 128, 64)
    """
    made = make_options("attention_backward", **options)
    forward = (out, lse, lse_low, out_low)
    return AttentionGradients(*_heed.attention_backward(grad_out, query, key, value, forward, made, num_threads))


def merge_attention(*parts: tuple[Any, Any], num_threads: int | None = None) -> AttentionOutput:
    """attention() over all keys, from the tuples (out, lse) that it gave with return_lse for parts of them.

    out: [..., value_dim], the same shape in every part; float32, float16, bfloat16 or float64
    lse: [...], float32 for half precision. That of attention_packed() has its heads in front: lse.T

    Parts must not overlap: sinks, for one, are given to one part only. Positions count from the first key of each part:
    for keys that begin at `first` the query_offset is `first` less, and dropout and score_mod see these positions.

    Returns (out, lse), an AttentionOutput: lse = log Σᵢ exp(lseᵢ), out = Σᵢ exp(lseᵢ - lse) · outᵢ. Parts that have lse_low
    count with it, others are weighted wrong by |lseᵢ| · 2⁻²⁴ of their weight. A row that saw no key in a part, where
    its lse is -inf, has the bits of the others' result; an lse of inf outweighs all that are finite.

    >>> first, second = (heed.attention(x, y, y, return_lse=True) for y in (x[:, :, :100], x[:, :, 100:]))
    >>> out, lse = heed.merge_attention(first, second)
    >>> bool(abs(out - heed.attention(x, x, x)).max() < 1e-5)
    True
    """
    return AttentionOutput(*_heed.merge_attention(parts, num_threads))


def attention_weights(
    query: Any,
    key: Any,
    rows: Sequence[tuple[int, int, int]],
    *,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """The weights of some rows, (batch, head, query): [rows, kv_len]. Nothing is computed of other rows.

    Weights are those of the softmax, before dropout. The options are those of attention().
    """
    return _heed.attention_weights(query, key, rows, make_options("attention_weights", **options), num_threads)


def attention_statistics(
    query: Any, key: Any, *, top_k: int = 0, num_threads: int | None = None, **options: Unpack[Options]
) -> AttentionStatistics:
    """Entropy, largest weights and what each key receives, for every row, in memory linear in the lengths.

    top_k: how many of each row's largest weights to keep. The options are those of attention().

    >>> found = heed.attention_statistics(x, x, top_k=3, causal=True)
    >>> found.entropy.shape, found.top_keys.shape
    ((1, 8, 128), (1, 8, 128, 3))
    """
    made = make_options("attention_statistics", **options)
    return AttentionStatistics(*_heed.attention_statistics(query, key, top_k, made, num_threads))


def plan(query: Any, key: Any, value: Any, *, dtype: str = "float32", **options: Unpack[Options]) -> _heed.Plan:
    """What attention will do for these shapes: a Plan, which prints itself with its reasons and runs as often as wanted.

    query, key, value: arrays, of which only shape, layout and type are looked at, or tuples of extents, with dtype
    "float32", "float64", "float16" or "bfloat16". The options are those of attention(); their arrays must not change.

    >>> shape = (1, 8, 512, 64)
    >>> print(heed.plan(shape, shape, shape, causal=True))
    attention   query [1, 8, 512, 64], key [1, 8, 512, 64], value [1, 8, 512, 64], float32
    mask        causal
    scores      none
    kernel      ...
    """
    return _heed.plan(query, key, value, dtype, make_options("plan", **options))
