"""`heed lesson NAME --json` against the same demonstrations in PyTorch and NumPy."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch

from lessons import LESSONS

# What the tutorials print, and with how many decimals, where they fix a seed or need none.
PRINTED = {
    ("softmax", "large_stable"): (8, [0.09003057, 0.24472847, 0.66524096]),
    ("embeddings", "embeddings"): (
        2,
        [[0.5, -0.14, 0.65, 1.52], [-0.23, -0.23, 1.58, 0.77], [-0.47, 0.54, -0.46, -0.47]],
    ),
    ("from-scratch", "weights"): (
        3,
        [[0.278, 0.324, 0.397], [0.348, 0.445, 0.206], [0.365, 0.381, 0.255]],
    ),
    ("causal", "weights"): (
        3,
        [
            [1, 0, 0, 0],
            [0.359, 0.641, 0, 0],
            [0.348, 0.345, 0.307, 0],
            [0.731, 0.193, 0.057, 0.019],
        ],
    ),
    ("by-hand", "weights"): (4, [[1, 0, 0], [0.3302, 0.6698, 0], [0.2483, 0.2483, 0.5035]]),
    ("running-example", "weights"): (
        4,
        [
            [1, 0, 0, 0],
            [0.2526, 0.7474, 0, 0],
            [0.3018, 0.2972, 0.4011, 0],
            [0.2149, 0.3615, 0.1914, 0.2321],
        ],
    ),
    ("running-example", "parameters"): (0, 80),
    ("heads", "num_parameters"): (0, 16640),
}


def as_array(numbers: object) -> np.ndarray:
    """JSON's or PyTorch's numbers; "nan" and "-inf" are heed's names in JSON for these."""
    if isinstance(numbers, torch.Tensor):
        return numbers.detach().numpy()
    return np.array(numbers, dtype=np.float64)


@pytest.fixture(scope="session")
def recorded(heed: Callable[..., str]) -> Callable[[str], dict]:
    return lambda name: json.loads(heed("lesson", name, "--json"))


@pytest.mark.parametrize("name", LESSONS)
def test_lesson_agrees(name: str, recorded: Callable[[str], dict]) -> None:
    found = recorded(name)
    for quantity, numbers in LESSONS[name]().items():
        expected = as_array(numbers)
        # heed leaves out dimensions of one in front, or adds them.
        actual = as_array(found[quantity]).reshape(expected.shape)
        tolerance = 1e-12 if expected.dtype == np.float64 else 3e-6
        np.testing.assert_allclose(actual, expected, tolerance, tolerance, err_msg=quantity)


@pytest.mark.parametrize(("name", "quantity"), PRINTED)
def test_python_prints_what_the_tutorial_prints(name: str, quantity: str) -> None:
    decimals, printed = PRINTED[name, quantity]
    actual = as_array(LESSONS[name]()[quantity])
    np.testing.assert_array_equal(
        actual.reshape(np.shape(printed)).astype(np.float64).round(decimals), printed
    )


def test_every_lesson_is_listed(heed: Callable[..., str]) -> None:
    listed = {lesson["name"] for lesson in json.loads(heed("lesson", "--list", "--json"))}
    assert set(LESSONS) <= listed
