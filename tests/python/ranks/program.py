"""What every process of mpirun runs for test_distributed.py: attention over divided tokens beside one process.

Usage: program.py NAME [BUILD], NAME one of the functions below"""

import sys

import numpy as np
from mpi4py import MPI

import heed
from heed import distributed

COMM = MPI.COMM_WORLD
SIZE = COMM.size


def draw(seed: int, *shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def operands(q_len: int, kv_len: int, dtype: type = np.float32) -> tuple[np.ndarray, ...]:
    """Of 4 query heads that share 2 key heads; values of another dimension."""
    return (
        draw(1, 1, 4, q_len, 8, dtype=dtype),
        draw(2, 1, 2, kv_len, 8, dtype=dtype),
        draw(3, 1, 2, kv_len, 12, dtype=dtype),
    )


def own(whole: np.ndarray) -> np.ndarray:
    return distributed.own_tokens(COMM, whole)


def check_bits() -> None:
    cases = [
        ((2500, 2500), {}),
        ((2500, 2500), {"causal": True}),
        ((3100, 3100), {"mask": "causal & sliding_window(700, 0)"}),
        ((3100, 3100), {"mask": heed.longformer(64, 3), "scale": 0.2, "softcap": 5.0}),
        ((1500, 3333), {"causal": "bottom_right", "alibi_slopes": heed.alibi_slopes(4), "sinks": draw(4, 4)}),
        ((700, 900), {"bias": draw(5, 700, 900), "dropout": 0.25, "seed": 7}),  # one segment: other ranks have nothing
        ((2048, 1), {"mask": heed.allow(draw(6, 2048, 1) > 0)}),
    ]
    for lengths, options in cases:
        whole = operands(*lengths)
        expected = heed.attention(*whole, return_lse=True, **options)
        made = distributed.attention(COMM, *map(own, whole), return_lse=True, **options)
        for found, there in zip((*made, made.lse_low), (*expected, expected.lse_low), strict=True):
            np.testing.assert_array_equal(found, own(there), str(options))
        np.testing.assert_array_equal(distributed.gather_tokens(COMM, made.out), expected.out)
    for dtype in (np.float16, np.float64):
        whole = operands(1100, 2100, dtype)
        out = distributed.attention(COMM, *map(own, whole))
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, own(heed.attention(*whole)))


def check_gradients() -> None:
    whole, grad_out = operands(2500, 2500), draw(4, 1, 4, 2500, 12)
    options = {"causal": True, "sinks": draw(5, 4)}
    made = distributed.attention(COMM, *map(own, whole), return_lse=True, **options)
    arguments = (own(grad_out), *map(own, whole), *made)
    found = distributed.attention_backward(COMM, *arguments, lse_low=made.lse_low, **options)
    doubles = [x.astype(np.float64) for x in whole]
    exact = heed.attention(*doubles, return_lse=True, **options)
    expected = heed.attention_backward(grad_out.astype(np.float64), *doubles, *exact, lse_low=exact.lse_low, **options)
    for name in ("query", "key", "value"):
        np.testing.assert_allclose(getattr(found, name), own(getattr(expected, name)), atol=2e-5)
    np.testing.assert_allclose(found.sinks, expected.sinks, atol=2e-3)
    again = distributed.attention_backward(COMM, *arguments, lse_low=made.lse_low, **options)
    np.testing.assert_array_equal(again.key, found.key)


def raised_everywhere(call, kind: type = ValueError) -> str:
    """What call() raises, which must be the same on all ranks."""
    try:
        call()
    except kind as error:
        texts = COMM.allgather(str(error))
        assert len(set(texts)) == 1, texts
        return texts[0]
    raise AssertionError("nothing was raised")


def check_errors() -> None:
    query, key, value = map(own, operands(2500, 2500))
    last = min(SIZE, 3) - 1  # the last rank that has tokens
    is_last = COMM.rank == last
    before = f"rank {last}: " if SIZE > 1 else ""

    def attend(*arrays, **options):
        return lambda: distributed.attention(COMM, *arrays, **options)

    found = raised_everywhere(attend(query, key[..., :3] if is_last else key, value))
    assert found == before + "distributed::attention: key head_dim is 3 but query head_dim is 8", found
    found = raised_everywhere(attend(query, key, "abc" if is_last else value))
    assert found.startswith(before + "distributed::attention: value is a str, expected an array"), found
    found = raised_everywhere(attend(query, key, value, num_threads=0 if is_last else 1))
    assert found.startswith(before + "ThreadLimit"), found
    found = raised_everywhere(attend(query, key, value, mask="banana" if is_last else "causal"))
    assert found.startswith(before) and "banana" in found, found
    if SIZE > 1:
        found = raised_everywhere(attend(query, key, value, scale=0.5 if is_last else 0.25))
        assert f"rank {last} has " in found and "scale 0.5" in found, found
        dtype = np.float64 if is_last else np.float32
        found = raised_everywhere(attend(*(x.astype(dtype) for x in (query, key, value))))
        assert "float64" in found, found
        first = int(COMM.rank == 0)  # one token is missing on rank 0
        found = raised_everywhere(attend(query, key[:, :, first:], value[:, :, first:]))
        assert "keys, expected" in found, found
        check_exceptions(query, key, value, last)
    found = raised_everywhere(lambda: distributed.attention("world", query, key, value))
    assert found.startswith("distributed.attention: comm is a str, expected an mpi4py.MPI.Intracomm"), found
    freed = COMM.Dup()
    freed.Free()
    found = raised_everywhere(lambda: distributed.gather_tokens(freed, query))
    assert found.startswith("gather_tokens: comm is freed, or MPI is finalized, expected"), found
    # The ranks still work.
    check_gradients()


def check_exceptions(query: np.ndarray, key: np.ndarray, value: np.ndarray, last: int) -> None:
    """What one rank raises that is no ValueError."""
    is_last = COMM.rank == last

    def fails(score, *_):
        if is_last:
            raise LookupError("no such slope")
        return score

    def attend(**options):
        try:
            distributed.attention(COMM, query, key, value, **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    found = attend(score_mod=fails)
    expected = "LookupError: no such slope" if is_last else f"RuntimeError: rank {last}: "
    assert found.startswith(expected), found
    found = attend(**({"casual": True} if is_last else {}))
    expected = "TypeError: " if is_last else f"RuntimeError: rank {last}: TypeError: "
    assert found.startswith(expected) and "casual" in found, found


def check_communicators() -> None:
    """Messages of the program do not meet heed's, and what is freed is not used."""
    other = COMM.Dup()
    whole = operands(2500, 2500)
    room, message = np.empty(4), np.full(4, 1.0 + COMM.rank)
    before, after = (COMM.rank - 1) % SIZE, (COMM.rank + 1) % SIZE
    requests = [other.Irecv(room, MPI.ANY_SOURCE, MPI.ANY_TAG)]
    out = distributed.attention(other, *map(own, whole), causal=True)
    np.testing.assert_array_equal(out, own(heed.attention(*whole, causal=True)))
    requests.append(other.Isend(message, after, 3))
    MPI.Request.Waitall(requests)
    assert (room == 1.0 + before).all()
    first, second = distributed.ranks_of("test", other), distributed.ranks_of("test", other)
    assert first is second and (first.rank, first.size) == (COMM.rank, SIZE)
    assert distributed.ranks_of("test", COMM) is not first
    other.Free()
    try:
        distributed.attention(first, *map(own, whole))
        raise AssertionError("it was not refused")
    except ValueError as error:
        assert "these ranks have ended" in str(error), error
    part = COMM.Split(COMM.rank % 2)
    mine = [distributed.own_tokens(part, x) for x in whole]
    out = distributed.gather_tokens(part, distributed.attention(part, *mine))
    np.testing.assert_array_equal(out, heed.attention(*whole))
    part.Free()


def ranks_probe(build: str):
    sys.path.insert(0, f"{build}/tests/python/ranks")
    return __import__("ranks_probe")


def all_checks(build: str) -> None:
    assert ranks_probe(build).run_tests(COMM, MPI) == 0
    for check in (check_bits, check_gradients, check_errors, check_communicators):
        check()


def recorded_by_torch(_build: str) -> None:
    """Gradients that PyTorch records are those of its own operator."""
    import torch

    torch.set_num_threads(1)
    whole = [torch.from_numpy(x).requires_grad_() for x in operands(2100, 2100)]
    grad = torch.from_numpy(draw(4, 1, 4, 2100, 12))
    out = torch.nn.functional.scaled_dot_product_attention(*whole, is_causal=True, enable_gqa=True)
    expected = torch.autograd.grad(out, whole, grad)
    mine = [distributed.own_tokens(COMM, x.detach()).requires_grad_() for x in whole]
    divided = distributed.attention(COMM, *mine, causal=True)
    torch.testing.assert_close(divided, distributed.own_tokens(COMM, out), atol=1e-5, rtol=0)
    divided.backward(distributed.own_tokens(COMM, grad))
    for x, gradient in zip(mine, expected, strict=True):
        torch.testing.assert_close(x.grad, distributed.own_tokens(COMM, gradient), atol=2e-5, rtol=0)


def one_fails(_build: str) -> None:
    """A rank that raises where nobody else does: the others wait for it."""
    whole = operands(2500, 2500)
    for round_ in range(100):
        if round_ == 2 and COMM.rank == SIZE - 1:
            raise LookupError("the disk is gone")
        distributed.attention(COMM, *map(own, whole))


def one_leaves(build: str) -> None:
    """A rank fails while it sends what nobody takes."""
    ranks_probe(build).leave_sending(COMM, MPI)


PROGRAMS = {"all": all_checks, "torch": recorded_by_torch, "one_fails": one_fails, "one_leaves": one_leaves}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](sys.argv[2])
