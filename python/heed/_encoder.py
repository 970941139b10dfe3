"""nn.TransformerEncoder over padded sequences, of which the rows that are no padding are computed alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from ._relatives import attention_packed

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import TransformerEncoder, TransformerEncoderLayer

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
pytorch_forward = torch.nn.TransformerEncoder.forward


def _is_known(module: torch.nn.Module) -> bool:
    """Whether nothing of a layer is anybody's own: parametrised, quantised, watched by hooks."""
    return type(module).__module__.startswith("torch.nn.modules.") and not any(getattr(module, name) for name in _HOOKS)


def _packs(encoder: TransformerEncoder, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
    """Whether PyTorch's own encoder would compute nested tensors, which leave padding out as well."""
    if padding is None or mask is not None or encoder.training or not getattr(encoder, "use_nested_tensor", False):
        return False
    if src.dim() != 3 or padding.shape != src.shape[:2] or not src.is_cpu or src.dtype not in _FLOATS:
        return False
    if torch.is_autocast_enabled("cpu") or torch.jit.is_tracing() or torch.compiler.is_compiling():
        return False
    if torch.is_grad_enabled() and (src.requires_grad or any(x.requires_grad for x in encoder.parameters())):
        return False
    layers = encoder.layers
    return all(type(layer) is torch.nn.TransformerEncoderLayer for layer in layers) and all(
        _is_known(module) for layer in layers for module in layer.modules()
    )


def _attend(layer: TransformerEncoderLayer, rows: Tensor, boundaries: list[int]) -> Tensor:
    module = layer.self_attn
    projected = functional.linear(rows, module.in_proj_weight, module.in_proj_bias)
    heads = projected.view(len(rows), 3, module.num_heads, module.head_dim).unbind(1)
    found = attention_packed(*heads, boundaries, num_threads=torch.get_num_threads())
    return module.out_proj(found.flatten(1))


def _feed_forward(layer: TransformerEncoderLayer, rows: Tensor) -> Tensor:
    hidden = layer.linear1(rows)
    hidden = hidden.relu_() if layer.activation is functional.relu else layer.activation(hidden)
    return layer.linear2(hidden)


def _layer(layer: TransformerEncoderLayer, rows: Tensor, boundaries: list[int]) -> Tensor:
    # Nothing of this is recorded: sums may overwrite what they are of.
    rows = layer.norm1(_attend(layer, rows, boundaries).add_(rows))
    return layer.norm2(_feed_forward(layer, rows).add_(rows))


def forward(
    self: TransformerEncoder,
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    """What PyTorch's does in inference, padding 0 before the last norm; otherwise PyTorch's."""
    if is_causal or not _packs(self, src, mask, src_key_padding_mask):
        return pytorch_forward(self, src, mask, src_key_padding_mask, is_causal)
    if src_key_padding_mask.dtype == torch.bool:
        is_text = ~src_key_padding_mask
    else:  # numbers that are added: 0 or minus infinity
        is_text = src_key_padding_mask == 0
        if not (is_text | (src_key_padding_mask == -torch.inf)).all():
            return pytorch_forward(self, src, mask, src_key_padding_mask, is_causal)
    boundaries = [0, *is_text.sum(1).cumsum(0).tolist()]
    rows = src[is_text]
    for layer in self.layers:
        rows = _layer(layer, rows, boundaries)
    out = src.new_zeros(*src.shape[:2], rows.shape[-1])
    out[is_text] = rows
    return out if self.norm is None else self.norm(out)
