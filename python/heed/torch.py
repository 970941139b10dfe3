"""heed in place of PyTorch's attention, gradients and torch.compile included.

>>> import heed.torch
>>> out = heed.torch.scaled_dot_product_attention(query, key, value, is_causal=True)

or, without a change to the code that calls PyTorch's:

>>> with heed.torch.enabled():
...     model(tokens)
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from typing import TYPE_CHECKING

from ._needs import needed_by

with needed_by("heed.torch"):
    import torch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import CausalBias, CausalVariant
from torch.overrides import handle_torch_function, has_torch_function_variadic

from . import _encoder, _heed
from ._attention import attention
from ._recorded import attention_packed, feature_map_attention, linear_attention, rotary_embedding, rows_of
from ._sdpa import compute, compute_usual, is_watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

__all__ = [
    "attention",
    "attention_packed",
    "disable",
    "enable",
    "enabled",
    "feature_map_attention",
    "linear_attention",
    "register_transformers",
    "rotary_embedding",
    "scaled_dot_product_attention",
    "share_threads",
]

_pytorch_attention = torch.nn.functional.scaled_dot_product_attention
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _overrides(tensors) -> bool:
    """Whether a subclass of Tensor says itself what functions do with it."""
    usual = torch.Tensor.__torch_function__.__func__
    kinds = {type(tensor) for tensor in tensors} - {torch.Tensor, torch.nn.Parameter, type(None)}
    handlers = (getattr(kind, "__torch_function__", None) for kind in kinds)
    return any(
        handler is not torch._C._disabled_torch_function_impl and getattr(handler, "__func__", None) is not usual
        for handler in handlers
    )


def _alignment_of(bias: CausalBias, q_len: int, kv_len: int, is_causal: bool) -> str:
    """Where PyTorch's own causal masks put the queries. They have no elements."""
    if is_causal:
        raise ValueError("scaled_dot_product_attention: attn_mask is a CausalBias, expected is_causal=False with it")
    if (bias.seq_len_q, bias.seq_len_kv) != (q_len, kv_len):
        raise ValueError(
            f"scaled_dot_product_attention: attn_mask is a CausalBias of {bias.seq_len_q} queries and "
            f"{bias.seq_len_kv} keys, expected {q_len} and {kv_len}"
        )
    return "top_left" if bias.variant == CausalVariant.UPPER_LEFT else "bottom_right"


def _wants_pytorchs_steps() -> bool:
    """Whether PyTorch shall compute step by step, which has derivatives of every kind: its user chose so, or this is
    forward-mode differentiation."""
    return forward_ad._current_level >= 0 or (not torch._C._get_flash_sdp_enabled() and torch._C._get_math_sdp_enabled())


def _is_usual(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> bool:
    """Whether a call with nothing but these can be one of heed's, as far as that does not depend on the tensors."""
    return not (
        has_torch_function_variadic(query, key, value)
        or is_watched()
        or torch.is_autocast_enabled("cpu")
        or _wants_pytorchs_steps()
        or not (scale is None or type(scale) is float)
    )


def _what_is_lacking(query: Tensor, key: Tensor, value: Tensor) -> str | None:
    """What heed cannot do and PyTorch may."""
    for tensor in (query, key, value):
        if not tensor.is_cpu:
            return f"tensors on the device {tensor.device.type}"
        if tensor.is_nested or tensor.layout != torch.strided:
            return "nested and sparse tensors"
        if tensor.dtype not in _FLOATS:
            return f"tensors of {tensor.dtype}"
    return None


def _broadcasts(shape, target) -> bool:
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(target)))


def _is_misused(query, key, value, attn_mask, is_causal, enable_gqa) -> bool:
    """Whether PyTorch would complain, or would broadcast in a way of its own: it shall say so itself."""
    if min(query.dim(), key.dim(), value.dim()) < 2 or not query.dtype == key.dtype == value.dtype:
        return True
    if query.shape[-1] != key.shape[-1]:
        return True
    if attn_mask is not None:
        if attn_mask.dtype not in (torch.bool, torch.float32, query.dtype) or attn_mask.is_nested:
            return True
        if attn_mask.device != query.device or not _broadcasts(attn_mask.shape, (*query.shape[:-1], key.shape[-2])):
            return True
    if enable_gqa:
        if not query.dim() == key.dim() == value.dim() >= 3 or key.shape[-3] != value.shape[-3]:
            return True
        return key.shape[-3] == 0 or query.shape[-3] % key.shape[-3] != 0
    return False


def _to_rank_4(tensor: Tensor, leading: torch.Size) -> Tensor:
    """[…, length, dim] with the leading dimensions broadcast and made two."""
    if tensor.shape[:-2] != leading:
        tensor = tensor.expand(*leading, *tensor.shape[-2:])
    if len(leading) == 2:
        return tensor
    if len(leading) > 2:
        return tensor.flatten(0, -4)
    return tensor[None] if leading else tensor[None, None]


def _broadcast(tensors, enable_gqa: bool):
    """The leading dimensions of the result, and the tensors with these, made rank 4."""
    if enable_gqa:
        batch = torch.broadcast_shapes(*(tensor.shape[:-3] for tensor in tensors))
        leading = [torch.Size((*batch, tensor.shape[-3])) for tensor in tensors]
    else:
        leading = [torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors))] * 3
    return leading[0], *(_to_rank_4(tensor, dims) for tensor, dims in zip(tensors, leading))


def _mask_of_rank_4(attn_mask: Tensor, leading: torch.Size) -> Tensor:
    """A mask that broadcasts, aligned at the right, to the scores of rank 4."""
    if len(leading) <= 2 or attn_mask.dim() <= 3:
        return attn_mask
    return attn_mask.expand(*leading, *attn_mask.shape[-2:]).flatten(0, -4)


def _cast_as_autocast_does(tensors):
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return [
        tensor.to(dtype) if tensor is not None and tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
        for tensor in tensors
    ]


def _of_pytorch(given, causal: str | None, options: dict) -> Tensor:
    """What PyTorch computes; a CausalBias, for which it would look at its own function's name, becomes a mask."""
    query, key, value, mask = given
    if causal is not None and not options["is_causal"]:
        after = key.shape[-2] - query.shape[-2] if causal == "bottom_right" else 0
        mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril(after)
    if forward_ad._current_level < 0:
        return _pytorch_attention(query, key, value, mask, **options)
    # Its fused kernel knows no forward mode.
    with sdpa_kernel(SDPBackend.MATH):
        return _pytorch_attention(query, key, value, mask, **options)


_told: set[str] = set()


def _tell_once(reason: str) -> None:
    if reason not in _told:
        _told.add(reason)
        warnings.warn(f"heed does not compute attention of {reason}: PyTorch does", stacklevel=3)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, computed by heed.

    query: [..., q_len, head_dim], key: [..., kv_len, head_dim], value: [..., kv_len, value_dim]
    attn_mask: booleans, true = may attend, or numbers added to the scores; broadcasts to [..., q_len, kv_len]; or one of
        torch.nn.attention.bias, causal_upper_left and causal_lower_right
    dropout_p: applied whenever it is not 0; which weights fall is decided by PyTorch's generator
    is_causal: query i sees the keys up to i, both counted from the first, of those that attn_mask lets it see
    scale: 1/√head_dim when not given
    enable_gqa: dimension -3 of query may be a multiple of that of key and value

    Gradients reach query, key, value and a float attn_mask, once: a gradient of a gradient is not to be had. Those of
    half-precision tensors are computed in float32. A query that sees no key gets 0, and what it does not see may be NaN.
    Tensors that are not on the CPU, nested or sparse are left to PyTorch, and so are forward-mode derivatives, all calls
    under torch.nn.attention.sdpa_kernel(SDPBackend.MATH), and what PyTorch refuses.

    >>> x = torch.randn(2, 8, 128, 64, requires_grad=True)
    >>> heed.torch.scaled_dot_product_attention(x, x, x, is_causal=True).sum().backward()
    """
    if attn_mask is None and dropout_p == 0 and _is_usual(query, key, value, scale):
        out = compute_usual(query, key, value, "top_left" if is_causal else None, scale)
        if out is not None:
            return out
    given = (query, key, value, attn_mask)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    causal = "top_left" if is_causal else None
    if isinstance(attn_mask, CausalBias):
        causal = _alignment_of(attn_mask, query.shape[-2], key.shape[-2], is_causal)
        given = (query, key, value, None)
    if has_torch_function_variadic(*given):
        if not _overrides(given):
            return handle_torch_function(scaled_dot_product_attention, given, query, key, value, attn_mask, **options)
        return _of_pytorch(given, causal, options)
    lacking = _what_is_lacking(query, key, value)
    if lacking is not None:
        _tell_once(lacking)
    query, key, value, mask = _cast_as_autocast_does(given)
    if lacking is not None or _wants_pytorchs_steps() or _is_misused(query, key, value, mask, is_causal, enable_gqa):
        return _of_pytorch(given, causal, options)
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"scaled_dot_product_attention: dropout_p is {dropout_p}, expected 0 to 1")
    leading = query.shape[:-2]
    if not (query.dim() == 4 and leading == key.shape[:-2] == value.shape[:-2]):
        leading, query, key, value = _broadcast((query, key, value), enable_gqa)
    tensors = (rows_of(query), rows_of(key), rows_of(value))
    if mask is not None:
        mask = _mask_of_rank_4(mask, leading)
    # Drawn where PyTorch draws, so that torch.manual_seed() decides.
    seed = torch.randint(2**63 - 1, (), dtype=torch.int64) if dropout_p > 0 else None
    out = compute(*tensors, mask, seed, float(dropout_p), causal, scale)
    return out if len(leading) == 2 else out.view(*leading, *out.shape[-2:])


def share_threads(is_shared: bool = True) -> bool:
    """Whether heed computes on PyTorch's threads, as it does once heed.torch is imported, or on its own. Returns whether it does.

    Threads of both look out for more work for a while before they sleep, and in a model, where the two take turns, would keep
    each other's processors. Calls from other threads than the one that imported heed.torch, or called this last, are computed
    on heed's own threads; so are all where PyTorch was built without OpenMP. A process that forks ends the threads that OpenMP
    keeps for it, so that PyTorch's loops and heed's run in the child; both make new ones.

    >>> heed.torch.share_threads(False)
    False
    """
    return _heed.share_torch_threads(is_shared)


share_threads()

# What torch.jit.script makes of calls is PyTorch's operator.
torch.jit._builtins._register_builtin(scaled_dot_product_attention, "aten::scaled_dot_product_attention")

# --- in place of PyTorch's ----------------------------------------------------------------------------------------------

class _Switch:
    """Who wants heed in PyTorch's place: enable(), and any number of with statements in any number of threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_on = False
        self.blocks = 0
        self.had_fastpath = False

    def set(self, *, is_on: bool | None = None, blocks: int = 0) -> None:
        with self.lock:
            was_wanted = self.is_on or self.blocks > 0
            self.is_on = self.is_on if is_on is None else is_on
            self.blocks += blocks
            is_wanted = self.is_on or self.blocks > 0
            if is_wanted and not was_wanted:
                self.had_fastpath = torch.backends.mha.get_fastpath_enabled()
                torch.backends.mha.set_fastpath_enabled(False)
                torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention
                torch.nn.TransformerEncoder.forward = _encoder.forward
            elif was_wanted and not is_wanted:
                torch.nn.functional.scaled_dot_product_attention = _pytorch_attention
                torch.nn.TransformerEncoder.forward = _encoder.pytorch_forward
                torch.backends.mha.set_fastpath_enabled(self.had_fastpath)


_switch = _Switch()
if hasattr(os, "register_at_fork"):
    # A thread that held the lock is not in the child.
    os.register_at_fork(after_in_child=_switch.lock._at_fork_reinit)


def enable() -> None:
    """Makes torch.nn.functional.scaled_dot_product_attention heed's, for code that calls it by this name, PyTorch's own
    modules among it. Their fast path for inference, which does not call it, is switched off meanwhile; where
    nn.TransformerEncoder would have taken it to leave padding out, padding is left out by attention_packed()."""
    _switch.set(is_on=True)


def disable() -> None:
    """Undoes enable(), at once or, within enabled() of any thread, when the last of these ends."""
    _switch.set(is_on=False)


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """enable() for the length of a with statement, for all threads: until the last of several ends.

    >>> with heed.torch.enabled():
    ...     out = encoder(tokens)
    """
    _switch.set(blocks=1)
    try:
        yield
    finally:
        _switch.set(blocks=-1)


def register_transformers() -> None:
    """Makes attn_implementation="heed" of the package transformers compute the attention of any model: with any cache or
    none, in training too. Softcaps, sinks, windows, position biases, grouped and cross attention are heed's; masks are
    those that transformers makes for its "sdpa". past_key_values may be a heed.transformers.KvCache; importing
    heed.transformers registers the same. With output_attentions=True a model returns its weights.

    >>> heed.torch.register_transformers()
    >>> model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="heed")  # doctest: +SKIP
    """
    from . import _any_model  # takes transformers, which not everybody has

    _any_model.register()
