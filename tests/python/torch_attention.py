"""Attention and its gradients in PyTorch: its operator, and the textbook's steps."""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import CausalBias

from cases import Case

DIFFERENTIABLE = ("query", "key", "value", "alibi_slopes", "bias", "sinks")


def leaves(case: Case, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The case's arrays that gradients are asked of."""
    names = (name for name in DIFFERENTIABLE if name in case.arrays)
    return {name: case.tensor(name, dtype).requires_grad_() for name in names}


def gradients(
    case: Case, out: torch.Tensor, inputs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """What out's gradient grad_out becomes at each input; one that has no influence gets 0."""
    grad_out = case.tensor("grad_out", out.dtype)
    found = torch.autograd.grad(out, list(inputs.values()), grad_out, materialize_grads=True)
    return {f"grad_{name}": grad for name, grad in zip(inputs, found, strict=True)}


def operator(case: Case, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """PyTorch's scaled_dot_product_attention in its math backend, forward and backward."""
    inputs = leaves(case, dtype)
    mask = case.attn_mask
    if "bias" in inputs:
        mask = inputs["bias"]
    if "mask_additive" in case.arrays:
        mask = case.tensor("mask_additive", dtype)
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(
            inputs["query"],
            inputs["key"],
            inputs["value"],
            attn_mask=mask,
            is_causal=case.is_causal,
            scale=case.options.get("scale"),
            enable_gqa=inputs["query"].shape[1] != inputs["key"].shape[1],
        )
    return {"out": out.detach()} | gradients(case, out, inputs)


def visible_cells(case: Case, scores: torch.Tensor) -> torch.Tensor:
    """Who may attend to whom, broadcasting to the scores."""
    if case.is_causal:
        return torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if isinstance(case.attn_mask, CausalBias):
        return case.attn_mask._materialize().bool()
    if case.attn_mask is not None:
        return case.attn_mask
    if "mask_additive" in case.arrays:
        return case.tensor("mask_additive", scores.dtype) != -math.inf
    return torch.ones((), dtype=torch.bool)


def textbook(
    case: Case, dtype: torch.dtype, dropped: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """Every step, and the gradients. `dropped` is what dropout multiplies the weights by."""
    inputs = leaves(case, dtype)
    query = inputs["query"]
    group = query.shape[1] // max(inputs["key"].shape[1], 1)
    key, value = (inputs[name].repeat_interleave(group, dim=1) for name in ("key", "value"))

    scale = case.options.get("scale", 1 / math.sqrt(max(query.shape[-1], 1)))
    scores = query @ key.transpose(-2, -1) * scale
    softcap = case.options.get("softcap")
    capped = softcap * torch.tanh(scores / softcap) if softcap else scores
    modified = capped
    if "alibi_slopes" in inputs:
        q_idx = torch.arange(scores.shape[-2])[:, None] + case.options.get("query_offset", 0)
        distance = (torch.arange(scores.shape[-1]) - q_idx).abs()
        modified = modified - inputs["alibi_slopes"].reshape(-1, 1, 1) * distance
    if "bias" in inputs:
        modified = modified + inputs["bias"]
    masked = modified
    if "mask_additive" in case.arrays:
        masked = masked + case.tensor("mask_additive", dtype)
    masked = masked.masked_fill(~visible_cells(case, scores), -math.inf)

    logits = masked
    if "sinks" in inputs:
        sinks = inputs["sinks"].reshape(1, -1, 1, 1).expand(*masked.shape[:-1], 1)
        logits = torch.cat([masked, sinks], dim=-1)
    weights = softmax_or_zero(logits)[..., : masked.shape[-1]]
    out = (weights if dropped is None else weights * dropped) @ value
    steps = {"scores": scores, "capped": capped, "modified": modified, "masked": masked}
    steps |= {"weights": weights, "lse": torch.logsumexp(logits, dim=-1), "out": out}
    return {name: step.detach() for name, step in steps.items()} | gradients(case, out, inputs)


def softmax_or_zero(logits: torch.Tensor) -> torch.Tensor:
    """softmax, where a row of nothing but -inf gives 0 instead of NaN, and so do its gradients."""
    sees_any = (logits != -math.inf).any(dim=-1, keepdim=True)
    return torch.softmax(logits.masked_fill(~sees_any, 0), dim=-1) * sees_any
