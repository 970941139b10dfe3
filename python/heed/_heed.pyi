import os
from collections.abc import Callable, Sequence
from typing import Any

__version__: str

def num_threads() -> int:
    """How many threads a call from here may use."""

def set_num_threads(count: int) -> None:
    """
    Sets num_threads() for the whole process; 0 returns to the number of processors.
    """

def max_kept_memory() -> int:
    """How many bytes of what tensors gave back are kept for the next ones, at most."""

def set_max_kept_memory(bytes: int) -> None:
    """Sets max_kept_memory() for the whole process; 0 gives everything back."""

def kept_memory() -> int:
    """How many bytes are kept now."""

def share_torch_threads(is_shared: bool) -> bool: ...

def attention_target() -> str:
    """
    The instruction set whose kernels are in use, e.g. "AVX512", or "reference".
    """

def attention_targets() -> list[str]:
    """All that can compute attention here, the best first."""

def attention_bits(precision: str = "exact") -> str:
    """
    The arithmetic whose bits are computed: equal answers of two machines mean equal bits.
    """

def alibi_slopes(num_heads: int) -> Any:
    """The usual slopes of ALiBi, float32 [num_heads]."""

class Mask:
    """
    Which keys each query may attend to. Masks are made by name, combine with & and |, and print themselves.
    """

    def __init__(self) -> None:
        """Everything is visible."""

    def __and__(self, arg: Mask, /) -> Mask:
        """A key is visible when both allow it; what both add is added."""

    def __or__(self, arg: Mask, /) -> Mask:
        """A key is visible when either allows it. What adds to scores comes behind: (a | b) & added."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

    def allow(self, shape: Sequence[int], query_offset: int | Sequence[int] = 0) -> Any:
        """
        The mask as booleans of the given shape, (q_len, kv_len) or (batch, num_heads, q_len, kv_len): true =
        may attend.
        """

    def additive(self, shape: Sequence[int], query_offset: int | Sequence[int] = 0) -> Any:
        """What is added to the scores, float32; -inf = may not attend."""

    def picture(self, shape: Sequence[int], query_offset: int | Sequence[int] = 0, batch: int = 0, head: int = 0) -> str:
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
    called for any tile, in any order, from any thread: several times slower than a mask by name.

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

def tree(parents: Sequence[int], alignment: str | int | Sequence[int] = 'bottom_right') -> Mask:
    """
    The last queries are the nodes of a tree: parents[i] is the node that node i continues, one before it, or -1 where it
    continues the text before the tree. A node sees that text, its ancestors and itself.
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

def global_tokens(count: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    The first `count` tokens see every key, and every query sees them.
    """

def strided(stride: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query sees the keys that are a multiple of `stride` away from it, on both sides.
    """

def columns(stride: int) -> Mask:
    """
    Every query sees the last key of each `stride` keys, k % stride == stride - 1 (Child et al., 2019, "fixed").
    """

def dilated(window: int, step: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query sees itself and `window` keys on each side that stand `step` apart.
    """

def longformer(window: int, num_global: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    sliding_window(window, window) | global_tokens(num_global) (Beltagy et al., 2020).
    """

def sparse_transformer(stride: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    (sliding_window(stride - 1, 0) | strided(stride)) & causal(): the last `stride` keys, and of those before every
    stride-th (Child et al., 2019, "strided").
    """

def streaming(sinks: int, window: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query sees the first `sinks` keys and the last `window`, its own included (Xiao et al., 2023).
    """

def block_window(left: int | None, right: int | None, block: int, alignment: str | int | Sequence[int] = 'square') -> Mask:
    """
    A query in block i of `block` positions each sees the keys of the blocks i - left to i + right; None: no bound.
    """

def random_blocks(
    count: int = 3, block: int = 64, seed: int = 0, *, only_past: bool = False, alignment: str | int | Sequence[int] = 'square',
) -> Mask:
    """
    Each block of queries sees `count` different blocks of keys, at most 256, drawn at random by seed, head and block.
    only_past: among the blocks up to its own, which stay the same as keys are appended.
    """

def bigbird(
    block: int = 64, window: int = 3, num_global: int = 2, num_random: int = 3, seed: int = 0,
    alignment: str | int | Sequence[int] = 'square',
) -> Mask:
    """
    block_window(window // 2, window // 2, block) | global_tokens(num_global * block) | random_blocks(num_random, block,
    seed): numbers of blocks, those of the published base model; the window is odd (Zaheer et al., 2020).
    """

def blocks(
    row_begin: Any, columns: Any, *, lengths: tuple[int, int], block: tuple[int, int] = (128, 128), batch: int = 1,
    num_heads: int = 1, partial: Any = None, within: Mask | None = None,
) -> Mask:
    """
    The blocks of scores that a sparse matrix names. lengths: (q_len, kv_len); block: queries and keys in a block, at most
    128 each; columns: the blocks of keys of each row of blocks, rising; row_begin: where in columns each row begins,
    [batch * num_heads * rows + 1]; a batch or num_heads of 1 holds for all. All of a block is visible, and of those where
    the booleans partial, as long as columns, are true what the mask within shows. Tiles without a block are not visited.
    """

def block_layout(
    mask: Mask, shape: Sequence[int], *, block: tuple[int, int] = (128, 128), query_offset: int | Sequence[int] = 0,
) -> dict[str, Any]:
    """
    The blocks of a mask for scores of a shape, (q_len, kv_len) for all heads or (batch, num_heads, q_len, kv_len): what
    heed.blocks(**layout, within=mask) takes to show what the mask shows.
    """

def select_blocks(
    query: Any, key: Any, *, block: int = 128, top_k: int = 8, q_block: int = 1, causal: bool = False,
    per_kv_head: bool = False,
) -> dict[str, Any]:
    """
    The top_k blocks of `block` keys whose mean key is most like each query, or the mean of q_block queries; of equals the
    first, in each query head others (Lu et al., 2025, MoBA). causal: the last query stands at the last key, and its own
    block is one of the top_k. per_kv_head: query heads that share a key head choose together, by the sum of their
    affinities. heed.blocks(**layout, within=heed.causal("bottom_right")) is the mask; without causal,
    heed.blocks(**layout).
    """

def parse_mask(text: str) -> Mask:
    """
    The mask that a text names, in the words in which masks print themselves: heed.parse_mask("causal &
    (sliding_window(128, 0) | global_tokens(16))"). What is made of arrays or functions cannot be read.
    """

class RelativeBuckets:
    """
    Which entry of a learned table belongs to a distance, kv_idx - q_idx in positions.
    """

    @staticmethod
    def clip(max_distance: int) -> RelativeBuckets:
        """
        An entry for every distance from -max_distance to max_distance; keys further away count as the furthest ones
        (Shaw et al., 2018).
        """

    @staticmethod
    def t5(num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> RelativeBuckets:
        """
        As T5 has them, with its rounding: exact entries for near keys, then ever wider ones up to max_distance and
        beyond. Bidirectional halves the entries between keys before the query (and at it) and those after it; otherwise
        keys after it count as distance 0 (Raffel et al., 2020).
        """

    @property
    def count(self) -> int:
        """How many entries a table has."""

    @property
    def reach(self) -> int:
        """Distances beyond ±reach have the entries of ±reach."""

    def __call__(self, distance: int) -> int:
        """The entry of a distance, at least 0 and below count."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

class Options:
    def __init__(
        self, function: str, *, mask: Mask | None, score_mod: Any, learned: dict[str, Any], scale: float | None,
        softcap: float, dropout: float, seed: int, query_offset: int | Sequence[int], precision: str,
    ) -> None: ...

def attention(query: Any, key: Any, value: Any, options: Options, with_lse: bool, num_threads: int | None) -> Any: ...

def attention_for_backward(query: Any, key: Any, value: Any, options: Options, num_threads: int | None) -> Any: ...

def usual_attention(query: Any, key: Any, value: Any, options: Options, num_threads: int) -> Any: ...

def attention_backward(
    grad_out: Any, query: Any, key: Any, value: Any, forward: tuple[Any, ...], options: Options,
    num_threads: int | None,
) -> Any: ...

def attention_weights(
    query: Any, key: Any, rows: Sequence[Sequence[int]], options: Options, num_threads: int | None,
) -> Any: ...

def attention_statistics(query: Any, key: Any, top_k: int, options: Options, num_threads: int | None) -> Any: ...

def merge_attention(parts: tuple[tuple[Any, Any], ...], num_threads: int | None) -> tuple[Any, Any, Any, Any]: ...

def reference_attention(query: Any, key: Any, value: Any, keep: Sequence[str], options: Options) -> Any: ...

def rotary_embedding(
    x: Any, cos: Any, sin: Any, *, pairing: str, position_ids: Any = None, rotary_dim: int | None = None, offset: int = 0,
    num_heads: int | None = None,
) -> Any:
    """
    x [batch, num_heads, length, head_dim], or [batch, length, num_heads * head_dim] with num_heads, with pairs of its
    first rotary_dim dimensions turned. pairing has to be named: "halves", (i, i + rotary_dim / 2), or "neighbours",
    (2i, 2i + 1). cos and sin are [max_len, rotary_dim / 2], whose rows position_ids (int64 [batch, length]) or offset
    choose, or [batch, length, rotary_dim / 2].
    """

def rotary_embedding_backward(
    grad_out: Any, cos: Any, sin: Any, *, pairing: str, position_ids: Any = None, rotary_dim: int | None = None, offset:
    int = 0, num_heads: int | None = None,
) -> Any:
    """
    The derivative of a loss with respect to x of rotary_embedding, given grad_out, that with respect to the result: the
    rotation back. float32 or float64.
    """

def rotary_frequencies(
    rotary_dim: int, rope_type: str, rope_theta: float, length: int | None, parameters: dict[str, Any],
) -> tuple[Any, float]: ...

def linear_attention(
    query: Any, key: Any, value: Any, *, decay: Any = None, beta: Any = None, state: Any = None, scale: float | None =
    None,
) -> Any:
    """
    (out, state) of the recurrence S = exp(decay) S + k v, out = scale S q; with beta, the delta rule. query [batch,
    num_heads, length, head_dim], key [batch, num_kv_heads, length, head_dim], value [batch, num_states, length,
    value_dim], decay [batch, num_states, length, head_dim or 1], beta [batch, num_states, length], state [batch,
    num_states, head_dim, value_dim]; num_states is num_kv_heads or a multiple.
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
) -> tuple[Any, Any, Any, Any]: ...

def attention_packed_backward(
    grad_out: Any, query: Any, key: Any, value: Any, forward: tuple[Any, Any, Any, Any], cu_seqlens: tuple[Sequence[int],
    Sequence[int]], options: Options, num_threads: int | None,
) -> tuple[Any, ...]: ...

class OutOfPages(MemoryError):
    """There are fewer pages than a call needs. Nothing was changed."""

class KvPool:
    """
    Pages of keys and values, which sequences share: a limit on memory for all of them. A page has page_size positions
    (16, 32, 64 or 128) of every key head.

    num_kv_heads, head_dim, value_dim: of what is appended; value_dim is head_dim when not given
    key_storage, value_storage: "float32", "float16", "bfloat16", "int8" or "int4"; that of the values is that of the
                                keys when not given
    max_pages: no limit when not given. Pages are allocated as they are needed
    """

    def __init__(
        self, num_kv_heads: int, head_dim: int, value_dim: int | None = None, *, key_storage: str = "float32",
        value_storage: str | None = None, page_size: int = 128, max_pages: int | None = None,
    ) -> None: ...

    @property
    def page_bytes(self) -> int:
        """Memory of a page."""

    @property
    def allocated_bytes(self) -> int:
        """Memory allocated for pages: what was in use at most, and some more to come."""

    @property
    def pages_in_use(self) -> int: ...

    @property
    def free_pages(self) -> int | None:
        """Pages that may still be taken; None where there is no limit."""

class KvSequence:
    """
    The keys and values of one growing sequence, for heed.attend(). len() counts what was appended.

    window: a query at position p sees the first `sinks` positions and those from p - window + 1 on, and others are
            forgotten; None keeps everything. Positions are absolute all the same
    max_append: of a sequence with a window, the most positions of one append, and queries of one heed.attend()
    rewind: of one with a window, how far truncate() and accept() may go back

    A call that raises has changed nothing. Threads may attend at once; what changes a sequence while another thread
    attends to one of its pool raises RuntimeError.
    """

    def __init__(
        self, pool: KvPool, *, window: int | None = None, sinks: int = 0, max_append: int = 1, rewind: int = 0,
    ) -> None: ...

    def append(self, key: Any, value: Any) -> None:
        """
        key [num_kv_heads, n, head_dim], value [num_kv_heads, n, value_dim], or with a 1 in front: float32, float16 or
        bfloat16. Rotary embeddings are applied before.
        """

    def fork(self, n: int | None = None) -> KvSequence:
        """
        Another sequence that begins with the first n positions of this one, or with all, and shares their pages.
        Who writes to a shared page copies it before.
        """

    def truncate(self, n: int) -> None:
        """Keeps the first n positions."""

    def reset(self) -> None:
        """Forgets all positions."""

    def accept(self, num_nodes: int, path: Sequence[int]) -> None:
        """
        Of the last num_nodes positions, the nodes of a speculative tree, keeps those that were accepted, counted
        from the first of them: rising numbers. They move together.
        """

    def dequantised(self) -> tuple[Any, Any]:
        """
        What is stored: key [num_kv_heads, length, head_dim] and value [num_kv_heads, length, value_dim], float32
        arrays of NumPy. What is forgotten is 0.
        """

    def __len__(self) -> int: ...

    @property
    def num_pages(self) -> int:
        """Pages it holds, those shared with forks included."""

    @property
    def pool(self) -> KvPool: ...

def attend(
    query: Any, sequence: KvSequence, options: Options, return_lse: bool, num_threads: int | None,
) -> Any: ...

def attend_to_all(
    query: Any, sequences: Sequence[KvSequence], boundaries: Sequence[int], options: Options, return_lse: bool,
    num_threads: int | None,
) -> Any: ...

def reference_flex_attention(
    query: Any, key: Any, value: Any, *, score_mod: Any = None, prob_mod: Any = None, scale: float | None = None,
) -> Any: ...

def attention_page(
    query: Any, key: Any, batch: int, head: int | None, names: tuple[Sequence[str], Sequence[str]], options: Options,
) -> str:
    """The explorer's page of the attention of one head or of all, as HTML."""

def weights_page(
    layers: Sequence[tuple[str, Any, Sequence[str], Sequence[str]]], batch: int, head: int | None,
) -> str:
    """The explorer's page of layers (title, weights, names of queries, names of keys), as HTML: weights [queries, keys], [num_heads, queries, keys] or [batch, num_heads, queries, keys]."""

def attention_diagnostics(
    query: Any, key: Any, options: Options, q_lengths: Sequence[int], kv_lengths: Sequence[int],
) -> tuple[list, Any, float, list]: ...

def weight_diagnostics(
    weights: Any, mask: Mask, q_lengths: Sequence[int], kv_lengths: Sequence[int],
) -> tuple[list, Any, float, list]: ...

class Figure:
    """
    A picture. A notebook shows it by itself; save() chooses the format by the path's ending: .svg, .png or .pdf.
    """

    def render(self, format: str) -> bytes:
        """The bytes of a file: format is "svg", "png" or "pdf"."""

    def page(self) -> str:
        """One HTML file: the picture, and its numbers as tables."""

    def save(self, path: str | os.PathLike) -> None:
        """Writes the file, whole or not at all."""

def weights_figure(
    weights: Any, queries: Sequence[str], keys: Sequence[str], panels: Sequence[str], style: tuple,
) -> Figure: ...

def visible_figure(
    visible: Any, queries: Sequence[str], keys: Sequence[str], panels: Sequence[str], style: tuple,
) -> Figure: ...

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
        How much of the score matrix is computed: the rows and keys of a tile, and tiles in total, skipped,
        and mixed, of which some query does not see all keys.
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
    def workspace_bytes(self) -> int: ...

def plan(query: Any, key: Any, value: Any, dtype: str, options: Options) -> Plan: ...

class Model:
    """A trained transformer, as heed.models.Model wraps it."""

    @property
    def config(self) -> dict[str, Any]: ...

    @property
    def num_parameters(self) -> int: ...

    @property
    def num_bytes(self) -> int: ...

    def encode(self, text: str, pair: str | None = ..., add_special_tokens: bool = ...) -> tuple[list[int], list[int]]: ...

    def decode(self, ids: list[int], skip_special_tokens: bool = ...) -> str: ...

    def label(self, id: int, /) -> str: ...

    def chat_prompt(
        self, messages: list[str], add_generation_prompt: bool = True, tools: str = "", variables: str = ""
    ) -> tuple[str, list[int]]: ...

    def forward(
        self, ids: list[int], type_ids: list[int], switched_off: list[tuple[int, int]], source: list[int] | None, /
    ) -> Any: ...

    def hidden_states(
        self, ids: list[int], type_ids: list[int], switched_off: list[tuple[int, int]], source: list[int] | None, /
    ) -> Any: ...

    def attentions(
        self, ids: list[int], type_ids: list[int], switched_off: list[tuple[int, int]], source: list[int] | None, /
    ) -> Any: ...

    def cross_attentions(self, ids: list[int], source: list[int], /) -> Any: ...

    def logits(self, ids: list[int], switched_off: list[tuple[int, int]], source: list[int] | None, /) -> Any: ...

    def encoder(self) -> Model: ...

    def mean_loss(self, ids: list[int], switched_off: list[tuple[int, int]], /) -> float: ...

    def embed(self, texts: list[str], seal: bool = ...) -> Any: ...

    def sha256(self) -> str: ...

    def generate(self, prompt: list[int], options: dict[str, Any], /) -> dict[str, Any]: ...

def time_in_turn(
    calls: Sequence[Callable[[], Any]], threads: int, repetitions: int, seconds: float, rest: float
) -> list[tuple[list[float], list[float]]]:
    """
    For each of the calls, which take turns: the seconds of a call in each repetition, and how many processors were
    busy. A repetition is as many calls as fill `seconds`, after `rest` seconds of rest.
    """

def peak_rate(threads: int) -> float:
    """Operations a second of multiply-adds, of all threads, while nothing disturbs."""

def load_model(path: str) -> Model: ...
def describe_models(path: str) -> list[str]: ...

def seal_differences(expected: str, found: str) -> list[tuple[str, int | None, str]]: ...

class CommunicationError(RuntimeError):
    """A message cannot arrive, for another rank failed or is gone."""

class Ranks:
    """One rank's view of all of them."""

    @property
    def rank(self) -> int:
        """0 <= rank < size"""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    def _divided(self, by: str) -> Ranks:
        """The same, for calls that are divided so."""

    def _end(self) -> None:
        """Whatever is asked of them from now on is refused."""

def mpi_ranks(comm: Any, module: Any) -> Ranks: ...

def run_on_all(ranks: Ranks, function: Callable[[], Any]) -> Any: ...

def gather_texts(ranks: Ranks, text: str) -> list[str]:
    """What every rank says, in the order of ranks."""

def run_threads(size: int, function: Callable[[Ranks], Any]) -> list[Any]: ...

class TokenDivision:
    """
    How the tokens of a sequence are dealt out to ranks: in segments of 1024, to ranks 0, 1, ... size - 1 and back.
    """

    SEGMENT: int
    """How many tokens a segment has."""

    def __init__(self, length: int, size: int) -> None: ...

    @property
    def length(self) -> int: ...

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def num_segments(self) -> int: ...

    def owner(self, segment: int) -> int:
        """The rank that has a segment."""

    def tokens(self, segment: int) -> tuple[int, int]:
        """The places of a segment in the sequence, (begin, end)."""

    def num_tokens(self, rank: int) -> int:
        """How many tokens a rank has."""

    def positions(self, rank: int) -> Any:
        """
        The places of a rank's tokens in the sequence, int64 [num_tokens(rank)], in their order.
        """

class DivisionPlan:
    """Who computes how much of a call, and what is sent for it."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    @property
    def divided_by(self) -> str:
        """'tokens' or 'heads'."""

    @property
    def reason(self) -> str:
        """Why it is divided so."""

    @property
    def segment_bytes(self) -> int:
        """Keys and values of a whole segment, as they are sent."""

    @property
    def balance(self) -> float:
        """Work of an average rank / work of the busiest."""

    @property
    def most_bytes_received(self) -> int:
        """Those of the rank that gets most."""

    def pairs(self, rank: int) -> float:
        """
        Pairs of a query of the rank and a key that are computed, over all heads.
        """

    def bytes_received(self, rank: int) -> int:
        """Bytes that a rank gets from others."""

    def __repr__(self) -> str: ...

    def __str__(self) -> str: ...

def division_plan(
    query: Any, key: Any, value: Any, size: int, dtype: str, options: Options, divided_by: str,
) -> DivisionPlan: ...

def distributed_attention(
    ranks: Ranks, query: Any, key: Any, value: Any, options: Options, with_lse: bool, num_threads: int | None,
) -> Any: ...

def distributed_attention_backward(
    ranks: Ranks, grad_out: Any, query: Any, key: Any, value: Any, forward: tuple[Any, Any, Any, Any], options: Options,
    num_threads: int | None,
) -> Any: ...

def gather_tokens(ranks: Ranks, own: Any) -> Any: ...
