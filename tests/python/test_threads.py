"""heed and PyTorch in one process, both busy, and what becomes of the interpreter meanwhile."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import heed
import heed.torch

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((1, 8, 512, 64), dtype=np.float32)


def test_computing_releases_the_interpreters_lock() -> None:
    """While a call computes for a long time, another thread counts."""
    started, ended = threading.Event(), threading.Event()
    long = RANDOM.standard_normal((1, 1, 2048, 64))

    def compute() -> None:
        started.set()
        heed.reference.attention(long, long, long)
        ended.set()

    thread = threading.Thread(target=compute)
    thread.start()
    started.wait()
    turns = 0
    while not ended.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 1


def test_beside_pytorch_with_both_busy() -> None:
    """Four threads call both, on two threads each; every result is the one computed alone."""
    tensor = torch.from_numpy(X)
    matrix = torch.randn(256, 256)
    heed.set_num_threads(2)
    torch.set_num_threads(2)
    try:
        expected = heed.attention(X, X, X, causal=True)
        product = matrix @ matrix
        theirs = torch.nn.functional.scaled_dot_product_attention(tensor, tensor, tensor)
        problems: list[str] = []

        def work(index: int) -> None:
            for turn in range(6):
                if (turn + index) % 2:
                    if not np.array_equal(heed.attention(X, X, X, causal=True), expected):
                        problems.append("heed")
                else:
                    if not torch.allclose(matrix @ matrix, product):
                        problems.append("matmul")
                    out = torch.nn.functional.scaled_dot_product_attention(tensor, tensor, tensor)
                    if not torch.allclose(out, theirs):
                        problems.append("sdpa")

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=180)
            assert not thread.is_alive()
        assert not problems
    finally:
        heed.set_num_threads(0)
        torch.set_num_threads(1)


def test_memory_is_kept_until_nobody_wants_it() -> None:
    usual = heed.max_kept_memory()
    try:
        heed.set_max_kept_memory(0)
        heed.set_max_kept_memory(1 << 22)
        heed.attention(X, X, X)
        assert X.nbytes <= heed.kept_memory() <= 1 << 22
        heed.set_max_kept_memory(0)
        assert heed.kept_memory() == 0
        heed.attention(X, X, X)
        assert heed.kept_memory() == heed.max_kept_memory() == 0
    finally:
        heed.set_max_kept_memory(usual)


def test_backward_runs_on_pytorchs_threads() -> None:
    """Autograd calls from threads of its own; several at once give what one gives."""
    inputs = torch.from_numpy(X[:, :, :128]).requires_grad_()

    def gradient() -> torch.Tensor:
        out = heed.torch.scaled_dot_product_attention(inputs, inputs, inputs, is_causal=True)
        return torch.autograd.grad(out.square().sum(), inputs)[0]

    expected = gradient()
    found: list[torch.Tensor] = []
    threads = [threading.Thread(target=lambda: found.append(gradient())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=180)
    assert len(found) == 4
    assert all(torch.equal(one, expected) for one in found)


def test_a_python_function_is_called_by_many_threads() -> None:
    callers = set()

    def visible(b, h, q_idx, kv_idx):
        callers.add(threading.get_ident())
        return kv_idx <= q_idx

    heed.set_num_threads(4)
    try:
        found = heed.attention(X, X, X, mask=heed.where(visible))
    finally:
        heed.set_num_threads(0)
    assert callers
    np.testing.assert_allclose(found, heed.attention(X, X, X, causal=True), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_computes() -> None:
    """As PyTorch's data loaders do: the child has none of the parent's worker threads."""
    expected = heed.attention(X, X, X)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(heed.attention(X, X, X), expected) else 1)
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


SHARED = """
import os, signal, threading, torch, heed.torch

torch.set_num_threads(2)
query = torch.randn(1, 8, 512, 64)


def attend():
    return heed.torch.scaled_dot_product_attention(query, query, query, is_causal=True)


def num_tasks():
    return len(os.listdir("/proc/self/task"))


heed.torch.share_threads(False)
if not heed.torch.share_threads():
    raise SystemExit(77)
matrix = torch.randn(1024, 1024)
matrix.exp()
tasks = num_tasks()
expected = attend()
assert num_tasks() == tasks, "heed started threads beside PyTorch's"

found = []
thread = threading.Thread(target=lambda: found.append(attend()))
thread.start()
thread.join()
assert torch.equal(found[0], expected), "another thread"


def gradient():
    # Of a loss that PyTorch's own loops compute, too.
    leaf = query.clone().requires_grad_()
    heed.torch.scaled_dot_product_attention(leaf, leaf, leaf, is_causal=True).square().sum().backward()
    return leaf.grad


slope = gradient()
for _ in range(2):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if torch.equal(attend(), expected) and torch.equal(gradient(), slope) else 1)
    assert os.waitpid(child, 0)[1] == 0, "a forked process"
    assert torch.equal(gradient(), slope), "after a fork"
for number in (1, 2, 3, 2):
    torch.set_num_threads(number)
    assert torch.equal(attend(), expected), "another number of threads"

assert not heed.torch.share_threads(False)
assert torch.equal(attend(), expected), "threads of its own"
"""


def test_pytorchs_threads_are_shared() -> None:
    """On them no bit is another; other threads and forked processes compute too."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(heed.__file__))}
    command = [sys.executable, "-c", SHARED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 77:
        pytest.skip("PyTorch does not compute by OpenMP here")
    assert done.returncode == 0, done.stderr
