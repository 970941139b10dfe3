"""heed's reference against PyTorch, over the grid of cases.py."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

import cases
import torch_attention
from cases import Case, Outputs

GRID = cases.grid()
FLOAT32_GRID = [cases.in_float32(case) for case in GRID]
by_name = pytest.mark.parametrize("case", GRID, ids=lambda case: case.name)
by_plain_name = pytest.mark.parametrize(
    "case", [case for case in GRID if case.is_plain], ids=lambda case: case.name
)
TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def found(probe: Callable[..., Outputs]) -> Outputs:
    return probe(GRID + FLOAT32_GRID)


def magnitude(expected: np.ndarray) -> float:
    """The largest finite element, or 1 when all are smaller: what errors are relative to."""
    finite = expected[np.isfinite(expected)]
    return max(1.0, np.abs(finite).max(initial=0.0))


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the magnitude; infinities must be equal."""
    assert found.shape == expected.shape
    assert not np.isnan(found).any()
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(found[infinite], expected[infinite])
    difference = np.abs(found[~infinite].astype(np.float64) - expected[~infinite])
    return difference.max(initial=0.0) / magnitude(expected)


def assert_close(found: dict[str, np.ndarray], expected: dict[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        assert error(found[name], tensor.numpy()) <= TOLERANCE, name


@by_plain_name
def test_agrees_with_scaled_dot_product_attention(case: Case, found: Outputs) -> None:
    assert_close(found[case.name], torch_attention.operator(case, torch.float64))


@by_name
def test_every_step_agrees_with_the_textbook(case: Case, found: Outputs) -> None:
    assert_close(found[case.name], torch_attention.textbook(case, torch.float64))


def test_gradients_nobody_asked_for_are_empty(found: Outputs) -> None:
    assert found["full-7x7"]["grad_bias"].size == 0
    assert found["full-7x7"]["grad_sinks"].size == 0


def test_float32_is_as_exact_as_pytorch(found: Outputs) -> None:
    """At most twice PyTorch's own error against double, each the worst over the grid."""
    worst: dict[str, list[float]] = {}
    for case in FLOAT32_GRID:
        exact = torch_attention.textbook(case, torch.float64)
        theirs = (torch_attention.operator if case.is_plain else torch_attention.textbook)(
            case, torch.float32
        )
        for name, tensor in theirs.items():
            expected = exact[name].numpy()
            of_both = error(found[case.name][name], expected), error(tensor.numpy(), expected)
            worst[name] = np.maximum(worst.get(name, [0, 0]), of_both)
            assert found[case.name][name].dtype == np.float32
    for name, (heed, pytorch) in worst.items():
        assert heed <= 2 * pytorch, name
