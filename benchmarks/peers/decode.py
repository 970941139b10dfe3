"""One query of each head over many keys, as when a text is written: heed's caches of every storage and its peers'."""

import itertools
import sys
from dataclasses import dataclass

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper

from measure import Measured, measure, print_aligned, ratio
from peers import options_of

STORAGES = ["float32", "float16", "bfloat16", "int8", "int4"]
# Longer sequences come from memory, as in a model whose other layers were read in between: of them there are as many
# copies, taken in turn, as have so many bytes together.
LONG_SEQUENCE = 4096
COLD_BYTES = 256 << 20
# Of a result, relative to that of what was stored in the beginning: the root of the mean square.
LARGEST_ERROR = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2, "int8": 3e-2, "int4": 0.4}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "int4": 0.5}


@dataclass(frozen=True)
class Case:
    threads: int
    dim: int
    kv_heads: int
    storage: str
    kv_len: int
    heads: int

    def __str__(self):
        return (
            f"{self.threads} threads, decode, d = {self.dim}, {self.heads} heads on {self.kv_heads}, {self.storage}, "
            f"{self.kv_len} keys"
        )

    def operations(self):
        return 4 * self.heads * self.kv_len * self.dim

    def describe(self):
        return {
            "pass": "decode",
            "storage": self.storage,
            "head_dim": self.dim,
            "kv_seq": self.kv_len,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
        }

    def copies(self):
        if self.kv_len < LONG_SEQUENCE:
            return 1
        return int(COLD_BYTES // (2 * self.kv_heads * self.kv_len * self.dim * BYTES[self.storage])) + 1


def cases_of(arguments):
    each = (arguments.threads, arguments.head_dim, arguments.kv_heads, arguments.storage, arguments.seq)
    return [Case(*one, arguments.heads) for one in itertools.product(*each)]


# --- peers: prepare() gives two functions without arguments, one that computes from memory of its own and one that computes
# and returns [heads, dim] ----------------------------------------------------------------------------------------------


class Heed:
    title = "heed"
    storages = STORAGES

    def prepare(self, library, case, arrays):
        return library.prepare_sequence(arrays, case.storage)


class OpenBlas:
    title = "OpenBLAS sgemv"
    storages = ["float32"]

    def prepare(self, library, case, arrays):
        query, *cached = arrays
        return library.prepare_gemv((query, *(array.copy() for array in cached)))


class PyTorch:
    title = "PyTorch SDPA"
    storages = ["float32", "float16", "bfloat16"]

    def prepare(self, library, case, arrays):
        torch.set_num_threads(case.threads)
        query, *cached = (torch.from_numpy(array)[None].to(getattr(torch, case.storage), copy=True) for array in arrays)
        query = query[:, :, None]
        attend = torch.nn.functional.scaled_dot_product_attention
        enable_gqa = case.heads != case.kv_heads

        def call():
            with torch.inference_mode():
                return attend(query, *cached, enable_gqa=enable_gqa)

        return call, lambda: call()[0, :, 0].float().numpy()


class GroupQueryAttention:
    """The token's own key and value are written over the last of the cache in each call, where they are already."""

    title = "ORT GroupQueryAttention"
    storages = ["float32", "float16", "int8", "int4"]
    types = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int32": TensorProto.INT32,
             "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}  # fmt: skip

    def prepare(self, library, case, arrays):
        inputs, attributes = self.inputs(case, *arrays)
        names = ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"]
        if "k_scale" in inputs:
            names += [""] * 5 + ["k_scale", "v_scale"]
        outputs = ["out", "present_key", "present_value"]
        attributes |= {"num_heads": case.heads, "kv_num_heads": case.kv_heads}
        node = helper.make_node("GroupQueryAttention", names, outputs, domain="com.microsoft", **attributes)
        session = self.session(node, inputs, case.threads)
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
        binding = session.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("out")
        for past, present in (("past_key", "present_key"), ("past_value", "present_value")):
            binding.bind_ortvalue_output(present, values[past])

        def call(_kept=values):
            session.run_with_iobinding(binding)

        def result():
            call()
            return binding.get_outputs()[0].numpy().reshape(case.heads, case.dim)

        return call, result

    def inputs(self, case, query, key, value):
        dtype = np.float16 if case.storage == "float16" else np.float32
        inputs = {"query": query.reshape(1, 1, -1).astype(dtype)}
        attributes = {}
        for name, array in (("key", key), ("value", value)):
            inputs[name] = array[:, -1].reshape(1, 1, -1).astype(dtype)
            stored = array
            if case.storage in ("int8", "int4"):
                largest = {"int8": 127, "int4": 7}[case.storage]
                scale = np.abs(array).max() / np.float32(largest)
                stored = np.rint(array / scale).astype(np.int8)
                inputs[f"{name[0]}_scale"] = np.array([scale], np.float32)
                attributes[f"{name[0]}_quant_type"] = "PER_TENSOR"
                attributes["kv_cache_bit_width"] = 8 if case.storage == "int8" else 4
                if case.storage == "int4":
                    shifted = (stored + 8).astype(np.uint8)
                    stored = shifted[..., ::2] | shifted[..., 1::2] << 4
            else:
                stored = stored.astype(dtype)
            inputs[f"past_{name}"] = stored[None]
        inputs["seqlens_k"] = np.array([case.kv_len - 1], np.int32)
        inputs["total_sequence_length"] = np.array(case.kv_len, np.int32)
        return inputs, attributes

    def session(self, node, inputs, threads):
        declared = [helper.make_tensor_value_info(n, self.types[str(x.dtype)], x.shape) for n, x in inputs.items()]
        types = [self.types[str(inputs[name].dtype)] for name in ("query", "past_key", "past_value")]
        outputs = [helper.make_tensor_value_info(*output, None) for output in zip(node.output, types)]
        graph = helper.make_graph([node], "decode", declared, outputs)
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        return onnxruntime.InferenceSession(model, options_of(threads), providers=["CPUExecutionProvider"])


PEERS = [Heed(), PyTorch(), GroupQueryAttention(), OpenBlas()]


# --- what is measured ---------------------------------------------------------------------------------------------------


def expected(query, key, value):
    """Attention in double."""
    group = query.shape[0] // key.shape[0]
    key, value = (np.repeat(array, group, axis=0).astype(np.float64) for array in (key, value))
    scores = np.einsum("hd,hkd->hk", query, key) / np.sqrt(query.shape[1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("hk,hkd->hd", weights / weights.sum(axis=-1, keepdims=True), value)


def check(peer, case, result, right):
    error = np.sqrt(np.square(result - right).sum() / np.square(right).sum())
    if not error <= LARGEST_ERROR[case.storage]:
        sys.exit(f"compare.py: {peer.title} is wrong by {error:.1e} of the result: {case}")


def in_turn(calls):
    """A function that makes the next of the calls."""
    following = itertools.cycle(calls)
    return lambda: next(following)()


def run(library, cases, repetitions, is_wanted):
    """Measures every case, checking results before anything is timed."""
    all_measured = []
    for index, case in enumerate(cases):
        print(f"measuring: case {index + 1} of {len(cases)}: {case}", file=sys.stderr)
        library.set_num_threads(case.threads)
        random = np.random.default_rng(0)
        cached = (case.kv_heads, case.kv_len, case.dim)
        arrays = [random.standard_normal(shape, np.float32) for shape in ((case.heads, case.dim), cached, cached)]
        right = expected(*arrays)
        contestants = []
        for peer in PEERS:
            if case.storage not in peer.storages or not is_wanted(peer):
                continue
            copies = [peer.prepare(library, case, arrays) for _ in range(case.copies())]
            check(peer, case, copies[0][1](), right)
            contestants.append((Measured(case, peer.title), in_turn([call for call, _ in copies])))
        measure(library, case, contestants, repetitions)
        all_measured += [measured for measured, _ in contestants]
    return all_measured


def cell(result):
    mark = "" if result["quiet"] else "!"
    return f"{1e3 * result['median_ms']:.1f}{mark} ({1e3 * result['best_ms']:.1f})"


def print_results(results):
    """A row for each case: microseconds of every peer, and how many times faster than the best of the others heed is."""
    peers = [peer.title for peer in PEERS]
    names = ("threads", "head_dim", "heads", "kv_heads", "storage", "kv_seq")
    lines = {}
    for result in results:
        case = tuple(result["case"][name] for name in names)
        lines.setdefault(case, {})[result["case"]["implementation"]] = result
    rows = [["threads, d, heads, storage, keys", *peers, "heed against the best peer"]]
    for (threads, dim, heads, kv_heads, storage, kv_len), line in lines.items():
        row = [f"{threads}, {dim}, {heads} on {kv_heads}, {storage}, {kv_len}"]
        for peer in peers:
            row.append(cell(line[peer]) if peer in line else "")
        others = [line[peer] for peer in peers[1:] if peer in line]
        row.append(ratio(line["heed"], others) if others else "")
        rows.append(row)
    print("\nmicroseconds a token, median (best)\n")
    print_aligned(rows)
