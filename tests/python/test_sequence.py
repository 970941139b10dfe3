"""heed's LSTM and sequence models against PyTorch's, from the same seed: see
probe/sequence_probe.cc."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import torch_sequence as sequence
from test_layers import Arrays, assert_equal, backward, state_of

# The options of torch.nn.LSTM, the lengths, and whether initial states are given.
LSTMS: dict[str, tuple[dict, sequence.Lengths, bool]] = {
    "lstm": ({}, None, False),
    "lstm_no_bias": ({"bias": False}, None, True),
    "lstm_layers": ({"num_layers": 3}, [7, 3, 1, 6], True),
    "lstm_bidirectional": ({"bidirectional": True}, [2, 7, 7, 1], True),
    "lstm_both": ({"num_layers": 2, "bidirectional": True}, [5, 1, 7, 4], False),
}

LENGTHS = [6, 2, 9, 5]


def recurrent(kind: str) -> Callable[[], nn.Module]:
    return lambda: sequence.RecurrentSeq2Seq(13, 11, 16, 2, kind)


def multihead() -> nn.Module:
    return sequence.AttentionSeq2Seq(13, 11, 16, 4, 2)


# The model, the lengths of the sources, and whether its encoder stops there.
MODELS: dict[str, tuple[Callable[[], nn.Module], sequence.Lengths, bool]] = {
    "multihead": (multihead, None, False),
    "multihead_packed": (multihead, LENGTHS, True),
    "multihead_masked": (multihead, LENGTHS, False),
} | {
    kind: (recurrent(kind), LENGTHS, True)
    for kind in ("none", "additive", "dot", "general", "concat")
}

# Both compute sines of angles in float, whose error grows with the position: 3e-4 at 5000.
MAX_POSITION = 64


@pytest.fixture(scope="module")
def probed(build: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    folder = tmp_path_factory.mktemp("sequence")
    subprocess.run([build / "tests/python/probe/sequence_probe", folder], check=True, timeout=300)
    with np.load(folder / "layers.npz") as file:
        arrays = {name: a[:, :MAX_POSITION] if name.endswith(".pe") else a for name, a in file.items()}
    return arrays, json.loads((folder / "summaries.json").read_text())


def run_lstm(name: str) -> tuple[str, Arrays]:
    options, lengths, has_start = LSTMS[name]
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 6, batch_first=True, **options)
    state = state_of(lstm)
    inputs = [torch.randn(4, 7, 5, requires_grad=True)]
    if has_start:
        layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        inputs += [torch.randn(layers, 4, 6, requires_grad=True) for _ in range(2)]
    start = tuple(inputs[1:]) or None
    out, (hidden, cell) = sequence.run_lstm(lstm, inputs[0], lengths, start)
    arrays = state | {"hidden": hidden, "cell": cell}
    out = torch.cat([out.flatten(), hidden.flatten(), cell.flatten()])
    return repr(lstm), arrays | {"out": out} | backward(lstm, out, inputs)


def run_model(name: str) -> Arrays:
    make, lengths, packs = MODELS[name]
    torch.manual_seed(0)
    model = make()
    arrays = state_of(model)
    if name.startswith("multihead"):
        arrays["state/pos_encoding.pe"] = arrays["state/pos_encoding.pe"][:, :MAX_POSITION]
    src, tgt = torch.randint(0, 13, (4, 9)), torch.randint(0, 11, (4, 5))
    out, weights = model(src, tgt, lengths, packs)
    arrays |= {"out": out} | ({} if weights is None else {"weights": weights})
    arrays |= {key: grad.clone() for key, grad in backward(model, out, []).items()}
    targets: Tensor = torch.randint(0, 11, (4, 8))
    return arrays | {"losses": sequence.losses(model, src, lengths, packs, targets)}


@pytest.mark.parametrize("name", LSTMS)
def test_lstm_agrees(name: str, probed: tuple[dict, dict]) -> None:
    summary, expected = run_lstm(name)
    arrays, summaries = probed
    assert summaries[name] == summary
    assert_equal(name, arrays, expected)


@pytest.mark.parametrize("name", MODELS)
def test_model_agrees(name: str, probed: tuple[dict, dict]) -> None:
    assert_equal(name, probed[0], run_model(name))
