"""What ends a computation before its time: Ctrl-C, a function that raises, the interpreter's end. And what masks leave
behind."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import heed

X = np.random.default_rng(0).standard_normal((1, 4, 512, 16), dtype=np.float32)

# The time limit in seconds for programs that end by themselves within seconds.
PATIENCE = 120


def run(program: str, *arguments: str) -> None:
    package = os.path.dirname(os.path.dirname(heed.__file__))
    environment = os.environ | {"PYTHONPATH": package}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, timeout=PATIENCE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import heed

# Shells have what they start in the background ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

random = np.random.default_rng(0)

def draw(*shape, dtype=np.float32):
    return random.standard_normal(shape, np.float32).astype(dtype)

def visible(b, h, q_idx, kv_idx):
    time.sleep(0.001)
    return kv_idx <= q_idx

name = sys.argv[1]
# Each would take many minutes.
length = {"attention": 300000, "attention_statistics": 300000, "float64": 60000, "where": 30000}.get(name, 100000)
x = draw(1, 3, length, 64, dtype=np.float64 if name == "float64" else np.float32)
compute = {
    "attention": lambda: heed.attention(x, x, x),
    "float64": lambda: heed.attention(x, x, x),
    "attention_backward": lambda: heed.attention_backward(x, x, x, x, x, x[..., 0].copy()),
    "attention_statistics": lambda: heed.attention_statistics(x, x),
    "linear_attention_backward": lambda: [heed.linear_attention_backward(x, x, x, x) for _ in range(100)],
    "allow": lambda: heed.causal().allow((length, length)),
    "where": lambda: heed.attention(x, x, x, mask=heed.where(visible)),
}[name]
started = threading.Event()

def interrupt():
    started.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    started.set()
    compute()
except KeyboardInterrupt:
    # The next one is computed as ever.
    small = draw(1, 1, 3, 4)
    heed.attention(small, small, small)
else:
    sys.exit("it was not interrupted")
"""


@pytest.mark.parametrize(
    "name",
    ["attention", "float64", "attention_backward", "attention_statistics", "linear_attention_backward", "allow", "where"],
)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    run(INTERRUPTED, name)


# --- functions that raise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 4])
@pytest.mark.parametrize("kind", ["where", "score_mod"])
def test_nothing_is_called_after_a_failure(num_threads: int, kind: str) -> None:
    """But what other threads had begun by then."""
    calls = []

    def fails(*_):
        calls.append(threading.get_ident())
        raise LookupError("no such slope")

    heed.set_num_threads(num_threads)
    try:
        options = {"score_mod": fails} if kind == "score_mod" else {"mask": heed.where(fails)}
        for _ in range(2):
            calls.clear()
            with pytest.raises(LookupError, match="no such slope"):
                heed.attention(X, X, X, **options)
            assert 1 <= len(calls) <= num_threads
    finally:
        heed.set_num_threads(0)


def test_a_failure_is_that_of_its_call_alone() -> None:
    """Two threads share a mask; what it raises in one does not reach the other."""
    failing = threading.local()

    def visible(b, h, q_idx, kv_idx):
        if getattr(failing, "now", False):
            raise LookupError
        return kv_idx <= q_idx

    mask = heed.where(visible)
    expected = heed.attention(X, X, X, mask=mask, num_threads=1)
    failures = []

    def fail() -> None:
        failing.now = True
        for _ in range(20):
            try:
                heed.attention(X, X, X, mask=mask, num_threads=1)
            except LookupError:
                failures.append(1)

    thread = threading.Thread(target=fail)
    thread.start()
    for _ in range(5):
        np.testing.assert_array_equal(heed.attention(X, X, X, mask=mask, num_threads=1), expected)
    thread.join()
    assert len(failures) == 20


def test_a_picture_stops_at_the_first_failure() -> None:
    calls = []

    def fails(*_):
        calls.append(1)
        raise LookupError

    for look in (heed.where(fails).picture, heed.where(fails).allow):
        calls.clear()
        with pytest.raises(LookupError):
            look((30, 30))
        assert len(calls) == 1


# --- the interpreter's end ------------------------------------------------------------------------------------------

ABANDONED = """
import sys, threading
import numpy as np
import heed

heed.set_num_threads(4)
x = np.ones((1, 4, 1000, 64), np.float32)
begun = threading.Barrier(4)
called = threading.Event()

def visible(b, h, q_idx, kv_idx):
    called.set()
    return kv_idx <= q_idx

options = {"mask": heed.where(visible)} if sys.argv[1] == "where" else {}

def work():
    begun.wait()
    while True:
        heed.attention(x, x, x, **options)
        called.set()

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
called.wait()
"""


@pytest.mark.parametrize("kind", ["plain", "where"])
def test_the_interpreter_ends_while_daemon_threads_compute(kind: str) -> None:
    for _ in range(4):
        run(ABANDONED, kind)


# --- what is left behind --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mask", "combined", "plan", "score_mod"])
def test_a_mask_that_refers_to_itself_is_collected(kind: str) -> None:
    class Rule:
        def __call__(self, *_):
            return True

    def make() -> weakref.ref:
        rule = Rule()
        if kind == "mask":
            rule.own = heed.where(rule)
        elif kind == "combined":
            rule.own = heed.causal() & heed.where(rule) & heed.where(rule)
        elif kind == "plan":
            rule.own = heed.plan(X, X, X, mask=heed.where(rule))
        else:
            rule.own = heed.plan(X, X, X, score_mod=rule)
        return weakref.ref(rule)

    rules = [make() for _ in range(10)]
    gc.collect()
    assert not [rule for rule in rules if rule() is not None]


def test_a_mask_keeps_its_function() -> None:
    def make() -> heed.Mask:
        hidden = {3}
        return heed.where(lambda b, h, q_idx, kv_idx: ~np.isin(kv_idx, list(hidden))) & heed.causal()

    mask = make()
    gc.collect()
    assert mask.picture((2, 5), query_offset=3).splitlines() == ["###..", "###.#"]
