"""heed's layers and optimisers against PyTorch's, from the same seed: see probe/layers_probe.cc."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import torch_layers as layers

# Relative to the largest element of the tensor.
TOLERANCE = 1e-5

Arrays = dict[str, Tensor]


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 17),
        nn.ReLU(),
        nn.LayerNorm(17),
        nn.Linear(17, 3, bias=False),
        nn.Tanh(),
        nn.Dropout(0.0),
    )


# Each layer, and the shapes of its inputs.
SELF = [(2, 7, 16)]
STATES = [(2, 7, 12), (2, 12)]
LAYERS: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]]]] = {
    "mlp": (mlp, [(4, 5, 6)]),
    "sinusoidal": (lambda: layers.SinusoidalPositionalEncoding(8, 30), [(2, 5, 8)]),
    "learned": (lambda: layers.LearnedPositionalEncoding(8, 30), [(2, 5, 8)]),
    "fused": (lambda: layers.fused(16, 4), SELF),
    "separate": (lambda: layers.separate(16, 2), SELF),
    "twice_dropped": (lambda: layers.twice_dropped(16, 4), SELF),
    "self": (lambda: layers.SelfAttention(16), SELF),
    "single_head": (lambda: layers.SingleHeadAttention(16, 5), SELF),
    "causal_self": (lambda: layers.CausalSelfAttention(16, 4, 9), SELF),
    "causal_multi_head": (lambda: layers.CausalMultiHeadAttention(16, 2, 7), SELF),
    "cross": (lambda: layers.cross(16, 4), [(2, 5, 16), (2, 7, 16)]),
    "grouped": (lambda: layers.ConfiguredAttention(16, 4, 2), SELF),
    "grouped_fused": (lambda: layers.ConfiguredAttention(16, 4, 1, is_fused=True), SELF),
    "window": (lambda: layers.ConfiguredAttention(16, 4, 4, window=3), SELF),
    "softcap": (lambda: layers.ConfiguredAttention(16, 4, 4, softcap=0.5), SELF),
    "alibi": (lambda: layers.ConfiguredAttention(16, 4, 4, alibi=True), SELF),
    "rotary": (lambda: layers.ConfiguredAttention(16, 2, 2, rotary_base=100), SELF),
    "rotary_fused": (
        lambda: layers.ConfiguredAttention(16, 4, 2, is_fused=True, rotary_base=100),
        SELF,
    ),
    "all_terms": (
        lambda: layers.ConfiguredAttention(
            16, 4, 2, window=4, softcap=0.5, alibi=True, rotary_base=100
        ),
        [*SELF, (4, 7, 7)],
    ),
    "biased": (lambda: layers.ConfiguredAttention(16, 4, 4), [*SELF, (4, 1, 7)]),
    "additive": (lambda: layers.AdditiveAttention(12, 12, 5), STATES),
    "luong_dot": (lambda: layers.MultiplicativeAttention(12, 12, "dot"), STATES),
    "luong_general": (lambda: layers.MultiplicativeAttention(12, 12, "general"), STATES),
    "luong_concat": (lambda: layers.MultiplicativeAttention(12, 12, "concat"), STATES),
}


def state_of(module: nn.Module) -> Arrays:
    state = {f"state/{name}": tensor.clone() for name, tensor in module.state_dict().items()}
    return {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}


def backward(module: nn.Module, out: Tensor, inputs: list[Tensor]) -> Arrays:
    out.backward(torch.randn(out.shape))
    grads = {f"grad_{i}": x.grad for i, x in enumerate(inputs)}
    return grads | {f"grad/{name}": p.grad for name, p in module.named_parameters()}


def run_layer(name: str) -> tuple[str, Arrays]:
    """The summary, the state from seed 0, and what forward and backward give."""
    make, shapes = LAYERS[name]
    torch.manual_seed(0)
    module = make()
    state = state_of(module)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    out = module(*inputs, inputs[1]) if name == "cross" else module(*inputs)
    arrays = {}
    if isinstance(out, tuple):
        out, weights = out
        arrays = {"weights": weights} if name != "cross" else {}
    return repr(module), state | arrays | {"out": out} | backward(module, out, inputs)


def run_embedding() -> tuple[str, Arrays]:
    torch.manual_seed(0)
    module = nn.Embedding(13, 6, padding_idx=2)
    state = state_of(module)
    out = module(torch.randint(0, 13, (3, 20)))
    return repr(module), state | {"out": out} | backward(module, out, [])


def sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01)


# True if attention has biases, and the optimiser.
TRAINING = {
    "train_sgd": (False, sgd),
    "train_sgd_biased": (True, sgd),
    "train_adam": (False, lambda p: torch.optim.Adam(p, 3e-3, weight_decay=0.01)),
    "train_adamw": (False, lambda p: torch.optim.AdamW(p, 3e-3)),
}


def warmup_cosine(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    schedulers = torch.optim.lr_scheduler
    warmup = schedulers.LinearLR(optimizer, start_factor=0.1, total_iters=9)
    cosine = schedulers.CosineAnnealingLR(optimizer, T_max=90, eta_min=1e-4)
    return schedulers.SequentialLR(optimizer, [warmup, cosine], milestones=[10])


def train(name: str) -> Arrays:
    has_bias, make_optimizer = TRAINING[name]
    torch.manual_seed(0)
    model = layers.Model(vocabulary=11, width=16, max_len=8, has_bias=has_bias)
    ids = torch.randint(0, 11, (4, 9))
    optimizer = make_optimizer(list(model.parameters()))
    schedule = warmup_cosine(optimizer)
    losses, norms = [], []
    for _ in range(100):
        optimizer.zero_grad()
        logits = model(ids[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, ids[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), "norms": torch.stack(norms)} | state_of(model)


@pytest.fixture(scope="module")
def probed(build: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    folder = tmp_path_factory.mktemp("layers")
    subprocess.run([build / "tests/python/probe/layers_probe", folder], check=True, timeout=300)
    with np.load(folder / "layers.npz") as file:
        arrays = dict(file)
    return arrays, json.loads((folder / "summaries.json").read_text())


def assert_equal(name: str, probed: dict[str, np.ndarray], expected: Arrays) -> None:
    prefix = f"{name}/"
    found = {key.removeprefix(prefix): a for key, a in probed.items() if key.startswith(prefix)}
    assert set(found) == set(expected)
    for quantity, tensor in expected.items():
        theirs = tensor.detach().numpy()
        magnitude = np.abs(theirs).max(initial=0)
        ours = found[quantity].reshape(theirs.shape)
        if quantity.endswith(("k_proj.bias", "W_k.bias")) and "grad" in quantity:
            magnitude = 1  # a bias of the keys has no effect: its gradient is rounding error
        if quantity == "grad/attention.W2.weight":
            magnitude = 1e-3  # shifts all scores of a row nearly equally: that of W1, which does not cancel
        error = np.abs(ours - theirs).max(initial=0) / max(magnitude, 1e-30)
        assert error <= TOLERANCE, f"{quantity}: {error}"


@pytest.mark.parametrize("name", [*LAYERS, "embedding"])
def test_layer_agrees(name: str, probed: tuple[dict, dict]) -> None:
    summary, expected = run_embedding() if name == "embedding" else run_layer(name)
    arrays, summaries = probed
    assert summaries[name] == summary
    assert_equal(name, arrays, expected)


@pytest.mark.parametrize("name", TRAINING)
def test_training_agrees(name: str, probed: tuple[dict, dict]) -> None:
    assert_equal(name, probed[0], train(name))
