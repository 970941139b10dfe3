"""`heed run` on .npy files against PyTorch."""

import json
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

Run = Callable[..., dict[str, np.ndarray]]
Q_LEN, KV_LEN = 5, 7
# The allowed difference, relative and absolute: a few roundings of the output's type.
TOLERANCE = {"float16": 1e-3, "float32": 2e-6, "float64": 1e-12}
OUTPUTS = ("out", "weights", "lse")


@pytest.fixture
def run(heed: Callable[..., str], tmp_path: pathlib.Path) -> Run:
    """Saves the arrays, runs the command on them, and loads what it wrote."""

    def run_on(arrays: dict[str, np.ndarray], *options: object) -> dict[str, np.ndarray]:
        files: list[object] = []
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
            files += [f"--{name}", tmp_path / f"{name}.npy"]
        for name in OUTPUTS:
            files += [f"--{name}", tmp_path / f"{name}.npy"]
        printed = json.loads(heed("run", *files, *options, "--json"))
        found = {name: np.load(tmp_path / f"{name}.npy") for name in OUTPUTS}
        for name, array in found.items():
            assert printed[name]["shape"] == list(array.shape)
            assert printed[name]["dtype"] == array.dtype.name
        return found

    return run_on


def draw(
    dtype: str = "float64", leading: tuple[int, ...] = (2, 4), kv_heads: int | None = None
) -> dict[str, np.ndarray]:
    """Query, key and value [*leading, length, 8]."""
    random = np.random.default_rng(0)
    kv_leading = leading if kv_heads is None else (*leading[:-1], kv_heads)
    shapes = {
        "query": (*leading, Q_LEN, 8),
        "key": (*kv_leading, KV_LEN, 8),
        "value": (*kv_leading, KV_LEN, 6),
    }
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def in_torch(arrays: dict[str, np.ndarray], mask: object = None, **options) -> np.ndarray:
    """PyTorch's operator in double on the same numbers."""
    names = ("query", "key", "value")
    operands = [torch.from_numpy(np.asarray(arrays[n], np.float64)) for n in names]
    while operands[0].dim() < 4:
        operands = [operand[None] for operand in operands]
    enable_gqa = operands[0].shape[1] != operands[1].shape[1]
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(
            *operands, attn_mask=mask, enable_gqa=enable_gqa, **options
        )
    return out.numpy().reshape(*arrays["query"].shape[:-1], -1)


def assert_close(found: np.ndarray, expected: np.ndarray, dtype: str = "float64") -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, TOLERANCE[dtype], TOLERANCE[dtype])


@pytest.mark.parametrize("leading", [(), (4,), (2, 4)], ids=["rank2", "rank3", "rank4"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_ranks_and_types(run: Run, dtype: str, leading: tuple[int, ...]) -> None:
    arrays = draw(dtype, leading)
    found = run(arrays)
    assert found["out"].dtype == dtype
    assert_close(found["out"], in_torch(arrays), dtype)
    query, key = (arrays[name].astype(np.float64) for name in ("query", "key"))
    scores = torch.from_numpy(query @ key.swapaxes(-1, -2) / np.sqrt(8))
    computed_in = "float64" if dtype == "float64" else "float32"
    assert_close(found["lse"], scores.logsumexp(-1).numpy(), computed_in)
    assert_close(found["weights"], scores.softmax(-1).numpy(), computed_in)


def test_masks_of_positions(run: Run) -> None:
    arrays = draw()
    at, key = torch.arange(Q_LEN)[:, None], torch.arange(KV_LEN)
    found = run(arrays, "--mask", "causal(top_left)")["out"]
    assert_close(found, in_torch(arrays, is_causal=True))
    found = run(arrays, "--mask", "causal(bottom_right)")["out"]
    assert_close(found, in_torch(arrays, causal_lower_right(Q_LEN, KV_LEN)))
    found = run(arrays, "--mask", "causal(bottom_right) & sliding_window(2, 0, bottom_right)")["out"]
    at = at + KV_LEN - Q_LEN
    assert_close(found, in_torch(arrays, (key <= at) & (key >= at - 2)))
    found = run(arrays, "--mask", "causal", "--query-offset", KV_LEN - Q_LEN)["out"]
    assert_close(found, in_torch(arrays, key <= at))


@pytest.mark.parametrize("shape", [(KV_LEN,), (Q_LEN, 1), (Q_LEN, KV_LEN), (2, 1, 1, KV_LEN)])
def test_masks_from_files(run: Run, shape: tuple[int, ...]) -> None:
    arrays = draw()
    random = np.random.default_rng(1)
    allow = random.random(shape) < 0.7
    expected = in_torch(arrays, torch.from_numpy(allow))
    for means, mask in (("allow", allow), ("block", ~allow)):
        assert_close(run(arrays | {"mask": mask}, "--mask-means", means)["out"], expected)
    added = np.where(allow, random.standard_normal(shape), -np.inf)
    for dtype in ("float32", "float64"):
        mask = added.astype(dtype)
        expected = in_torch(arrays, torch.from_numpy(mask.astype(np.float64)))
        assert_close(run(arrays | {"mask": mask}, "--mask-means", "additive")["out"], expected)


def test_the_smallest_number_is_not_minus_infinity(run: Run) -> None:
    arrays = draw()
    added = np.full((Q_LEN, KV_LEN), np.finfo(np.float64).min)
    expected = in_torch(arrays, torch.from_numpy(added))
    assert_close(run(arrays | {"mask": added}, "--mask-means", "additive")["out"], expected)


def test_numbers_and_grouped_heads(run: Run) -> None:
    arrays = draw(kv_heads=2)
    assert_close(run(arrays, "--scale", 0.3)["out"], in_torch(arrays, scale=0.3))
    key, value = (np.repeat(arrays[name], 2, axis=1) for name in ("key", "value"))
    scores = torch.from_numpy(arrays["query"] @ key.swapaxes(-1, -2) / np.sqrt(8))
    weights = (1.5 * torch.tanh(scores / 1.5)).softmax(-1)
    found = run(arrays, "--softcap", 1.5)
    assert_close(found["weights"], weights.numpy())
    assert_close(found["out"], (weights @ torch.from_numpy(value)).numpy())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_odd_forms(run: Run, dtype: str) -> None:
    """Fortran order, the other byte order and views with gaps say the same numbers."""
    arrays = draw(dtype)
    plain = run(arrays)
    odd = {
        "query": np.asfortranarray(arrays["query"].astype(np.dtype(dtype).newbyteorder(">"))),
        "key": np.repeat(arrays["key"], 2, axis=2)[:, :, ::2],
        "value": arrays["value"].astype(np.dtype(dtype).newbyteorder(">")),
    }
    for name, array in run(odd).items():
        np.testing.assert_array_equal(array, plain[name])


def test_files_are_what_numpy_writes(run: Run, tmp_path: pathlib.Path) -> None:
    for array in draw(), draw("float16", ()):
        for name, found in run(array).items():
            np.save(tmp_path / "copy.npy", found)
            written = (tmp_path / f"{name}.npy").read_bytes()
            assert written == (tmp_path / "copy.npy").read_bytes()
