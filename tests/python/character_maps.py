"""The character maps of SentencePiece ("precompiled charsmap"), written by the rules that heed and two other libraries read."""

import struct
import unicodedata

VALUE = 1 << 31
HAS_VALUE = 1 << 8


class Units:
    """A double array: node i with offset o has its child of byte c at i ^ o ^ c, and its value at i ^ o."""

    def __init__(self) -> None:
        self.units = {0: 0}
        self.bases: set[int] = set()
        self.first = 0

    def base_for(self, labels: list[int]) -> int:
        base = self.first
        while base in self.bases or any((base ^ label) in self.units for label in labels):
            base += 1
        if len(labels) == 1:
            self.first = max(self.first, base - 512)
        self.bases.add(base)
        return base

    def add(self, index: int, keys: dict[bytes, int]) -> None:
        branches: dict[int, dict[bytes, int]] = {}
        for key, value in keys.items():
            if key:
                branches.setdefault(key[0], {})[key[1:]] = value
        value = keys.get(b"")
        labels = [*branches] + ([0] if value is not None else [])
        base = self.base_for(labels)
        self.units[index] |= (index ^ base) << 10
        if value is not None:
            self.units[index] |= HAS_VALUE
            self.units[base] = VALUE | value
        for label in branches:
            self.units[base ^ label] = label
        for label, rest in branches.items():
            self.add(base ^ label, rest)


def character_map(rules: dict[str, str]) -> bytes:
    texts = b""
    values = {}
    for key, replacement in rules.items():
        values[key.encode()] = len(texts)
        texts += replacement.encode() + b"\0"
    made = Units()
    made.add(0, values)
    size = (max(made.units) // 256 + 1) * 256
    units = struct.pack(f"<{size}I", *(made.units.get(i, 0) for i in range(size)))
    return struct.pack("<I", len(units)) + units + texts


def compatible_rules() -> dict[str, str]:
    """Some of NFKC, as of the models made with it: characters, pairs that compose, and white space."""
    rules = {}
    for value in [*range(0xA0, 0x600), *range(0x1E00, 0x2200), *range(0x2460, 0x2500), *range(0x3000, 0x3400, 3), *range(0xFB00, 0xFB07), *range(0xFF01, 0xFF5F)]:
        character = chr(value)
        composed = unicodedata.normalize("NFKC", character)
        if composed != character:
            rules[character] = composed
        parts = unicodedata.normalize("NFD", character)
        if 1 < len(parts) and unicodedata.normalize("NFC", parts) == character:
            rules[parts] = character
    rules |= dict.fromkeys("\t\n\r\u2028\u200b\ufeff", " ")
    return rules | dict.fromkeys(map(chr, [1, 7, 0x7F]), "")
