"""heed and its peers, each in its own words.

prepare(case, arrays) returns two functions without arguments: one that computes, and one that computes and returns
[num_heads, q_len, head_dim], or of a backward case [the gradients of query, key and value] one behind the other, flat.
Operands are laid out as each wants them before anything is timed."""

from __future__ import annotations

import numpy as np
import torch

import heed

from .cases import Case


def flat(gradients) -> np.ndarray:
    return np.concatenate([np.asarray(gradient).ravel() for gradient in gradients])


class Heed:
    title = "heed"

    def can(self, case: Case) -> bool:
        return True

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        query, key, value, *grad_out = arrays
        options = {"causal": case.is_causal}
        heed.set_num_threads(case.threads)
        if not case.is_backward:
            return self.forward(case, query, key, value, options)
        made = heed.attention(query, key, value, return_lse=True, **options)

        def call():
            return heed.attention_backward(*grad_out, query, key, value, *made, lse_low=made.lse_low, **options)

        return call, lambda: flat(call()[:3])

    def forward(self, case, query, key, value, options):
        def call():
            return heed.attention(query, key, value, **options)

        return call, lambda: call()[0]


class PyTorch:
    """PyTorch's fused operator. The way back alone is timed: the graph of one forward pass is kept."""

    title = "PyTorch SDPA"

    def can(self, case: Case) -> bool:
        return True

    def attend(self, case: Case, query, key, value):
        enable_gqa = case.num_heads != case.num_kv_heads
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=case.is_causal, enable_gqa=enable_gqa
        )

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        torch.set_num_threads(case.threads)
        query, key, value, *grad_out = map(torch.from_numpy, arrays)
        if not case.is_backward:

            def forward():
                with torch.inference_mode():
                    return self.attend(case, query, key, value)

            return forward, lambda: forward()[0].numpy()
        inputs = [tensor.requires_grad_() for tensor in (query, key, value)]
        out = self.attend(case, *inputs)

        def backward():
            return torch.autograd.grad(out, inputs, *grad_out, retain_graph=True)

        return backward, lambda: flat(backward())


class Manual(PyTorch):
    """Attention as tutorials write it: every weight goes to memory."""

    title = "PyTorch by hand"

    def attend(self, case: Case, query, key, value):
        group = case.num_heads // case.num_kv_heads
        if group > 1:
            key, value = (tensor.repeat_interleave(group, dim=1) for tensor in (key, value))
        scores = query @ key.transpose(-2, -1) / case.head_dim**0.5
        if case.is_causal:
            hidden = torch.triu(torch.ones(case.q_len, case.kv_len), diagonal=1).bool()
            scores = scores.masked_fill(hidden, float("-inf"))
        return torch.softmax(scores, dim=-1) @ value


class OnnxRuntime:
    """One operator in a session of its own, its output bound."""

    def __init__(self) -> None:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

    def can(self, case: Case) -> bool:
        return not case.is_backward

    def session(self, node, inputs: dict[str, np.ndarray], domain: str, threads: int):
        import onnxruntime
        from onnx import TensorProto, helper

        opsets = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in inputs.items()]
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
        graph = helper.make_graph([node], "attention", values, [out])
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads spin within a call, as they do by default, but not into the next peer's.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        inputs, node, domain = self.model(case, arrays)
        session = self.session(node, inputs, domain, case.threads)
        binding = session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("out")

        def call(_kept=inputs):
            session.run_with_iobinding(binding)

        def result():
            call()
            return self.separate(binding.copy_outputs_to_cpu()[0], case)

        return call, result


class StandardAttention(OnnxRuntime):
    """The operator of ONNX itself, opset 23."""

    title = "ORT Attention"

    def model(self, case: Case, arrays: list[np.ndarray]):
        from onnx import helper

        inputs = dict(zip(("query", "key", "value"), arrays))
        return inputs, helper.make_node("Attention", list(inputs), ["out"], is_causal=int(case.is_causal)), ""

    def separate(self, out: np.ndarray, case: Case) -> np.ndarray:
        return out[0]


class MultiHeadAttention(OnnxRuntime):
    """ONNX Runtime's own operator, which has as many key heads as query heads."""

    title = "ORT MultiHeadAttention"

    def can(self, case: Case) -> bool:
        return super().can(case) and case.num_heads == case.num_kv_heads

    def model(self, case: Case, arrays: list[np.ndarray]):
        from onnx import helper

        def interleaved(array: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(1, array.shape[2], -1)

        domain = "com.microsoft"
        inputs = dict(zip(("query", "key", "value"), map(interleaved, arrays)))
        attributes = {"num_heads": case.num_heads, "unidirectional": int(case.is_causal)}
        return inputs, helper.make_node("MultiHeadAttention", list(inputs), ["out"], domain=domain, **attributes), domain

    def separate(self, out: np.ndarray, case: Case) -> np.ndarray:
        return out.reshape(case.q_len, case.num_heads, case.head_dim).transpose(1, 0, 2)


def all_peers() -> list:
    """heed first; ONNX Runtime where it can be imported."""
    peers = [Heed(), PyTorch(), Manual()]
    try:
        peers += [StandardAttention(), MultiHeadAttention()]
    except ImportError:
        pass
    return peers


def versions() -> dict[str, str]:
    found = {"heed": heed.__version__, "torch": torch.__version__, "numpy": np.__version__}
    try:
        import onnxruntime

        found["onnxruntime"] = onnxruntime.__version__
    except ImportError:
        pass
    return found
