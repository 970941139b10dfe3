"""heed.distributed: attention over divided tokens by threads of this process and by processes of mpirun, beside one
process and beside PyTorch."""

import doctest
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import mpirun
import numpy as np
import pytest
import torch

import heed
import heed.torch
from heed import distributed

HERE = pathlib.Path(__file__).parent


def draw(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def operands(q_len: int, kv_len: int, dtype: torch.dtype = torch.float32, batch: int = 1) -> list[torch.Tensor]:
    """Of 4 query heads that share 2 key heads; values of another dimension."""
    shapes = ((batch, 4, q_len, 8), (batch, 2, kv_len, 8), (batch, 2, kv_len, 12))
    return [draw(seed, *shape, dtype=dtype) for seed, shape in enumerate(shapes)]


# --- processes ------------------------------------------------------------------------------------------------------


def run_processes(
    count: int, *arguments: object, program: pathlib.Path = HERE / "ranks/program.py", timeout: float = 180
) -> subprocess.CompletedProcess:
    if importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None:
        pytest.skip("there is no mpi4py or no mpirun")
    package = os.path.dirname(os.path.dirname(heed.__file__))
    command = ["mpirun", "-n", str(count)]
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" in version:
        command += ["--oversubscribe", "--allow-run-as-root"]
    command += [sys.executable, "-m", "mpi4py", str(program), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    return mpirun.run(command, env=environment, timeout=timeout)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.exhaustive), pytest.param(2, marks=pytest.mark.exhaustive), 3])
def test_processes_have_the_bits_of_one(count: int, build: pathlib.Path) -> None:
    done = run_processes(count, "all", build)
    assert done.returncode == 0, done.stdout + done.stderr


def test_gradients_of_processes_are_those_of_pytorch(build: pathlib.Path) -> None:
    done = run_processes(2, "torch", build)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("one_fails", "LookupError: the disk is gone"),
        ("one_leaves", "heed: rank 0: send to rank 1 with tag 0: an exception left while this was under way"),
    ],
)
def test_a_process_that_fails_alone_ends_all(how: str, text: str, build: pathlib.Path) -> None:
    done = run_processes(3, how, build)
    assert done.returncode != 0 and text in done.stderr, done.stdout + done.stderr


def test_the_program_of_the_documentation(tmp_path: pathlib.Path) -> None:
    page = (HERE.parents[1] / "docs/distributed.md").read_text(encoding="utf-8")
    code, printed = re.search(r"```py\n(.*?)```\s*```text\n(.*?)```", page, re.DOTALL).groups()
    program = tmp_path / "program.py"
    program.write_text(code)
    done = run_processes(3, program=program)
    assert (done.returncode, done.stdout) == (0, printed), done.stdout + done.stderr


# --- threads --------------------------------------------------------------------------------------------------------

OPTIONS = {
    "none": {},
    "causal": {"causal": True},
    "window": {"mask": "causal & sliding_window(300, 0)"},
    "documents": {"mask": heed.documents([0, 1500, 1501, 3100])},
    "bias": {"bias": draw(3, 4, 1, 3100), "sinks": draw(4, 4)},
    "relative": {"relative_bias": (draw(5, 4, 33), heed.RelativeBuckets.clip(16)), "causal": True},
    "where": {"mask": heed.where(lambda b, h, q_idx, kv_idx: (q_idx - kv_idx) % 3 == 0)},
    "score_mod": {"score_mod": lambda score, b, h, q_idx, kv_idx: score - 0.01 * np.abs(kv_idx - q_idx)},
}


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", OPTIONS)
def test_threads_have_the_bits_of_one_process(name: str, size: int) -> None:
    whole = [x.numpy() for x in operands(3100, 3100)]
    expected = heed.attention(*whole, return_lse=True, **OPTIONS[name])

    def work(comm):
        own = [distributed.own_tokens(comm, x) for x in whole]
        made = distributed.attention(comm, *own, return_lse=True, **OPTIONS[name])
        return *(distributed.gather_tokens(comm, x) for x in (made.out, made.lse, made.lse_low)), made.out.shape

    all_found = distributed.run_threads(size, work)
    for found in all_found:
        np.testing.assert_array_equal(found[0], expected.out)
        np.testing.assert_array_equal(found[1], expected.lse)
        np.testing.assert_array_equal(found[2], expected.lse_low)
    lengths = [found[3][2] for found in all_found]
    assert lengths == [distributed.TokenDivision(3100, size).num_tokens(rank) for rank in range(size)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_tensors_of_every_type(dtype: torch.dtype) -> None:
    whole = operands(1500, 2500, dtype, batch=2)

    def work(comm):
        out = distributed.attention(comm, *(distributed.own_tokens(comm, x) for x in whole))
        assert isinstance(out, torch.Tensor) and out.dtype == dtype
        return distributed.gather_tokens(comm, out)

    for found in distributed.run_threads(3, work):
        assert torch.equal(found, heed.attention(*whole))


def test_leading_dimensions_may_be_left_out() -> None:
    query, key, value = (x[0].numpy() for x in operands(2500, 2500))

    def work(comm):
        own = [distributed.own_tokens(comm, x, axis=-2) for x in (query, key, value)]
        return distributed.attention(comm, *own, causal=True)

    found = distributed.run_threads(2, work)
    division = distributed.TokenDivision(2500, 2)
    for rank in range(2):
        expected = heed.attention(query, key, value, causal=True)[:, division.positions(rank)]
        np.testing.assert_array_equal(found[rank], expected)


# --- gradients ------------------------------------------------------------------------------------------------------


def learned() -> dict[str, torch.Tensor]:
    return {"sinks": draw(5, 4), "alibi_slopes": draw(6, 4).abs(), "bias": draw(7, 4, 1, 2600)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("with_lse", [False, True], ids=["out", "lse"])
def test_recorded_gradients_are_those_of_one_process(dtype: torch.dtype, with_lse: bool) -> None:
    whole, grad, options = operands(2600, 2600, dtype), draw(3, 1, 4, 2600, 12, dtype=dtype), {"mask": "causal"}

    def loss(made, grad):
        out, lse = made if with_lse else (made, None)
        return (out * grad).sum() + (0.1 * lse.square().sum().to(out.dtype) if with_lse else 0)

    def leaves(tensors):
        return [x.detach().clone().requires_grad_() for x in tensors]

    def real(tensors):
        number = torch.float64 if dtype == torch.float64 else torch.float32
        return {name: x.to(number).requires_grad_() for name, x in tensors.items()}

    alone, given = leaves(whole), real(learned())
    loss(heed.torch.attention(*alone, return_lse=with_lse, **given, **options), grad).backward()

    def work(comm):
        own, mine = leaves(distributed.own_tokens(comm, x) for x in whole), real(learned())
        made = distributed.attention(comm, *own, return_lse=with_lse, **mine, **options)
        loss(made, distributed.own_tokens(comm, grad)).backward()
        assert all(x.grad.dtype == dtype for x in own)
        return [distributed.gather_tokens(comm, x.grad) for x in own], {name: x.grad for name, x in mine.items()}

    tolerance = {torch.float64: 1e-11, torch.float32: 2e-4}.get(dtype, 5e-2)
    for gradients, of_options in distributed.run_threads(3, work):
        for found, x in zip(gradients, alone, strict=True):
            torch.testing.assert_close(found, x.grad, atol=tolerance, rtol=tolerance)
        for name, found in of_options.items():
            torch.testing.assert_close(found, given[name].grad, atol=100 * tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["none", "causal"])
def test_divided_heads_have_the_bits_of_one_process(name: str) -> None:
    assert name in OPTIONS
    whole, grad = [x.numpy() for x in operands(1100, 1100)], draw(3, 1, 4, 1100, 12).numpy()
    expected = heed.attention(*whole, return_lse=True, **OPTIONS[name])
    gradients = heed.attention_backward(grad, *whole, *expected, lse_low=expected.lse_low, **OPTIONS[name])

    def work(comm):
        given = {"divided_by": "heads", **OPTIONS[name]}
        own = [distributed.own_tokens(comm, x) for x in whole]
        made = distributed.attention(comm, *own, return_lse=True, **given)
        own_grad = distributed.own_tokens(comm, grad)
        found = distributed.attention_backward(comm, own_grad, *own, *made, lse_low=made.lse_low, **given)
        return [distributed.gather_tokens(comm, x) for x in (made.out, made.lse, found.query, found.key, found.value)]

    for found in distributed.run_threads(2, work):
        for one, other in zip(found, (*expected, gradients.query, gradients.key, gradients.value), strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_division_is_refused_on_all_ranks() -> None:
    def work(comm, by):
        own = distributed.own_tokens(comm, numbers)
        with pytest.raises(ValueError, match=texts[by]):
            distributed.attention(comm, own, own, own, divided_by=by)

    numbers = draw(1, 1, 1, 1100, 8).numpy()
    texts = {
        "rows": "distributed: divided_by is 'rows', expected 'automatic', 'tokens' or 'heads'",
        "heads": "distributed::attention: num_kv_heads is 1, expected a multiple of 2, the number of ranks, to divide heads",
    }
    for by in texts:
        distributed.run_threads(2, lambda comm, by=by: work(comm, by))


@pytest.mark.parametrize("divided_by", ["tokens", "heads"])
@pytest.mark.parametrize("causal", [False, True])
def test_recorded_gradients_are_those_of_pytorch(causal: bool, divided_by: str) -> None:
    whole, grad = [x.double().requires_grad_() for x in operands(2100, 2100)], draw(3, 1, 4, 2100, 12).double()
    out = torch.nn.functional.scaled_dot_product_attention(*whole, is_causal=causal, enable_gqa=True)
    out.backward(grad)

    def work(comm):
        own = [distributed.own_tokens(comm, x) for x in whole]  # the parts belong to the graph
        made = distributed.attention(comm, *own, causal=causal, divided_by=divided_by)
        return torch.autograd.grad(made, own, distributed.own_tokens(comm, grad))

    for rank, gradients in enumerate(distributed.run_threads(2, work)):
        positions = torch.from_numpy(distributed.TokenDivision(2100, 2).positions(rank))
        for found, x in zip(gradients, whole, strict=True):
            torch.testing.assert_close(found, x.grad[:, :, positions], atol=1e-11, rtol=1e-9)


def test_a_rank_without_a_loss_takes_part() -> None:
    whole = operands(2100, 2100)

    def work(comm):
        own = [distributed.own_tokens(comm, x).requires_grad_() for x in whole]
        out, lse = heed.torch.attention(*own, comm=comm, return_lse=True)
        (out.sum() * (comm.rank == 0)).backward()
        return own[1].grad

    alone = [x.clone().requires_grad_() for x in whole]
    out = heed.torch.attention(*alone)
    positions = [torch.from_numpy(distributed.TokenDivision(2100, 2).positions(rank)) for rank in range(2)]
    out[:, :, positions[0]].sum().backward()
    for rank, found in enumerate(distributed.run_threads(2, work)):
        torch.testing.assert_close(found, alone[1].grad[:, :, positions[rank]], atol=1e-4, rtol=1e-4)


def test_dropout_draws_the_seed_of_the_first_rank() -> None:
    whole = operands(1500, 1500)

    def work(comm):
        own = [distributed.own_tokens(comm, x) for x in whole]
        return distributed.gather_tokens(comm, heed.torch.attention(*own, comm=comm, dropout=0.5))

    torch.manual_seed(3)
    seeds = [int(torch.randint(2**63 - 1, (), dtype=torch.int64)) for _ in range(2)]  # the seeds that both ranks draw
    torch.manual_seed(3)
    found = distributed.run_threads(2, work)[0]
    assert any(torch.equal(found, heed.attention(*whole, dropout=0.5, seed=seed)) for seed in seeds)


def test_what_is_not_recorded_is_refused_on_all_ranks() -> None:
    x = draw(0, 1, 2, 1100, 8)
    gain = torch.ones((), requires_grad=True)
    for options, text in (
        ({"return_weights": True}, "return_weights is True, expected False where tokens are divided"),
        ({"score_mod": lambda s, b, h, i, j, g: s * g, "score_mod_parameters": [gain]}, "score_mod_parameters require"),
    ):

        def work(comm, options=options):
            own = distributed.own_tokens(comm, x)
            with pytest.raises(ValueError) as raised:
                heed.torch.attention(own, own, own, comm=comm, **(options if comm.rank == 1 else {}))
            return str(raised.value)

        found = distributed.run_threads(2, work)
        assert found[0] == found[1] and found[0].startswith("rank 1: heed.torch.attention: ") and text in found[0]


def test_a_score_mod_of_pytorchs_operations() -> None:
    whole = operands(1100, 1100)

    def shaped(score, b, h, q_idx, kv_idx):
        return torch.tanh(score) - 0.01 * (q_idx - kv_idx).abs()

    alone = [x.clone().requires_grad_() for x in whole]
    heed.torch.attention(*alone, score_mod=shaped).sum().backward()

    def work(comm):
        own = [distributed.own_tokens(comm, x).requires_grad_() for x in whole]
        heed.torch.attention(*own, comm=comm, score_mod=shaped).sum().backward()
        return [distributed.gather_tokens(comm, x.grad) for x in own]

    for gradients in distributed.run_threads(2, work):
        for found, x in zip(gradients, alone, strict=True):
            torch.testing.assert_close(found, x.grad, atol=2e-5, rtol=1e-4)


# --- errors ---------------------------------------------------------------------------------------------------------


def test_what_one_rank_cannot_take_is_an_error_on_all() -> None:
    query, key, value = (x.numpy() for x in operands(1500, 1500))

    def work(comm):
        own = [distributed.own_tokens(comm, x) for x in (query, key, value)]
        texts = []
        for name in ("shape", "list", "grad_out"):
            with pytest.raises(ValueError) as raised:
                if name == "grad_out":
                    made = distributed.attention(comm, *own, return_lse=True)
                    grad_out = made.out[..., :3] if comm.rank == 1 else made.out
                    distributed.attention_backward(comm, grad_out, *own, *made)
                wrong = own[1][..., :3] if name == "shape" else [1.0]
                distributed.attention(comm, own[0], wrong if comm.rank == 1 else own[1], own[2])
            texts.append(str(raised.value))
        return texts

    first, second = distributed.run_threads(2, work)
    assert first == second
    assert first[0] == "rank 1: distributed::attention: key head_dim is 3 but query head_dim is 8"
    assert first[1].startswith("rank 1: distributed::attention: key is a list, expected an array")
    assert first[2].startswith("rank 1: distributed::attention_backward: grad_out has shape [1, 4, 476, 3]")


def test_run_on_all() -> None:
    raised = {0: None, 1: KeyError("no key"), 2: ValueError("bad")}

    def work(comm, first=1):
        def part():
            if comm.rank >= first and raised[comm.rank] is not None:
                raise raised[comm.rank]
            return comm.rank

        try:
            return distributed.run_on_all(comm, part)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    assert distributed.run_threads(2, lambda comm: work(comm, first=2)) == [0, 1]
    own = ["RuntimeError: rank 1: KeyError: 'no key'", "KeyError: 'no key'", "ValueError: bad"]
    assert distributed.run_threads(3, work) == own
    found = distributed.run_threads(3, lambda comm: work(comm, first=2))
    assert found == ["ValueError: rank 2: bad"] * 3
    with pytest.raises(UnicodeDecodeError):  # one rank keeps its own exception
        distributed.run_threads(1, lambda comm: distributed.run_on_all(comm, lambda: b"\xff".decode()))


def test_a_thread_that_raises_ends_all() -> None:
    x = draw(0, 1, 2, 2100, 8).numpy()
    told = []

    def work(comm):
        if comm.rank == 1:
            raise LookupError("the disk is gone")
        own = distributed.own_tokens(comm, x)
        try:
            distributed.attention(comm, own, own, own)
        except distributed.CommunicationError as error:
            told.append(str(error))
            raise

    with pytest.raises(LookupError, match="the disk is gone"):
        distributed.run_threads(3, work)
    assert told == ["rank 1 failed: LookupError: the disk is gone"] * 2
    assert issubclass(distributed.CommunicationError, RuntimeError)


def test_misuse_of_ranks() -> None:
    x = draw(0, 1, 1, 3, 4)
    (kept,) = distributed.run_threads(1, lambda comm: comm)
    for use in (lambda: kept.rank, lambda: distributed.attention(kept, x, x, x), lambda: distributed.gather_tokens(kept, x)):
        with pytest.raises(ValueError, match="these ranks have ended"):
            use()
    with pytest.raises(ValueError, match="distributed.attention: comm is a NoneType, expected an mpi4py.MPI.Intracomm or what"):
        distributed.attention(None, x, x, x)
    for size in (0, 1025):
        with pytest.raises(ValueError, match=f"run_thread_ranks: size is {size}, expected 1 to 1024"):
            distributed.run_threads(size, lambda comm: None)
    wants = x.clone().requires_grad_()
    with pytest.raises(ValueError, match="gather_tokens: own requires gradients"):
        distributed.run_threads(1, lambda comm: distributed.gather_tokens(comm, wants))
    with pytest.raises(ValueError, match=r"own_tokens: whole has shape \[1, 1, 3, 4\], expected an axis 4"):
        distributed.run_threads(1, lambda comm: distributed.own_tokens(comm, x, axis=4))


class BrokenMpi:
    """A communicator of two processes, of which the other one is gone."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2

    def Allgather(self, _send, _receive):
        raise OSError("MPI_ERR_PROC_FAILED")


def test_what_mpi4py_raises_is_a_communication_error() -> None:
    ranks = heed._heed.mpi_ranks(BrokenMpi(), types.SimpleNamespace(IN_PLACE=None))
    assert (ranks.rank, ranks.size) == (0, 2)
    with pytest.raises(distributed.CommunicationError, match="rank 0: gather: MPI_ERR_PROC_FAILED"):
        distributed.run_on_all(ranks, lambda: None)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import heed

# Shells have what they start in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

x = np.ones((1, 2, 100000, 64), np.float32)  # many minutes

def work(comm):
    own = heed.distributed.own_tokens(comm, x)
    started.set()
    heed.distributed.attention(comm, own, own, own)

def interrupt():
    started.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

started = threading.Event()
threading.Thread(target=interrupt).start()
try:
    heed.distributed.run_threads(2, work)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_ranks() -> None:
    package = os.path.dirname(os.path.dirname(heed.__file__))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], env=os.environ | {"PYTHONPATH": package}, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


WITHOUT_MPI = """
import pathlib, sys
import heed

assert heed.distributed.run_threads(2, lambda comm: comm.rank) == [0, 1]
assert not [name for name in sys.modules if name.startswith("mpi4py")]
assert "libmpi" not in pathlib.Path("/proc/self/maps").read_text()
"""


def test_the_package_needs_no_mpi() -> None:
    package = os.path.dirname(os.path.dirname(heed.__file__))
    subprocess.run([sys.executable, "-c", WITHOUT_MPI], env=os.environ | {"PYTHONPATH": package}, timeout=180, check=True)


# --- divisions ------------------------------------------------------------------------------------------------------


def test_token_divisions() -> None:
    division = distributed.TokenDivision(2500, 2)
    assert (division.length, division.size, division.num_segments, division.SEGMENT) == (2500, 2, 3, 1024)
    assert [division.owner(segment) for segment in range(3)] == [0, 1, 1]
    assert division.tokens(2) == (2048, 2500)
    assert [division.num_tokens(rank) for rank in (0, 1)] == [1024, 1476]
    np.testing.assert_array_equal(division.positions(1), np.arange(1024, 2500))
    for size in (1, 2, 3, 7):
        parts = [distributed.TokenDivision(7000, size).positions(rank) for rank in range(size)]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(7000))
    for call, text in (
        (lambda: distributed.TokenDivision(-1, 2), "TokenDivision: length is -1"),
        (lambda: distributed.TokenDivision(5, 0), "TokenDivision: size is 0"),
        (lambda: division.owner(3), "TokenDivision.owner: segment is 3, expected 0 to 2"),
        (lambda: division.tokens(-1), "TokenDivision.tokens: segment is -1"),
        (lambda: division.num_tokens(2), "TokenDivision.num_tokens: rank is 2, expected 0 to 1"),
        (lambda: division.positions(-1), "TokenDivision.positions: rank is -1"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_tokens_of_any_kind_are_divided() -> None:
    ids, mask = torch.arange(2050)[None], np.tri(2050, dtype=bool)

    def work(comm):
        own = distributed.own_tokens(comm, ids, axis=1)
        return own, distributed.own_tokens(comm, mask, axis=-1)

    (first, of_mask), (second, _) = distributed.run_threads(2, work)
    assert first.tolist()[0] == [*range(1024)] and second.tolist()[0] == [*range(1024, 2050)]
    np.testing.assert_array_equal(of_mask, mask[:, :1024])


def test_plans() -> None:
    shapes = (8, 65536, 64), (2, 65536, 64), (2, 65536, 64)
    plan = distributed.plan(*shapes, 4, causal=True)
    assert str(plan).splitlines()[0] == "ranks       4, 65536 queries and 65536 keys in segments of 1024"
    assert plan.divided_by == "tokens" and plan.reason == "2 key heads do not divide by 4"
    assert plan.size == 4 and plan.balance == pytest.approx(1, abs=1e-3)
    assert plan.segment_bytes == 2 * 1024 * (64 + 64) * 4
    received = [plan.bytes_received(rank) for rank in range(4)]
    assert max(received) == plan.most_bytes_received == 48 * plan.segment_bytes
    assert plan.pairs(0) == pytest.approx(8 * 65536 * 65536 / 8, rel=0.01)
    half = distributed.plan(*shapes, 4, dtype="float16", causal=True)
    assert half.segment_bytes * 2 == plan.segment_bytes
    assert distributed.plan(*shapes, 4, dtype="float64", causal=True).segment_bytes == 2 * plan.segment_bytes
    with pytest.raises(ValueError, match="DivisionPlan.pairs: rank is 4, expected 0 to 3"):
        plan.pairs(4)
    with pytest.raises(ValueError, match="distributed::plan: num_heads is 3, expected a multiple of num_kv_heads, 2"):
        distributed.plan((3, 5, 4), (2, 5, 4), (2, 5, 4), 2)


def test_examples_in_docstrings() -> None:
    names = {"heed": heed, "numpy": np, "x": draw(0, 1, 8, 128, 64).numpy()}
    results = doctest.testmod(distributed, extraglobs=names)
    assert results.attempted > 0 and results.failed == 0
    assert all(getattr(distributed, name).__doc__ for name in distributed.__all__)
