"""What libheed_peers.so of a build of heed offers (benchmarks/peers): heed as a C++ program calls it, and loops over the
products of OpenBLAS and oneDNN."""

from __future__ import annotations

import ctypes

import numpy as np

from .cases import STORAGES, Case


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


class _Sequence:
    """Gives a sequence of heed's back when nobody wants it any more."""

    def __init__(self, library, sequence) -> None:
        self._free = library.peers_decode_free
        self.sequence = sequence

    def __del__(self) -> None:
        self._free(self.sequence)


class _Peer:
    def __init__(self, library, title: str, functions: dict[str, str], storages: tuple[str, ...]) -> None:
        self.title = title
        self._library = library
        self._functions = functions  # by the way
        self._storages = storages

    def can(self, case: Case) -> bool:
        if case.way == "decode" and case.storage not in self._storages:
            return False
        if case.dtype != "float32":
            return False
        return case.way in self._functions and (case.is_dense or self.title == "heed")

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        self._library.peers_set_num_threads(case.threads)
        function = getattr(self._library, self._functions[case.way])
        if case.way == "decode":
            return self._prepare_decode(function, case, arrays)
        names = ("query", "key", "value", "grad_out")
        given = dict(zip(names, (array.ctypes.data for array in arrays)))
        shape = arrays[0].shape[1:]
        mask = case.mask.encode()
        timed = _Problem(*shape, mask, **given)
        at = ctypes.byref(timed)

        def call(_kept=(arrays, timed)):  # the arrays live as long as the function
            function(at)

        def result():
            is_backward = case.way == "backward"
            out = np.empty((3, *shape) if is_backward else shape, np.float32)
            wanted = {"gradients" if is_backward else "out": out.ctypes.data}
            function(ctypes.byref(_Problem(*shape, mask, **given, **wanted)))
            return out

        return call, result

    def _prepare_decode(self, function, case: Case, arrays: list[np.ndarray]):
        query, key, value = (np.ascontiguousarray(array[0]).copy() for array in arrays)
        out = np.empty((case.heads, 1, case.head_dim), np.float32)
        pointers = (array.ctypes.data for array in (query, key, value, out))
        problem = _Decode(case.heads, *key.shape, *pointers)
        at = ctypes.byref(problem)
        if self.title != "heed":

            def call(_kept=(query, key, value, problem)):
                function(at)
                return out

            return call, call
        made = _Sequence(self._library, self._library.peers_decode_sequence(at, case.storage.encode()))

        def attend(_kept=(query, problem)):
            function(at, made.sequence)
            return out

        return attend, attend


class Library:
    def __init__(self, path: str) -> None:
        """OSError where it cannot be loaded."""
        self._library = ctypes.CDLL(path)
        self._library.peers_decode_sequence.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library.peers_decode_sequence.restype = ctypes.c_void_p
        self._library.peers_decode_free.argtypes = [ctypes.c_void_p]
        self._library.peers_decode_heed.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def heed(self) -> _Peer:
        """A plan, made once and run into memory that is there, and sequences of keys and values."""
        functions = {"forward": "peers_heed", "backward": "peers_heed_backward", "decode": "peers_decode_heed"}
        return _Peer(self._library, "heed", functions, STORAGES)

    def peers(self) -> list[_Peer]:
        functions = {"forward": "peers_openblas", "decode": "peers_decode_openblas"}
        made = [_Peer(self._library, "OpenBLAS", functions, ("float32",))]
        if hasattr(self._library, "peers_onednn"):
            made.append(_Peer(self._library, "oneDNN", {"forward": "peers_onednn"}, ()))
        return made
