from collections.abc import Callable, Sequence
from typing import Any

__version__: str

def num_threads() -> int:
    """How many threads a call from here may use."""

def set_num_threads(count: int) -> None:
    """
    Sets num_threads() for the whole process; 0 returns to the number of processors.
    """

def attention_target() -> str:
    """
    The instruction set whose kernels are in use, e.g. "AVX512", or "reference".
    """

def attention_targets() -> list[str]:
    """All that can compute attention here, the best first."""

def alibi_slopes(num_heads: int) -> Any:
    """The usual slopes of ALiBi, float32 [num_heads]."""

class Mask:
    """
    Which keys each query may attend to. Masks are made by name, combine with &, and print themselves.
    """

    def __init__(self) -> None:
        """Everything is visible."""

    def __and__(self, arg: Mask, /) -> Mask:
        """A key is visible when both allow it; what both add is added."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def allow(self, shape: Sequence[int], query_offset: int = 0) -> Any:
        """
        The mask as booleans of the given shape, (q_len, kv_len) or (batch, num_heads, q_len, kv_len): true =
        may attend.
        """

    def additive(self, shape: Sequence[int], query_offset: int = 0) -> Any:
        """What is added to the scores, float32; -inf = may not attend."""

    def picture(self, shape: Sequence[int], query_offset: int = 0, batch: int = 0, head: int = 0) -> str:
        """
        One line a query, one glyph a key: # is visible, . is not.

        >>> print(heed.causal().picture((3, 3)))
        #..
        ##.
        ###
        """

def allow(array: Any, *, kv_len: int | None = None) -> Mask:
    """
    true = may attend. The array broadcasts, aligned at the right, to [batch, num_heads, q_len, kv_len]; the mask refers
    to its memory. With kv_len it is copied, and keys that it lacks at the end may not be attended to.
    """

def block(array: Any) -> Mask:
    """true = may not attend; otherwise as allow()."""

def additive(array: Any, *, kv_len: int | None = None) -> Mask:
    """
    Values added to the scores; -inf = may not attend. Float32 is referred to, other types are copied, and so are masks
    that kv_len makes longer, as in allow().
    """

def where(visible: Callable) -> Mask:
    """
    A key is visible where visible(b, h, q_idx, kv_idx) is true.

    The function is called for a tile of scores at once, with NumPy arrays that broadcast to [keys, rows]: h and
    q_idx are int32 [rows], kv_idx int32 [keys, 1], b an int; it returns booleans that broadcast so too. It is
    called for any tile, in any order, from any thread: hundreds of times slower than a mask by name.

    >>> heed.where(lambda b, h, q_idx, kv_idx: (q_idx - kv_idx) % 4 == 0)
    """

def rows(ranges: Sequence[tuple[int, int]]) -> Mask:
    """One range of keys, (begin, end), for each of the q_len queries."""

def causal(alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query sees the keys up to the position it stands at. "square" demands as many queries as keys; "top_left"
    puts query 0 at key 0, "bottom_right" the last query at the last key, a number query 0 at that key, a list the last
    query of sequence b at the last of its first lengths[b] keys.
    """

def sliding_window(left: int | None, right: int | None, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query sees itself, `left` keys before it and `right` keys after it; None: no bound.
    """

def prefix(length: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    Every query sees the first `length` keys, and the keys up to its own position.
    """

def key_lengths(lengths: Sequence[int]) -> Mask:
    """
    Sequence b of the batch has lengths[b] keys; the rest is padding that nobody sees.
    """

def key_padding(token_ids: Any, padding_id: int) -> Mask:
    """
    Hides the keys whose token is padding_id. token_ids: int64 [batch, kv_len], copied.
    """

def documents(cu_seqlens: Sequence[int]) -> Mask:
    """
    Several sequences packed into one: a query sees the keys of its own document only. Document i is the positions
    cu_seqlens[i] <= p < cu_seqlens[i + 1].
    """

class Options:
    def __init__(
        self, function: str, *, mask: Mask | None, score_mod: Any, alibi_slopes: Any, bias: Any, sinks: Any, scale: float
        | None, softcap: float, dropout: float, seed: int, query_offset: int,
    ) -> None: ...

def attention(query: Any, key: Any, value: Any, options: Options, with_lse: bool, num_threads: int | None) -> Any: ...

def attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, out: Any, lse: Any, options: Options, num_threads: int |
    None,
) -> Any: ...

def attention_weights(
    query: Any, key: Any, rows: Sequence[Sequence[int]], options: Options, num_threads: int | None,
) -> Any: ...

def attention_statistics(query: Any, key: Any, top_k: int, options: Options, num_threads: int | None) -> Any: ...

def merge_attention(parts: tuple[tuple[Any, Any], ...], num_threads: int | None) -> tuple[Any, Any]: ...

def reference_attention(query: Any, key: Any, value: Any, keep: Sequence[str], options: Options) -> Any: ...

def rotary_embedding(
    x: Any, cos: Any, sin: Any, *, position_ids: Any = None, interleaved: bool = False, rotary_dim: int | None = None,
    offset: int = 0, num_heads: int | None = None,
) -> Any:
    """
    x [batch, num_heads, length, head_dim], or [batch, length, num_heads * head_dim] with num_heads, with pairs of its
    first rotary_dim dimensions turned. cos and sin are [max_len, rotary_dim / 2], whose rows position_ids (int64 [batch,
    length]) or offset choose, or [batch, length, rotary_dim / 2].
    """

def rotary_embedding_backward(
    grad_out: Any, cos: Any, sin: Any, *, position_ids: Any = None, interleaved: bool = False, rotary_dim: int | None =
    None, offset: int = 0, num_heads: int | None = None,
) -> Any:
    """
    The derivative of a loss with respect to x of rotary_embedding, given grad_out, that with respect to the result: the
    rotation back. float32 or float64.
    """

def linear_attention(
    query: Any, key: Any, value: Any, *, decay: Any = None, beta: Any = None, state: Any = None, scale: float | None =
    None,
) -> Any:
    """
    (out, state) of the recurrence S = exp(decay) S + k v, out = scale S q; with beta, the delta rule. query [batch,
    num_heads, length, head_dim], key and value [batch, num_kv_heads, length, ...], decay [batch, num_kv_heads, length,
    head_dim or 1], beta [batch, num_kv_heads, length], state [batch, num_kv_heads, head_dim, value_dim].
    """

def reference_linear_attention(
    query: Any, key: Any, value: Any, *, decay: Any = None, beta: Any = None, state: Any = None, scale: float | None =
    None,
) -> Any: ...

def feature_map_attention(
    query: Any, key: Any, value: Any, *, feature_map: str = 'elu+1', causal: bool = False, normalized: bool = True,
) -> Any:
    """
    Attention in linear time whose weights are products of features, "elu+1" or "relu", of query and key; float32 or
    float64.
    """

def linear_attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, grad_state: Any, extras: tuple[Any, Any, Any], scale: float | None,
) -> tuple[Any, ...]: ...

def feature_map_attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, feature_map: str, causal: bool, normalized: bool,
) -> tuple[Any, Any, Any]: ...

def attention_packed(
    query: Any, key: Any, value: Any, cu_seqlens_q: Sequence[int], cu_seqlens_k: Sequence[int], options: Options,
    num_threads: int | None,
) -> Any: ...

def attention_packed_with_lse(
    query: Any, key: Any, value: Any, cu_seqlens_q: Sequence[int], cu_seqlens_k: Sequence[int], options: Options,
    num_threads: int | None,
) -> tuple[Any, Any]: ...

def attention_packed_backward(
    grad_out: Any, query: Any, key: Any, value: Any, forward: tuple[Any, Any], cu_seqlens: tuple[Sequence[int],
    Sequence[int]], options: Options, num_threads: int | None,
) -> tuple[Any, ...]: ...

def reference_flex_attention(
    query: Any, key: Any, value: Any, *, score_mod: Any = None, prob_mod: Any = None, scale: float | None = None,
) -> Any: ...

def attention_page(
    query: Any, key: Any, batch: int, head: int | None, names: tuple[Sequence[str], Sequence[str]], options: Options,
) -> str:
    """The explorer's page of the attention of one head or of all, as HTML."""

def weights_page(
    weights: Any, batch: int, head: int | None, names: tuple[Sequence[str], Sequence[str]],
) -> str:
    """The explorer's page of weights [queries, keys], [num_heads, queries, keys] or [batch, num_heads, queries, keys], as HTML."""

class Plan:
    """
    A decision how to compute attention, made once and run as often as wanted, by any number of threads at once.
    """

    def run(self, query: Any, key: Any, value: Any) -> Any:
        """Attention of arrays whose shapes and type are those planned for."""

    def __call__(self, query: Any, key: Any, value: Any) -> Any: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def tiles(self) -> dict:
        """
        How much of the score matrix is computed: tiles in total, skipped, and mixed, of which some query does
        not see all keys.
        """

    @property
    def target(self) -> str:
        """The kernels' instruction set."""

    @property
    def num_threads(self) -> int: ...

    @property
    def splits_keys(self) -> bool:
        """Whether threads share the keys of a row."""

    @property
    def stages_keys(self) -> bool:
        """Whether keys are first copied, a tile at a time."""

    @property
    def stages_values(self) -> bool: ...

    @property
    def workspace_bytes(self) -> int: ...

def plan(query: Any, key: Any, value: Any, dtype: str, options: Options) -> Plan: ...
