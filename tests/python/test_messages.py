"""ONNX's files with random damage: read, or refused with FormatError; no other exception, whatever the bytes are."""

import pathlib
import random

import pytest

from heed.conformance import messages

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "onnx"
MODELS = sorted(DATA.rglob("*.onnx"))
TENSORS = sorted(DATA.rglob("*.pb"))
MUTATIONS = 4000

# Edge cases for a reader: unterminated numbers, lengths beyond the end, fields of another type, invalid UTF-8.
PIECES = [
    b"\0", b"\x7f", b"\x80", b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x0a\x7f", b"\x10\x01", b"\x12\x00", b"\x4a\x03abc", b"\x42\x02\xc3\x28", b"\x3a\x02\x0a\x00", b"\xa0\x01\x05",
]  # fmt: skip


def mutated(draw: random.Random, inputs: list[bytes]) -> bytes:
    data = bytearray(draw.choice(inputs))
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(data))
        kind = draw.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at:at] = draw.choice(PIECES)
        elif kind == 2:
            piece = draw.choice(PIECES)
            data[at : at + len(piece)] = piece
        elif kind == 3:
            del data[at : at + draw.randint(0, 32)]
        else:
            other = draw.choice(inputs)
            data[at:] = other[draw.randint(0, len(other)) :]
    return bytes(data)


@pytest.mark.parametrize(("files", "parse"), [(MODELS, messages.parse_model), (TENSORS, messages.parse_tensor)], ids=["models", "tensors"])
def test_damage_is_refused(files: list[pathlib.Path], parse) -> None:
    inputs = [file.read_bytes() for file in files]
    for data in inputs:
        parse(data)
    refused = 0
    for number in range(MUTATIONS):
        data = mutated(random.Random(number), inputs)
        try:
            parse(data)
        except messages.FormatError:
            refused += 1
        except Exception as error:
            pytest.fail(f"mutation {number}, {data!r}: {type(error).__name__}: {error}")
    assert 0 < refused < MUTATIONS


def test_graphs_in_graphs_are_refused() -> None:
    graph = b""
    for _ in range(2000):
        attribute = b"\xa0\x01\x05\x32" + length(graph) + graph
        node = b"\x2a" + length(attribute) + attribute
        graph = b"\x0a" + length(node) + node
    with pytest.raises(messages.FormatError, match="more than 16 deep"):
        messages.parse_model(b"\x3a" + length(graph) + graph)


def length(data: bytes) -> bytes:
    """The length of `data` as a varint."""
    value, result = len(data), b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])
