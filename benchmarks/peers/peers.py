"""heed and its peers, each in its own words: prepare() takes [heads, length, dim] float32 arrays and returns two
functions without arguments, one that computes and one that computes and returns [heads, length, dim]. For the gradients
it takes grad_out too, and what is returned is [3, heads, length, dim], those of query, key and value."""

from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


@dataclass(frozen=True, eq=False)
class Mask:
    """text is heed's; visible says it of each pair, [heads or 1, length, length]."""

    text: str
    visible: np.ndarray

    @property
    def is_dense(self):
        """No pairs are hidden, or only those of the future: what every peer knows by name."""
        return self.text in ("none", "causal")

    def in_torch(self):
        """Arguments of scaled_dot_product_attention."""
        if self.is_dense:
            return {"is_causal": self.text == "causal"}
        return {"attn_mask": torch.from_numpy(self.visible)[None]}


class FromLibrary:
    """What libheed_peers.so computes. Its threads are set for all at once, by Library.set_num_threads."""

    def __init__(self, library, name, title):
        self.title = title
        self._library = library
        self._name = name

    def can(self, mask):
        return mask.is_dense or self.title == "heed"

    def prepare(self, arrays, mask, threads):
        return self._library.prepare(self._name, arrays, mask.text)


class PyTorch:
    title = "PyTorch SDPA"

    def can(self, mask):
        return True

    def prepare(self, arrays, mask, threads):
        torch.set_num_threads(threads)
        query, key, value = (torch.from_numpy(array)[None] for array in arrays)
        attend = torch.nn.functional.scaled_dot_product_attention
        options = mask.in_torch()

        def call():
            with torch.inference_mode():
                return attend(query, key, value, **options)

        return call, lambda: call().numpy()[0]


class PyTorchBackward(PyTorch):
    """The way back alone: the graph of one forward pass is kept."""

    def prepare(self, arrays, mask, threads):
        torch.set_num_threads(threads)
        *inputs, grad_out = (torch.from_numpy(array)[None] for array in arrays)
        inputs = [tensor.requires_grad_() for tensor in inputs]
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, **mask.in_torch())

        def call():
            return torch.autograd.grad(out, inputs, grad_out, retain_graph=True)

        return call, lambda: torch.cat(call()).numpy()


class FlexAttention:
    """Compiled, with a mask that reads the pair's own entry where a block of pairs is neither hidden nor shown as a whole.
    PyTorch has no gradients of it on a CPU."""

    title = "PyTorch flex_attention"

    def can(self, mask):
        return not mask.is_dense

    def prepare(self, arrays, mask, threads):
        torch.set_num_threads(threads)
        torch.compiler.reset()
        query, key, value = (torch.from_numpy(array)[None] for array in arrays)
        visible = torch.from_numpy(mask.visible)
        heads, length, _ = mask.visible.shape
        visible = visible[0] if heads == 1 else visible

        def sees(_, head, q, k):
            return visible[q, k] if heads == 1 else visible[head, q, k]

        shown = create_block_mask(sees, None, None if heads == 1 else heads, length, length, device="cpu")
        attend = torch.compile(flex_attention)

        def call():
            with torch.inference_mode():
                return attend(query, key, value, block_mask=shown)

        return call, lambda: call().numpy()[0]


def options_of(threads):
    """Those of a session of ONNX Runtime on that many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads spin within a call, as they do by default, but not into the next peer's.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def session_of(node, inputs, outputs, domain, threads):
    """An ONNX Runtime session of one node, on that many threads."""
    opsets = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    types = {
        np.dtype(np.float32): TensorProto.FLOAT,
        np.dtype(np.int32): TensorProto.INT32,
        np.dtype(bool): TensorProto.BOOL,
    }
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(name, types[array.dtype], array.shape) for name, array in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options_of(threads), providers=["CPUExecutionProvider"]
    )


def interleaved(array):
    """[heads, length, dim] as [1, length, heads · dim]."""
    return np.ascontiguousarray(array.transpose(1, 0, 2)).reshape(1, array.shape[1], -1)


def separated(array, shape):
    """The inverse of interleaved()."""
    heads, length, dim = shape
    return array.reshape(length, heads, dim).transpose(1, 0, 2)


class OnnxRuntime:
    """One operator in a session of its own."""

    def can(self, mask):
        return mask.is_dense

    def prepare(self, arrays, mask, threads):
        shape = arrays[0].shape
        node, inputs, outputs, domain = self.model(arrays, mask)
        session = session_of(node, inputs, outputs, domain, threads)
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for name in outputs:
            binding.bind_output(name)

        def call(_kept=inputs):
            session.run_with_iobinding(binding)

        def result():
            call()
            return self.separate(binding.copy_outputs_to_cpu()[0], shape)

        return call, result

    def separate(self, out, shape):
        return separated(out, shape)


class MultiHeadAttention(OnnxRuntime):
    title = "ORT MultiHeadAttention"

    def model(self, arrays, mask):
        inputs = dict(zip(("query", "key", "value"), map(interleaved, arrays)))
        node = helper.make_node(
            "MultiHeadAttention",
            list(inputs),
            ["out"],
            domain="com.microsoft",
            num_heads=arrays[0].shape[0],
            unidirectional=int(mask.text == "causal"),
        )
        return node, inputs, ["out"], "com.microsoft"


class GroupQueryAttention(OnnxRuntime):
    title = "ORT GroupQueryAttention"

    def can(self, mask):
        return mask.text == "causal"  # it knows nothing else

    def model(self, arrays, mask):
        heads, length, _ = arrays[0].shape
        inputs = dict(zip(("query", "key", "value"), map(interleaved, arrays)))
        inputs["seqlens_k"] = np.array([length - 1], np.int32)
        inputs["total_sequence_length"] = np.array(length, np.int32)
        outputs = ["out", "present_key", "present_value"]
        node = helper.make_node(
            "GroupQueryAttention",
            ["query", "key", "value", "", "", "seqlens_k", "total_sequence_length"],
            outputs,
            domain="com.microsoft",
            num_heads=heads,
            kv_num_heads=heads,
        )
        return node, inputs, outputs, "com.microsoft"


class StandardAttention(OnnxRuntime):
    """The operator of ONNX itself, opset 23. The contributed operator Attention is not compared: it contains the
    projections of its input, which nobody else here computes."""

    title = "ORT Attention (ONNX)"

    def can(self, mask):
        return True

    def model(self, arrays, mask):
        inputs = {name: array[None] for name, array in zip(("query", "key", "value"), arrays)}
        if not mask.is_dense:
            inputs["attn_mask"] = mask.visible[None]
        node = helper.make_node("Attention", list(inputs), ["out"], is_causal=int(mask.text == "causal"))
        return node, inputs, ["out"], ""

    def separate(self, out, shape):
        return out[0]


def backward_peers(library):
    """Whoever has gradients, heed first."""
    return [FromLibrary(library, "heed_backward", "heed"), PyTorchBackward()]


def all_peers(library):
    """heed first."""
    peers = [
        FromLibrary(library, "heed", "heed"),
        PyTorch(),
        FlexAttention(),
        MultiHeadAttention(),
        GroupQueryAttention(),
        StandardAttention(),
        FromLibrary(library, "openblas", "OpenBLAS, 192-row blocks"),
    ]
    if library.has("onednn"):
        peers.append(FromLibrary(library, "onednn", "oneDNN, 192-row blocks"))
    return peers


def versions(library):
    return {
        "heed": library.version(),
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
        "onnx": onnx.__version__,
        "numpy": np.__version__,
    }
