"""heed and its peers, each in its own words.

can(case) says whether one takes part. prepare(case, arrays) returns two functions without arguments: one that computes, and
one that computes and returns what expected() returns. Operands are laid out as each wants them before anything is timed; a
cache is filled anew by each prepare(), so that there can be several."""

from __future__ import annotations

import numpy as np
import torch

import heed

from .cases import Case


def numbers_of(result) -> np.ndarray:
    """Of an array of NumPy's or PyTorch's, in half precision as float32."""
    return result.float().numpy() if isinstance(result, torch.Tensor) else np.asarray(result)


def stacked(gradients) -> np.ndarray:
    """Those of query, key and value as one array."""
    return np.stack([numbers_of(gradient)[0] for gradient in gradients])


class Heed:
    """As Python sees it: each call allocates its result."""

    def __init__(self, title: str = "heed") -> None:
        self.title = title

    def can(self, case: Case) -> bool:
        return True

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        heed.set_num_threads(case.threads)
        query, key, value, *grad_out = arrays if case.dtype == "float32" else case.tensors(arrays)
        if case.way == "decode":
            sequence = heed.KvSequence(heed.KvPool(case.kv_heads, case.head_dim, key_storage=case.storage))
            sequence.append(key[0], value[0])
            return (lambda: heed.attend(query, sequence)), lambda: heed.attend(query, sequence)[0]
        options = {} if case.mask == "none" else {"mask": heed.parse_mask(case.mask)}
        if case.way == "forward":
            return self._forward(query, key, value, options)
        made = heed.attention(query, key, value, return_lse=True, **options)
        low = {"lse_low": made.lse_low, "out_low": made.out_low}

        def call():
            return heed.attention_backward(*grad_out, query, key, value, *made, **low, **options)

        return call, lambda: stacked(call()[:3])

    def _forward(self, query, key, value, options):
        def call():
            return heed.attention(query, key, value, **options)

        return call, lambda: numbers_of(call()[0])


class PyTorch:
    """PyTorch's fused operator. Masks that it does not know by name are tensors of booleans. Of the gradients the way back
    alone is timed: the graph of one forward pass is kept."""

    title = "PyTorch SDPA"
    storages = ("float32", "float16", "bfloat16")

    def can(self, case: Case) -> bool:
        return case.storage in self.storages and case.dtype in self.storages

    def attend(self, case: Case, query, key, value, visible):
        """visible: booleans of pairs, of masks other than "none" and "causal"."""
        attend = torch.nn.functional.scaled_dot_product_attention
        shown = {"is_causal": case.mask == "causal"} if visible is None else {"attn_mask": visible}
        return attend(query, key, value, enable_gqa=case.heads != case.kv_heads, **shown)

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        torch.set_num_threads(case.threads)
        visible = None if case.is_dense else torch.from_numpy(case.visible())[None]
        dtype = getattr(torch, case.storage if case.way == "decode" else case.dtype)
        query, key, value, *grad_out = (
            torch.from_numpy(array).to(dtype, copy=case.way == "decode") for array in arrays
        )
        if case.way != "backward":

            def forward():
                with torch.inference_mode():
                    return self.attend(case, query, key, value, visible)

            return forward, lambda: forward()[0].float().numpy()
        inputs = [tensor.clone().requires_grad_() for tensor in (query, key, value)]
        out = self.attend(case, *inputs, visible)

        def backward():
            return torch.autograd.grad(out, inputs, *grad_out, retain_graph=True)

        return backward, lambda: stacked(backward())


class Manual(PyTorch):
    """Attention as tutorials write it: every weight goes to memory."""

    title = "PyTorch by hand"
    storages = ("float32",)

    def attend(self, case: Case, query, key, value, visible):
        group = case.heads // case.kv_heads
        if group > 1:
            key, value = (tensor.repeat_interleave(group, dim=1) for tensor in (key, value))
        scores = query @ key.transpose(-2, -1) / case.head_dim**0.5
        if case.mask == "causal":
            hidden = torch.triu(torch.ones(case.seq, case.kv_seq), diagonal=1).bool()
            scores = scores.masked_fill(hidden, float("-inf"))
        elif visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        return torch.softmax(scores, dim=-1) @ value


class FlexAttention(PyTorch):
    """Compiled, with a mask that reads the pair's own entry where a block of pairs is neither hidden nor shown as a whole.
    PyTorch has no gradients of it on a CPU."""

    title = "PyTorch flex_attention"

    def can(self, case: Case) -> bool:
        return case.way == "forward" and not case.is_dense and case.dtype == "float32"

    def prepare(self, case: Case, arrays: list[np.ndarray]):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        torch.set_num_threads(case.threads)
        torch.compiler.reset()
        query, key, value = map(torch.from_numpy, arrays)
        visible = torch.from_numpy(case.visible())
        heads = visible.shape[0]

        def sees(_, head, q, k):
            return visible[0][q, k] if heads == 1 else visible[head, q, k]

        shown = create_block_mask(sees, None, None if heads == 1 else heads, case.seq, case.kv_seq, device="cpu")
        attend = torch.compile(flex_attention)

        def call():
            with torch.inference_mode():
                return attend(query, key, value, block_mask=shown)

        return call, lambda: call()[0].numpy()


def all_peers(library=None) -> list:
    """heed first; ONNX Runtime where it can be imported; what is in libheed_peers.so where that is given."""
    peers = [Heed(), PyTorch(), Manual(), FlexAttention()]
    if library is not None:
        peers[0] = library.heed()
        peers.insert(1, Heed("heed from Python"))
    try:
        from . import onnx_peers
    except ImportError:
        pass
    else:
        peers += onnx_peers.all_peers()
    return peers + (library.peers() if library is not None else [])


def versions() -> dict[str, str]:
    found = {"heed": heed.__version__, "torch": torch.__version__, "numpy": np.__version__}
    try:
        import onnxruntime

        found["onnxruntime"] = onnxruntime.__version__
    except ImportError:
        pass
    return found
