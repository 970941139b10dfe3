"""`heed lesson NAME --json` against the same demonstrations in PyTorch and NumPy."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

from lessons import LESSONS

# The quantities that a lesson prints, and their decimals.
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


# Of the two that train models with recurrence, one.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if name == "seq2seq" else name for name in LESSONS]
)
def test_lesson_agrees(name: str, recorded: Callable[[str], dict]) -> None:
    found = recorded(name)
    for quantity, numbers in LESSONS[name]().items():
        expected = as_array(numbers)
        # heed drops or adds leading dimensions of 1.
        actual = as_array(found[quantity]).reshape(expected.shape)
        tolerance = 1e-12 if expected.dtype == np.float64 else 3e-6
        np.testing.assert_allclose(actual, expected, tolerance, tolerance, err_msg=quantity)


@pytest.mark.parametrize(("name", "quantity"), PRINTED)
def test_python_prints_the_same_digits(name: str, quantity: str) -> None:
    decimals, printed = PRINTED[name, quantity]
    actual = as_array(LESSONS[name]()[quantity])
    np.testing.assert_array_equal(
        actual.reshape(np.shape(printed)).astype(np.float64).round(decimals), printed
    )


def printed_matrices(text: str) -> dict[str, np.ndarray]:
    """What a lesson prints, for a reader who has nothing else: each matrix by the first word of the line above it."""
    matrices: dict[str, list[list[float]]] = {}
    title = ""
    for line in text.splitlines():
        row = re.fullmatch(r"  .*?\[(.*)\]", line)
        if row:
            matrices.setdefault(title, []).append([float(number) for number in row[1].split()])
        elif line.strip():
            title = line
    return {title.split(",")[0].split(":")[0]: np.array(rows) for title, rows in matrices.items()}


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


def test_from_scratch_can_be_checked_on_paper(heed: Callable[..., str]) -> None:
    found = printed_matrices(heed("lesson", "from-scratch"))
    x, query, key, value = (found[name] for name in ("x", "Q = x Wq", "K = x Wk", "V = x Wv"))
    for name, projected in (("Wq", query), ("Wk", key), ("Wv", value)):
        np.testing.assert_allclose(x @ found[name], projected, atol=3e-4)
    scores = query @ key.T / np.sqrt(2)
    np.testing.assert_allclose(scores, found["Q Kᵀ / √2"], atol=0.006)
    np.testing.assert_allclose(softmax(scores), found["softmax of each row"], atol=0.001)
    np.testing.assert_allclose(softmax(scores) @ value, found["weights V"], atol=3e-4)


def test_running_example_can_be_checked_on_paper(heed: Callable[..., str]) -> None:
    found = printed_matrices(heed("lesson", "running-example"))
    x, query, key, value = (found[name] for name in ("x", "Q = x Wqᵀ", "K = x Wkᵀ", "V = x Wvᵀ"))
    for name, projected in (("Wq", query), ("Wk", key), ("Wv", value)):
        np.testing.assert_allclose(x @ found[name].T, projected, atol=3e-4)
    scores = query @ key.T / 2
    np.testing.assert_allclose(scores, found["Q Kᵀ / √4"], atol=3e-4)
    weights = softmax(np.where(np.tri(4, dtype=bool), scores, -np.inf))
    np.testing.assert_allclose(weights, found["softmax"], atol=2e-4)
    np.testing.assert_allclose(weights @ value, found["weights V"], atol=3e-4)
    np.testing.assert_allclose(found["weights V"] @ found["Wo"].T, found["weights V Woᵀ"], atol=3e-4)


def test_every_lesson_is_listed(heed: Callable[..., str]) -> None:
    listed = {lesson["name"] for lesson in json.loads(heed("lesson", "--list", "--json"))}
    assert set(LESSONS) <= listed
