"""What libheed_peers.so offers: heed, loops over the products of OpenBLAS and oneDNN, and the probes of the machine."""

import ctypes
from dataclasses import dataclass

import numpy as np


class _Problem(ctypes.Structure):
    """PeersProblem of problem.h."""

    _fields_ = [
        ("num_heads", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("dim", ctypes.c_int64),
        ("mask", ctypes.c_char_p),
        ("query", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("grad_out", ctypes.c_void_p),
        ("gradients", ctypes.c_void_p),
    ]


class _Decode(ctypes.Structure):
    """PeersDecode of problem.h."""

    _fields_ = [
        ("num_heads", ctypes.c_int64),
        ("num_kv_heads", ctypes.c_int64),
        ("kv_len", ctypes.c_int64),
        ("dim", ctypes.c_int64),
        ("query", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
    ]


@dataclass
class Probe:
    """What the machine could do just now."""

    fma_rate: float  # operations a second, all threads together
    product_seconds: float


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.peers_probe.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self._library.peers_version.restype = ctypes.c_char_p
        self._library.peers_attention_target.restype = ctypes.c_char_p
        self._library.peers_visible.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        self._library.peers_visible.restype = ctypes.c_char_p
        self._library.peers_decode_sequence.restype = ctypes.c_void_p
        self._library.peers_decode_free.argtypes = [ctypes.c_void_p]
        self._library.peers_decode_heed.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def set_num_threads(self, count):
        self._library.peers_set_num_threads(count)

    def probe(self, threads):
        rate, seconds = ctypes.c_double(), ctypes.c_double()
        self._library.peers_probe(threads, ctypes.byref(rate), ctypes.byref(seconds))
        return Probe(rate.value, seconds.value)

    def settle(self, threads):
        """To be called before the first probe after a rest."""
        self._library.peers_settle(threads)

    def version(self):
        return self._library.peers_version().decode()

    def attention_target(self):
        return self._library.peers_attention_target().decode()

    def visible(self, mask, num_heads, length):
        """Which of the [num_heads, length, length] pairs of a query and a key a mask shows; of one head where all see the
        same. ValueError where the mask cannot be."""
        shown = np.empty((num_heads, length, length), bool)
        problem = self._library.peers_visible(mask.encode(), num_heads, length, shown.ctypes.data)
        if problem is not None:
            raise ValueError(problem.decode())
        return shown[:1] if (shown == shown[:1]).all() else shown

    def has(self, name):
        return hasattr(self._library, "peers_" + name)

    def prepare(self, name, arrays, mask):
        """Two functions without arguments: one computes, the other computes and returns the result. Arrays are query,
        key and value, [num_heads, length, dim], for attention; with grad_out behind them for the gradients, which are
        returned as [3, num_heads, length, dim]."""
        function = getattr(self._library, "peers_" + name)
        function.restype = None
        pointers = dict(zip(("query", "key", "value", "grad_out"), (array.ctypes.data for array in arrays)))
        shape = arrays[0].shape
        timed = _Problem(*shape, mask.encode(), **pointers)
        is_backward = "grad_out" in pointers

        def call(_kept=arrays):  # the arrays live as long as the function
            function(ctypes.byref(timed))

        def result():
            out = np.empty((3, *shape) if is_backward else shape, np.float32)
            wanted = {"gradients" if is_backward else "out": out.ctypes.data}
            function(ctypes.byref(_Problem(*shape, mask.encode(), **pointers, **wanted)))
            return out

        return call, result

    def prepare_sequence(self, arrays, storage):
        """As prepare(), heed's attention of query [heads, dim] over a sequence of that storage, filled with key and value
        [kv_heads, kv_len, dim]."""
        query, key, _ = arrays
        out = np.empty_like(query)
        problem = _Decode(query.shape[0], *key.shape, *(array.ctypes.data for array in (*arrays, out)))
        sequence = self._library.peers_decode_sequence(ctypes.byref(problem), storage.encode())
        at = ctypes.addressof(problem)

        def call(_kept=(problem, query, _Sequence(self._library, sequence))):
            self._library.peers_decode_heed(at, sequence)
            return out

        return call, call

    def prepare_gemv(self, arrays):
        """The same by OpenBLAS's products of a matrix and a vector."""
        query, key, _ = arrays
        out = np.empty_like(query)
        problem = _Decode(query.shape[0], *key.shape, *(array.ctypes.data for array in (*arrays, out)))
        at = ctypes.byref(problem)

        def call(_kept=arrays):
            self._library.peers_decode_openblas(at)
            return out

        return call, call


class _Sequence:
    """Gives a sequence of heed's back when nobody wants it any more."""

    def __init__(self, library, sequence):
        self._free = library.peers_decode_free
        self._sequence = sequence

    def __del__(self):
        self._free(self._sequence)
