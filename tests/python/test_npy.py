"""Array files between heed and NumPy, in every form that NumPy writes.

With a single key its weight is 1 and attention returns the values as they are: what comes back was
read and written without a change.
"""

import pathlib
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

import cases
from cases import Case, Outputs
from dump_npy_fixtures import Unseekable

Probe = Callable[..., Outputs]
EXTREMES = np.finfo(np.float64)
SHAPE = (2, 3, 1, 4)


def values() -> np.ndarray:
    """Everything finite that a double can be."""
    array = np.random.default_rng(1).standard_normal(SHAPE)
    array.flat[:4] = EXTREMES.max, EXTREMES.min, EXTREMES.tiny, EXTREMES.smallest_subnormal
    return array


FORMS = {
    "plain": values(),
    "fortran": np.asfortranarray(values()),
    "big_endian": values().astype(">f8"),
    "big_endian_fortran": np.asfortranarray(values().astype(">f8")),
    "transposed": values().transpose(1, 0, 2, 3).copy().transpose(1, 0, 2, 3),
    "reversed": values()[..., ::-1],
    "with_gaps": np.repeat(values(), 2, axis=-1)[..., ::2],
    "broadcast": np.broadcast_to(values()[:1], SHAPE),
}


def save_version(version: tuple[int, int]) -> Callable[..., None]:
    """Like numpy.savez, with .npy headers of the given version and zip64 members."""

    def save(path: pathlib.Path, **arrays: np.ndarray) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, version=version)

    return save


def save_streamed(path: pathlib.Path, **arrays: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez_compressed(Unseekable(file), **arrays)


SAVES = {
    "stored": np.savez,
    "deflated": np.savez_compressed,
    "version1": save_version((1, 0)),
    "version2": save_version((2, 0)),
    "version3": save_version((3, 0)),
    "streamed": save_streamed,
}


def single_key_case(name: str, value: np.ndarray) -> Case:
    case = cases.make(name, (2, 3, 1, 1, 4))
    case.arrays["value"] = value
    return case


@pytest.mark.parametrize("save", SAVES.values(), ids=SAVES.keys())
def test_heed_reads_what_numpy_writes(probe: Probe, save: Callable[..., None]) -> None:
    found = probe([single_key_case(name, value) for name, value in FORMS.items()], save)
    for name, value in FORMS.items():
        np.testing.assert_array_equal(found[name]["out"], value, name)


def test_masks_and_ids_keep_their_types(probe: Probe) -> None:
    """bool, and integers of the other byte order; in float32 the result is float32."""
    allow = np.asfortranarray(np.arange(6).reshape(2, 3) % 2 == 0)
    ids = np.array([[5, 0, 5]], ">i8")
    case = cases.make("types", (1, 1, 2, 3, 4), options={"padding_id": 0})
    case.arrays |= {"mask_allow": allow, "token_ids": ids}
    found = probe([cases.in_float32(case)])["types-float32"]
    np.testing.assert_array_equal(found["weights"][0, 0] != 0, allow & (ids != 0))
    assert found["out"].dtype == np.float32


def test_empty_arrays_keep_their_shape(probe: Probe) -> None:
    found = probe([cases.make("empty", (2, 0, 3, 4, 5))])["empty"]
    assert found["out"].shape == (2, 0, 3, 5)
    assert found["weights"].shape == (2, 0, 3, 4)
