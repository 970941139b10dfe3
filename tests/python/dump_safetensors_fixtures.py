"""Writes tests/data/safetensors: small files of the library, from which its fuzz target starts.

Usage: dump_safetensors_fixtures.py FOLDER
"""

import pathlib
import sys

import safetensors.torch
import torch

DTYPES = [torch.bool, torch.int8, torch.uint16, torch.float16, torch.bfloat16, torch.float64]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    counting = torch.arange(6).reshape(2, 3)
    typed = {str(dtype): (counting % 2).to(dtype) for dtype in DTYPES}
    safetensors.torch.save_file(typed, folder / "types.safetensors", metadata={"format": "pt"})
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2).state_dict()
    safetensors.torch.save_file(layer, folder / "linear.safetensors")
    # Files that the library reads but never writes: an unaligned element, spaces at the end.
    header = (
        b'{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        b'"a":{"dtype":"I32","shape":[],"data_offsets":[1,5]}}  '
    )
    data = bytes([7, 1, 0, 0, 0])
    misaligned = len(header).to_bytes(8, "little") + header + data
    (folder / "misaligned.safetensors").write_bytes(misaligned)
    safetensors.torch.load_file(folder / "misaligned.safetensors")


if __name__ == "__main__":
    main()
