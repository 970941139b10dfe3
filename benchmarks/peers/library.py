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
        ("is_causal", ctypes.c_int32),
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

    def has(self, name):
        return hasattr(self._library, "peers_" + name)

    def prepare(self, name, query, key, value, is_causal):
        """Two functions without arguments: one computes, the other computes and returns the result. Arrays are
        [num_heads, length, dim]."""
        function = getattr(self._library, "peers_" + name)
        function.restype = None
        arrays = (query, key, value)
        pointers = [array.ctypes.data for array in arrays]
        timed = _Problem(*query.shape, is_causal, *pointers, None)

        def call(_kept=arrays):  # the arrays live as long as the function
            function(ctypes.byref(timed))

        def result():
            out = np.empty_like(query)
            function(ctypes.byref(_Problem(*query.shape, is_causal, *pointers, out.ctypes.data)))
            return out

        return call, result
