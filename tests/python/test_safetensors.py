"""Files between heed and the safetensors library: what comes back was read and written by heed."""

import pathlib
import subprocess

import pytest
import safetensors
import safetensors.torch
import torch

DTYPES = [
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]


def run_probe(
    build: pathlib.Path, source: pathlib.Path, target: pathlib.Path
) -> subprocess.CompletedProcess[str]:
    program = build / "tests/python/probe/safetensors_probe"
    return subprocess.run([program, source, target], capture_output=True, text=True, timeout=300)


def test_both_libraries_read_each_other(build: pathlib.Path, tmp_path: pathlib.Path) -> None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2)
    tensors = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    for dtype in DTYPES:
        tensors[f"größe.{dtype}"] = (torch.randn(3, 5) * 4).abs().to(dtype)
    tensors |= {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), '"\\\n': torch.ones(1)}
    safetensors.torch.save_file(tensors, tmp_path / "in", metadata={"k": "größe", "format": "pt"})
    result = run_probe(build, tmp_path / "in", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    found = safetensors.torch.load_file(tmp_path / "out")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert torch.equal(found[name], tensor), name
    with safetensors.safe_open(tmp_path / "out", "pt") as file:
        assert file.metadata() == {"k": "größe", "format": "pt"}


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}',
        '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}',
        '{"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}}',
        '{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}',
        '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',
        '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"k":1}}',
    ],
)
def test_both_libraries_refuse(build: pathlib.Path, tmp_path: pathlib.Path, header: str) -> None:
    bytes_of_file = len(header).to_bytes(8, "little") + header.encode() + b"\1"
    (tmp_path / "in").write_bytes(bytes_of_file)
    with pytest.raises(safetensors.SafetensorError):
        safetensors.torch.load_file(tmp_path / "in")
    result = run_probe(build, tmp_path / "in", tmp_path / "out")
    assert result.returncode == 1
    assert "at byte" in result.stderr
