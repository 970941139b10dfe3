"""ONNX's files, read without a library: the few messages of protobuf that a test case is made of.

Field numbers are those of onnx.proto3 of the ONNX standard.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_FLOAT16, _BFLOAT16 = 10, 16
_RAW_DATA = 9  # TensorProto's field
_MAX_DEPTH = 16  # of graphs in attributes of nodes of graphs
_MAX_RANK = 32  # of older NumPy's arrays
# TensorProto.DataType, NumPy's type, and the field that holds the numbers where raw_data does not.
_TYPES = {
    1: ("float32", 4),
    2: ("uint8", 5),
    3: ("int8", 5),
    4: ("uint16", 5),
    5: ("int16", 5),
    6: ("int32", 5),
    7: ("int64", 7),
    9: ("bool", 5),
    _FLOAT16: ("float16", 5),
    11: ("float64", 10),
    12: ("uint32", 11),
    13: ("uint64", 11),
    _BFLOAT16: ("bfloat16", 5),
}


class FormatError(ValueError):
    """A file that is not what its name says."""


@dataclass
class Tensor:
    """Numbers with a name. bfloat16, which NumPy lacks, is held as float32: type_name says what it was."""

    name: str
    array: np.ndarray
    type_name: str


@dataclass
class Graph:
    nodes: list[Node] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    initializers: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Node:
    domain: str
    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise FormatError(f"byte {at}: a number does not end")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


class _Fields:
    """What a message holds, by field number: numbers as int, everything longer as bytes."""

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        at = 0
        while at < len(data):
            key, at = _varint(data, at)
            wire = key & 7
            if wire == 0:
                value, at = _varint(data, at)
            elif wire in (1, 2, 5):
                size = {1: 8, 5: 4}.get(wire)
                if size is None:
                    size, at = _varint(data, at)
                if at + size > len(data):
                    raise FormatError(f"byte {at}: {size} bytes were announced, {len(data) - at} are left")
                value, at = data[at : at + size], at + size
            else:
                raise FormatError(f"byte {at}: wire type {wire} is none of protobuf's")
            self._found.setdefault(key >> 3, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._found

    def number(self, number: int, default: int = 0) -> int:
        """A field that occurs once: of several the last counts, as protobuf has it."""
        value = self._found.get(number, [default])[-1]
        if not isinstance(value, int):
            raise FormatError(f"field {number} holds {len(value)} bytes, expected a number")
        return value

    def chunks(self, number: int) -> list[bytes]:
        """A repeated field of messages, texts or bytes."""
        values = self._found.get(number, [])
        for value in values:
            if isinstance(value, int):
                raise FormatError(f"field {number} holds the number {value}, expected bytes")
        return values

    def texts(self, number: int) -> list[str]:
        try:
            return [chunk.decode() for chunk in self.chunks(number)]
        except UnicodeDecodeError as error:
            raise FormatError(f"field {number} is not UTF-8: {error.reason}") from None

    def text(self, number: int) -> str:
        return (self.texts(number) or [""])[-1]

    def integers(self, number: int) -> list[int]:
        """A repeated field of integers, packed or not."""
        result = []
        for value in self._found.get(number, []):
            if isinstance(value, int):
                result.append(_signed(value))
                continue
            at = 0
            while at < len(value):
                integer, at = _varint(value, at)
                result.append(_signed(integer))
        return result

    def floats(self, number: int, type_name: str) -> np.ndarray:
        """A repeated field of numbers in little-endian order, packed or not."""
        return _from_bytes(b"".join(self.chunks(number)), type_name)


def _from_bytes(data: bytes, type_name: str) -> np.ndarray:
    little_endian = np.dtype(type_name).newbyteorder("<")
    if len(data) % little_endian.itemsize != 0:
        raise FormatError(f"{len(data)} bytes are no whole number of {type_name}, of {little_endian.itemsize} each")
    return np.frombuffer(data, little_endian).astype(type_name)


def _signed(value: int) -> int:
    value &= (1 << 64) - 1  # the bits of a number that protobuf keeps
    return value - (1 << 64) if value >= 1 << 63 else value


def _numbers(fields: _Fields, type_name: str, number: int) -> np.ndarray:
    """The elements of a tensor, in order; those of 16-bit floats as their bits."""
    stored = "uint16" if type_name in ("float16", "bfloat16") else type_name
    if _RAW_DATA in fields:
        return _from_bytes(fields.chunks(_RAW_DATA)[-1], stored)
    if type_name in ("float32", "float64"):
        return fields.floats(number, stored)
    return np.array(fields.integers(number), np.int64).astype(stored)


def parse_tensor(data: bytes) -> Tensor:
    fields = _Fields(data)
    kind = fields.number(2)
    if kind not in _TYPES:
        raise FormatError(f"a tensor has data type {kind}, which is not known here")
    type_name, number = _TYPES[kind]
    numbers = _numbers(fields, type_name, number)
    if type_name == "float16":
        numbers = numbers.view(np.float16)
    elif type_name == "bfloat16":
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    shape = fields.integers(1)
    # In Python's integers: NumPy's would wrap.
    if min(shape, default=0) < 0 or len(shape) > _MAX_RANK or numbers.size != math.prod(shape):
        raise FormatError(f"a tensor of shape {shape} has {numbers.size} elements")
    return Tensor(fields.text(8), numbers.reshape(shape), type_name)


def _attribute_value(fields: _Fields, number: int, depth: int) -> Any:
    if number == 2:
        return struct.unpack("<f", _last(fields, 2, size=4))[0]
    if number == 3:
        return _signed(fields.number(3))
    if number == 4:
        return fields.text(4)
    if number == 5:
        return parse_tensor(_last(fields, 5)).array
    if number == 6:
        return parse_graph(_last(fields, 6), depth + 1)
    if number == 7:
        return list(fields.floats(7, "float32").astype(float))
    return fields.integers(8)


def _last(fields: _Fields, number: int, size: int | None = None) -> bytes:
    chunk = fields.chunks(number)[-1]
    if size is not None and len(chunk) != size:
        raise FormatError(f"field {number} holds {len(chunk)} bytes, expected {size}")
    return chunk


def _parse_attribute(data: bytes, depth: int) -> tuple[str, Any]:
    fields = _Fields(data)
    name = fields.text(1)
    # AttributeProto.AttributeType, and the field that holds such a value.
    kind = fields.number(20)
    number = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8}.get(kind)
    if number is None:
        raise FormatError(f"attribute {name} has type {kind}, which is not known here")
    if number not in fields:  # protobuf leaves out what is 0 or empty
        return name, {2: 0.0, 3: 0, 4: ""}.get(number, [])
    return name, _attribute_value(fields, number, depth)


def _parse_node(data: bytes, depth: int) -> Node:
    fields = _Fields(data)
    attributes = dict(_parse_attribute(attribute, depth) for attribute in fields.chunks(5))
    return Node(fields.text(7), fields.text(4), fields.texts(1), fields.texts(2), attributes)


def parse_graph(data: bytes, depth: int = 0) -> Graph:
    """A graph; `depth` says in how many others it lies."""
    if depth > _MAX_DEPTH:
        raise FormatError(f"graphs lie in each other more than {_MAX_DEPTH} deep")
    fields = _Fields(data)
    tensors = [parse_tensor(tensor) for tensor in fields.chunks(5)]
    return Graph(
        nodes=[_parse_node(node, depth) for node in fields.chunks(1)],
        inputs=[_Fields(value).text(1) for value in fields.chunks(11)],
        outputs=[_Fields(value).text(1) for value in fields.chunks(12)],
        initializers={tensor.name: tensor.array for tensor in tensors},
    )


def parse_model(data: bytes) -> Graph:
    """The graph of a model."""
    fields = _Fields(data)
    if 7 not in fields:
        raise FormatError("the model has no graph")
    return parse_graph(fields.chunks(7)[-1])
