"""Attention over tokens that are divided among ranks: more of them than one machine holds.

A rank is a process of MPI, where the functions are given an mpi4py.MPI.Intracomm, or a thread of this process:

>>> def work(comm):
...     own = [heed.distributed.own_tokens(comm, whole) for whole in (query, key, value)]
...     out = heed.distributed.attention(comm, *own, causal=True)
...     return heed.distributed.gather_tokens(comm, out)
>>> query, key, value = (numpy.random.randn(1, 8, 3000, 16).astype("float32") for _ in range(3))
>>> outs = heed.distributed.run_threads(3, work)
>>> all(numpy.array_equal(out, heed.attention(query, key, value, causal=True)) for out in outs)
True

Under `mpirun -n 3 python -m mpi4py program.py` the same is work(mpi4py.MPI.COMM_WORLD). heed needs mpi4py only then; its
messages travel on a duplicate of the communicator, which is freed with it.

All ranks call each function, in the same order, with the same options. What one of them cannot take is a ValueError on all,
with the same text.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import numpy

from . import _heed
from ._heed import CommunicationError, DivisionPlan, Ranks, TokenDivision
from ._operator import AttentionGradients, AttentionOutput
from ._options import make_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Unpack

    from ._options import Options

    Result = TypeVar("Result")

__all__ = [
    "CommunicationError",
    "DivisionPlan",
    "Ranks",
    "TokenDivision",
    "attention",
    "attention_backward",
    "gather_tokens",
    "own_tokens",
    "plan",
    "run_on_all",
    "run_threads",
]


# --- ranks --------------------------------------------------------------------------------------------------------------

# Where a communicator of MPI keeps heed's duplicate of it, and the ranks made of that: a key of MPI's attributes.
_keyval: int | None = None


def _free(_comm: Any, _keyval: int, kept: tuple[Any, Ranks]) -> None:
    """What MPI calls when the communicator is freed."""
    duplicate, ranks = kept
    ranks._end()
    duplicate.Free()


def _duplicated(comm: Any, mpi: Any) -> Ranks:
    global _keyval
    if _keyval is None:
        _keyval = mpi.Comm.Create_keyval(delete_fn=_free)
    kept = comm.Get_attr(_keyval)
    if kept is None:
        duplicate = comm.Dup()
        kept = (duplicate, _heed.mpi_ranks(duplicate, mpi))
        comm.Set_attr(_keyval, kept)
    return kept[1]


def ranks_of(function: str, comm: Any) -> Ranks:
    """The ranks that a communicator stands for. The first call for one of MPI's is made by all of its processes."""
    if isinstance(comm, Ranks):
        return comm
    # Who has a communicator of mpi4py has imported it.
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Intracomm):
        raise ValueError(
            f"{function}: comm is a {type(comm).__name__}, expected an mpi4py.MPI.Intracomm or what run_threads gives its "
            "function"
        )
    if mpi.Is_finalized() or comm == mpi.COMM_NULL:
        raise ValueError(f"{function}: comm is freed, or MPI is finalized, expected a communicator that may be used")
    try:
        return _duplicated(comm, mpi)
    except mpi.Exception as error:
        raise CommunicationError(f"{function}: comm cannot be duplicated: {error}") from error


def run_on_all(comm: Any, function: Callable[[], Result]) -> Result:
    """Calls function() on every rank, where it may raise without the others noticing, and then has all ranks raise if one
    did. What it returns here is returned.

    A ValueError is one on all ranks, with "rank 2: " before its text. Any other exception is raised where it was, and
    the others raise a RuntimeError that names the rank and says what it was. function() must not send to other ranks.

    >>> def read(comm):
    ...     return heed.distributed.run_on_all(comm, lambda: [1, 2, 3][comm.rank])
    >>> heed.distributed.run_threads(2, read)
    [1, 2]
    """
    return _heed.run_on_all(ranks_of("run_on_all", comm), function)


def run_threads(size: int, function: Callable[[Ranks], Result]) -> list[Result]:
    """Calls function(comm) once for each of `size` ranks, each on a thread of its own, and returns what they return, in the
    order of ranks: what runs on several machines, in one process. comm has the attributes rank and size.

    Loops of a rank use num_threads() divided by `size`, at least one thread. When a rank raises, what the others wait
    for raises CommunicationError, which names it; what the first one raised is raised here.

    >>> heed.distributed.run_threads(2, lambda comm: (comm.rank, comm.size))
    [(0, 2), (1, 2)]
    """
    return _heed.run_threads(size, function)


# --- tokens -------------------------------------------------------------------------------------------------------------


def own_tokens(comm: Any, whole: Any, axis: int = 2) -> Any:
    """The tokens of this rank, of an array that has all of them: [batch, heads, length, ...], or with its tokens on another
    axis. Any rank may call it, alone.

    whole: a NumPy array or a tensor of any type, which keeps its gradient; anything else as numpy.asarray(whole)

    >>> heed.distributed.run_threads(2, lambda comm: heed.distributed.own_tokens(comm, numpy.arange(2050), axis=0).tolist()[:1])
    [[0], [1024]]
    """
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(whole, torch.Tensor)
    if not is_tensor:
        whole = numpy.asarray(whole)
    if not -whole.ndim <= axis < whole.ndim:
        raise ValueError(f"own_tokens: whole has shape {list(whole.shape)}, expected an axis {axis} with the tokens")
    positions = TokenDivision(whole.shape[axis], comm.size).positions(comm.rank)
    return whole.index_select(axis, torch.from_numpy(positions)) if is_tensor else whole.take(positions, axis)


def gather_tokens(comm: Any, own: Any) -> Any:
    """All tokens, on every rank, of arrays [batch, heads, own length, ...], of NumPy or PyTorch: float32, float64, float16
    or bfloat16. No gradient goes back through it: the loss of all tokens is the sum of what ranks have of it.

    Raises ValueError on all ranks, unless the arrays fit each other and are divided as TokenDivision says.
    """
    return _heed.gather_tokens(ranks_of("gather_tokens", comm), own)


# --- attention ----------------------------------------------------------------------------------------------------------


def _divided(function: str, comm: Any, by: str) -> Ranks:
    ranks = ranks_of(function, comm)
    return _heed.run_on_all(ranks, lambda: ranks._divided(by))


def _tensors_in(given: Iterable[Any]) -> Iterator[Any]:
    """Whatever may be a tensor: operands, options, and the tables in their tuples."""
    for one in given:
        if isinstance(one, (tuple, list)):
            yield from one
        else:
            yield one


def _records(*given: Any) -> bool:
    """Whether PyTorch wants to know what becomes of these."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in _tensors_in(given))


def attention(
    comm: Any,
    query: Any,
    key: Any,
    value: Any,
    *,
    divided_by: str = "automatic",
    return_lse: bool = False,
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """heed.attention() of tokens of which every rank has its own, as own_tokens() divides them.

    query: [batch, num_heads, own q_len, head_dim]
    key:   [batch, num_kv_heads, own kv_len, head_dim]
    value: [batch, num_kv_heads, own kv_len, value_dim]

    The options are those of heed.attention(), the same on all ranks: arrays in them are whole, by the places of all tokens,
    and positions mean what they mean on one machine.

    divided_by: "tokens": keys and values are sent to the ranks that see some of them, a segment of 1024 tokens after the
    other, and what a mask hides is not sent; "heads", which the number of ranks must divide: each rank computes some of
    them for all tokens; "automatic": what sends less, as plan() says

    Returns out [batch, num_heads, own q_len, value_dim], with return_lse also lse [batch, num_heads, own q_len], in an
    AttentionOutput: the bits of one process, for any number of ranks.

    Where a tensor requires a gradient, PyTorch records the call, which is then heed.torch.attention(…, comm=comm), on
    torch.get_num_threads() threads: all ranks go back through it too, in the same order. Gradients of tensors in options
    are those of all ranks together, the same on each of them.

    Raises ValueError on all ranks, before anything is sent, when shapes or options do not fit on one of them or differ;
    CommunicationError, a RuntimeError, where MPI fails. An exception of a function in options is raised where it was, and a
    RuntimeError that names the rank by the others.
    """
    ranks = _divided("distributed.attention", comm, divided_by)
    if _records(query, key, value, *options.values()):
        from . import _attention  # takes PyTorch, which is there

        return _attention.attention(query, key, value, comm=ranks, return_lse=return_lse, **options)
    made = _heed.run_on_all(ranks, lambda: make_options("distributed::attention", **options))
    found = _heed.distributed_attention(ranks, query, key, value, made, return_lse, num_threads)
    return AttentionOutput(*found) if return_lse else found


def attention_backward(
    comm: Any,
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    lse: Any,
    *,
    lse_low: Any = None,
    out_low: Any = None,
    divided_by: str = "automatic",
    num_threads: int | None = None,
    **options: Unpack[Options],
) -> AttentionGradients:
    """The gradients of attention(comm, query, key, value, **options), as heed.attention_backward(): given grad_out
    [batch, num_heads, own q_len, value_dim] and what attention(…, return_lse=True) returned, those of this rank's tokens,
    and of arrays in options whole, the sums of all ranks. The same number of ranks and the same division give the same
    bits.

    >>> def work(comm):
    ...     own = heed.distributed.own_tokens(comm, x)
    ...     made = heed.distributed.attention(comm, own, own, own, return_lse=True)
    ...     return heed.distributed.attention_backward(comm, own, own, own, own, *made, lse_low=made.lse_low)
    >>> [gradients.query.shape for gradients in heed.distributed.run_threads(2, work)]
    [(1, 8, 128, 64), (1, 8, 0, 64)]
    """
    ranks = _divided("distributed.attention_backward", comm, divided_by)
    made = _heed.run_on_all(ranks, lambda: make_options("distributed::attention_backward", **options))
    forward = (out, lse, lse_low, out_low)
    found = _heed.distributed_attention_backward(ranks, grad_out, query, key, value, forward, made, num_threads)
    return AttentionGradients(*found)


def plan(
    query: Any,
    key: Any,
    value: Any,
    size: int,
    *,
    dtype: str = "float32",
    divided_by: str = "automatic",
    **options: Unpack[Options],
) -> DivisionPlan:
    """What attention() over `size` ranks will take, before there are any: who computes how much, and what is sent.

    query, key, value: arrays with all tokens, of which only shape and type are looked at, or tuples of extents, with dtype
    "float32", "float64", "float16" or "bfloat16".

    >>> print(heed.distributed.plan((8, 65536, 64), (2, 65536, 64), (2, 65536, 64), 2, causal=True))
    ranks       2, 65536 queries and 65536 keys in segments of 1024
    divided by  tokens: the busiest rank receives 33.6 MB by tokens, 83.9 MB by heads
    balance     100.0 % of the busiest rank's work on average
    sent        66.1 MB
    rank 0      8.596e+09 pairs, receives 33.6 MB
    rank 1      8.596e+09 pairs, receives 32.5 MB
    """
    made = make_options("distributed::plan", **options)
    return _heed.division_plan(query, key, value, size, dtype, made, divided_by)
