#!/usr/bin/env python3
"""Writes tests/data/npy: small arrays as real NumPy writes them, for tests/io.

Element i of an array, counted in row-major order, is i % 3 == 0 (bool), i (unsigned), i - 3 (signed)
or (i - 3) / 4 (floating point); an array with "extremes" in its name holds its type's limits.
"""

import io
import pathlib
import zipfile

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "npy"
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


def counting(dtype, shape):
    dtype = np.dtype(dtype)
    i = np.arange(int(np.prod(shape)))
    values = {"b": i % 3 == 0, "u": i, "i": i - 3, "f": (i - 3) / 4}[dtype.kind]
    return values.astype(dtype).reshape(shape)


def save(name, array, version=None):
    with open(FOLDER / f"{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)


class Unseekable(io.RawIOBase):
    """A file like a pipe: zipfile then writes data descriptors."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TYPES:
        little = np.dtype(name).newbyteorder("<")
        big = np.dtype(name).newbyteorder(">")
        save(f"{name}_little", counting(little, (2, 3, 4)))
        save(f"{name}_big_fortran", np.asfortranarray(counting(big, (2, 3, 4))))
    for name in ("int64", "uint64"):
        limits = np.iinfo(name)
        save(f"{name}_extremes", np.array([limits.min, limits.max], dtype=name))
    limits = np.finfo("float16")
    extremes = [limits.min, limits.smallest_subnormal, np.inf, np.nan]
    save("float16_extremes", np.array(extremes, dtype="float16"))
    save("version2", counting("<f4", (2, 3)), version=(2, 0))
    save("version3", counting("<f4", (2, 3)), version=(3, 0))
    save("scalar", counting("<f8", ()))
    save("empty", counting("<f4", (0,)))
    save("empty_fortran", np.asfortranarray(counting("<f4", (2, 0, 3))))
    save("rank6", counting("<i2", (1, 2, 1, 3, 1, 2)))
    save("rank7", counting("<i2", (1, 1, 1, 1, 1, 1, 1)))

    with open(FOLDER / "object.npy", "wb") as file:
        np.save(file, np.array([None, {}], dtype=object), allow_pickle=True)
    save("structured", np.zeros(2, dtype=[("x", "<f4"), ("y", "<i4")]))
    save("complex", np.zeros(2, dtype="<c8"))
    save("text", np.array(["heed", "me"]))

    arrays = {
        "query": counting("<f4", (2, 3)),
        "mask": counting("bool", (3, 3)),
        "layers/0/größe": counting("<i8", (4,)),
        "scale": counting("<f8", ()),
    }
    np.savez(FOLDER / "stored.npz", **arrays)
    np.savez_compressed(FOLDER / "deflated.npz", **arrays)
    with open(FOLDER / "streamed.npz", "wb") as file:
        np.savez_compressed(Unseekable(file), **arrays)
    np.savez(FOLDER / "none.npz")
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(1 << 20, dtype=np.uint8))
    with zipfile.ZipFile(FOLDER / "zeros.npz", "w") as file:
        member = zipfile.ZipInfo("zeros.npy")  # contains no time, unlike a name alone
        file.writestr(member, zeros.getvalue(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
