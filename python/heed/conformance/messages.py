"""ONNX's files, read without a library: the few messages of protobuf that a test case is made of.

Field numbers are those of onnx.proto3 of the ONNX standard.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_FLOAT16, _BFLOAT16 = 10, 16
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


def _fields(data: bytes) -> dict[int, list]:
    """What a message holds: numbers as int, everything longer as bytes, by field number."""
    found: dict[int, list] = {}
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
        found.setdefault(key >> 3, []).append(value)
    return found


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(fields: dict[int, list], number: int) -> str:
    return fields[number][-1].decode() if number in fields else ""


def _texts(fields: dict[int, list], number: int) -> list[str]:
    return [text.decode() for text in fields.get(number, [])]


def _integers(values: list) -> list[int]:
    """A repeated field of integers, packed or not."""
    result = []
    for value in values:
        if isinstance(value, int):
            result.append(_signed(value))
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            result.append(_signed(number))
    return result


def _numbers(fields: dict[int, list], type_name: str, number: int) -> np.ndarray:
    """The elements of a tensor, in order; those of 16-bit floats as their bits."""
    stored = "uint16" if type_name in ("float16", "bfloat16") else type_name
    little_endian = np.dtype(stored).newbyteorder("<")
    if 9 in fields:
        return np.frombuffer(fields[9][-1], little_endian).astype(stored)
    if type_name in ("float32", "float64"):
        return np.frombuffer(b"".join(fields.get(number, [])), little_endian).astype(stored)
    return np.array(_integers(fields.get(number, []))).astype(stored)


def parse_tensor(data: bytes) -> Tensor:
    fields = _fields(data)
    kind = fields.get(2, [0])[-1]
    if kind not in _TYPES:
        raise FormatError(f"a tensor has data type {kind}, which is not known here")
    type_name, number = _TYPES[kind]
    numbers = _numbers(fields, type_name, number)
    if type_name == "float16":
        numbers = numbers.view(np.float16)
    elif type_name == "bfloat16":
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    shape = _integers(fields.get(1, []))
    if numbers.size != int(np.prod(shape)):
        raise FormatError(f"a tensor of shape {shape} has {numbers.size} elements")
    return Tensor(_text(fields, 8), numbers.reshape(shape), type_name)


def _parse_attribute(data: bytes) -> tuple[str, Any]:
    fields = _fields(data)
    readers = {
        2: lambda values: struct.unpack("<f", values[-1])[0],
        3: lambda values: _signed(values[-1]),
        4: lambda values: values[-1].decode(),
        5: lambda values: parse_tensor(values[-1]).array,
        6: lambda values: parse_graph(values[-1]),
        7: lambda values: list(np.frombuffer(b"".join(values), "<f4").astype(float)),
        8: _integers,
    }
    # AttributeProto.AttributeType, and the field that holds such a value.
    kind = fields.get(20, [0])[-1]
    number = {1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8}.get(kind)
    if number is None:
        raise FormatError(f"attribute {_text(fields, 1)} has type {kind}, which is not known here")
    if number not in fields:  # protobuf leaves out what is 0 or empty
        return _text(fields, 1), {2: 0.0, 3: 0, 4: ""}.get(number, [])
    return _text(fields, 1), readers[number](fields[number])


def _parse_node(data: bytes) -> Node:
    fields = _fields(data)
    attributes = dict(_parse_attribute(attribute) for attribute in fields.get(5, []))
    return Node(_text(fields, 7), _text(fields, 4), _texts(fields, 1), _texts(fields, 2), attributes)


def parse_graph(data: bytes) -> Graph:
    fields = _fields(data)
    tensors = [parse_tensor(tensor) for tensor in fields.get(5, [])]
    return Graph(
        nodes=[_parse_node(node) for node in fields.get(1, [])],
        inputs=[_text(_fields(value), 1) for value in fields.get(11, [])],
        outputs=[_text(_fields(value), 1) for value in fields.get(12, [])],
        initializers={tensor.name: tensor.array for tensor in tensors},
    )


def parse_model(data: bytes) -> Graph:
    """The graph of a model."""
    fields = _fields(data)
    if 7 not in fields:
        raise FormatError("the model has no graph")
    return parse_graph(fields[7][-1])
