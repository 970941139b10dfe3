"""What heed promises where PyTorch's operator has another rule, or none."""

import subprocess
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import cases
import torch_attention
from cases import Outputs

Probe = Callable[..., Outputs]


def test_a_query_that_sees_nothing_gets_zero_in_both(probe: Probe) -> None:
    """So PyTorch 2.13 does in its math backend, gradients included; earlier ones gave NaN."""
    allow = np.arange(7)[:, None] != 3
    case = cases.make(
        "blind", arrays={"mask_allow": allow}, attn_mask=torch.from_numpy(allow).expand(7, 7)
    )
    found = probe([case])["blind"]
    expected = torch_attention.operator(case, torch.float64)
    for name in ("out", "grad_query"):
        assert not found[name][:, :, 3].any()
        assert not expected[name][:, :, 3].any()
    assert not found["weights"][:, :, 3].any()
    assert (found["lse"][:, :, 3] == -np.inf).all()


def test_hidden_garbage_changes_no_bit(probe: Probe) -> None:
    """PyTorch multiplies a weight of 0 with the NaN or infinity and spreads it."""
    clean = cases.hiding_last_key("clean")
    garbage = cases.with_hidden_garbage(clean)
    found = probe([clean, garbage])
    for name in ("out", "lse", "masked", "weights", "grad_query", "grad_key", "grad_value"):
        np.testing.assert_array_equal(found[garbage.name][name], found["clean"][name], name)
    assert torch_attention.operator(garbage, torch.float64)["out"].isnan().any()


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_dropout_divides_what_it_keeps(probe: Probe, probability: float) -> None:
    """The stream is heed's own; given what it dropped, PyTorch computes the same."""
    case = cases.make("dropout", (2, 4, 33, 33, 8), 2, is_causal=True)
    case.options = {"causal": True, "dropout": {"probability": probability, "seed": 7}}
    found = probe([case])["dropout"]
    kept = found["dropped"] != 0
    probability = round(probability * 2**16) / 2**16
    factor = kept / (1 - probability) if probability < 1 else np.zeros(kept.shape)
    np.testing.assert_allclose(found["dropped"], found["weights"] * factor, rtol=1e-12)
    seen = found["weights"] != 0
    assert abs(np.mean(~kept[seen]) - probability) < 0.03

    expected = torch_attention.textbook(case, torch.float64, torch.from_numpy(factor))
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor.numpy(), 1e-11, 1e-12, err_msg=name)


def test_dropout_falls_by_position_not_by_call(probe: Probe) -> None:
    """The last queries alone lose the same weights as among all queries."""
    options = {"dropout": {"probability": 0.5, "seed": 7}}
    whole = cases.make("whole", (1, 2, 9, 9, 4), options=options)
    arrays = dict(whole.arrays)
    for name in ("query", "grad_out"):
        arrays[name] = arrays[name][:, :, 5:]
    rest = replace(whole, name="rest", arrays=arrays, options=options | {"query_offset": 5})
    found = probe([whole, rest])
    np.testing.assert_array_equal(found["rest"]["out"], found["whole"]["out"][:, :, 5:])


def test_weights_too_small_to_matter_are_zero(probe: Probe) -> None:
    """Below exp(s - max) = 2^-100; PyTorch keeps 1e-31 here."""
    case = cases.make("tiny", (1, 1, 1, 2, 1), options={"scale": 1.0})
    case.arrays["query"][:] = 1
    case.arrays["key"][:] = np.array([0.0, -71.0])[:, None]
    found = probe([case])["tiny"]["weights"]
    np.testing.assert_array_equal(found.ravel(), [1, 0])
    assert torch_attention.textbook(case, torch.float64)["weights"].min() > 0


def test_a_misspelt_option_is_refused(probe: Probe) -> None:
    """Otherwise a case could compare two runs that both lack it."""
    with pytest.raises(subprocess.CalledProcessError):
        probe([cases.make("misspelt", options={"casual": True})])
