#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets that reach the branches mutations do not find: records that must agree with each
other, numbers at a limit, words of a grammar. Usage: tests/data/make_fuzz_inputs.py"""
import base64
import hashlib
import json
import struct
import zlib
from pathlib import Path

DATA = Path(__file__).parent
SEE64 = 0xFFFFFFFF


def write(target, name, data):
    (DATA / target / name).write_bytes(data.encode() if isinstance(data, str) else data)


def npy(header, data=b"", version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + data


def header_of(descr="'<f4'", shape="(1,)"):
    return "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n" % (descr, shape)


def npy_inputs():
    for name, descr in [("raw", "'|V8'"), ("bytes", "'|S3'"), ("object_alone", "'O'"), ("descr_list", "[('a', '<f4')]")]:
        write("npy", f"header_{name}.npy", npy(header_of(descr)))
    write("npy", "header_twice.npy", npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}"))
    write("npy", "header_beyond_63_bits.npy", npy(header_of(shape="(99999999999999999999,)")))
    write("npy", "header_of_python2.npy", npy(header_of(shape="(1L,)"), b"\0" * 4))
    write("npy", "header_without_length.npy", npy("")[:9])


class Zip:
    """An archive of members and, after them, whatever its records are told to say."""

    def __init__(self):
        self.members = b""
        self.directory = b""
        self.count = 0

    def add(self, name, data=npy(header_of(), b"\0" * 4), flags=0x800, deflate=False, extra=b"", central_extra=b"",
            descriptor=None, stored_size=None, local=True):
        name = name.encode()
        stored = data
        if deflate:
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            stored = packer.compress(data) + packer.flush()
        offset, crc, method = len(self.members), zlib.crc32(data), 8 if deflate else 0
        is_streamed = descriptor is not None
        sizes = (0, 0, 0) if is_streamed else (crc, len(stored), len(data))
        flags |= 8 if is_streamed else 0
        if local:
            self.members += struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, flags, method, 0, 0x21, *sizes, len(name), len(extra))
            self.members += name + extra + stored
        if is_streamed:
            self.members += struct.pack(descriptor[1], crc, len(stored), len(data)) if descriptor[0] is None else (
                struct.pack("<I", descriptor[0]) + struct.pack(descriptor[1], crc, len(stored), len(data)))
        if stored_size is None:
            stored_size = len(stored)
        size = len(data) if deflate else stored_size
        self.directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, flags, method, 0, 0x21, crc, stored_size, size,
                                      len(name), len(central_extra), 0, 0, 0, 0, offset) + name + central_extra
        self.count += 1
        return self

    def end(self, between=b"", count=None, wide=None, **narrow):
        count = self.count if count is None else count
        begin = len(self.members) + len(between)
        data = self.members + between + self.directory
        end = {"disk": 0, "directory_disk": 0, "count_here": count, "count": count, "size": len(self.directory), "offset": begin}
        if wide is not None:
            record = {"signature": 0x06064B50, "record_size": 44, "disk": 0, "directory_disk": 0, "count_here": count,
                      "count": count, "size": len(self.directory), "offset": begin, "locator_disk": 0, "located": len(data),
                      "disks": 1} | wide
            data += struct.pack("<IQHHIIQQQQ", record["signature"], record["record_size"], 45, 45, record["disk"],
                                record["directory_disk"], record["count_here"], record["count"], record["size"], record["offset"])
            data += struct.pack("<IIQI", 0x07064B50, record["locator_disk"], record["located"], record["disks"])
            end |= {"count": 0xFFFF, "count_here": 0xFFFF, "size": SEE64, "offset": SEE64}
        end |= narrow
        return data + struct.pack("<IHHHHIIH", 0x06054B50, *end.values(), 0)


def npz_inputs():
    write("npz", "zip64_end.npz", Zip().add("a.npy").end(wide={}))
    for field, value in [("signature", 1), ("located", 1), ("record_size", 45), ("locator_disk", 1), ("disks", 2), ("disk", 1),
                         ("directory_disk", 1), ("count_here", 7)]:
        write("npz", f"zip64_end_{field}.npz", Zip().add("a.npy").end(wide={field: value}))
    archive = Zip().add("a.npy")
    write("npz", "zip64_end_agrees.npz", archive.end(wide={}, count=1, count_here=1, size=len(archive.directory),
                                                     offset=len(archive.members)))
    for field in ["count", "size", "offset"]:
        write("npz", f"zip64_end_other_{field}.npz", archive.end(wide={}, **{field: 7} | ({"count_here": 7} if field == "count" else {})))
    write("npz", "records_left_over.npz", Zip().add("a.npy").add("b.npy").end(count=1, count_here=1))
    write("npz", "records_missing.npz", Zip().add("a.npy").end(count=2))
    zip64 = struct.pack("<HHQQ", 1, 16, 132, 132)
    write("npz", "zip64_twice.npz", Zip().add("a.npy", central_extra=zip64 * 2).end())
    write("npz", "local_cut.npz", Zip().add("a.npy", b"", local=False).end(between=b"PK"))
    write("npz", "local_into_directory.npz", Zip().add("a.npy", stored_size=140).end())
    write("npz", "bytes_of_nobody.npz", Zip().add("a.npy").end(between=b"x"))
    signature = 0x08074B50
    for name, descriptor in [("signed", (signature, "<III")), ("unsigned", (None, "<III")), ("cut", (None, "<0s0s0s"))]:
        if name == "cut":
            archive = Zip().add("a.npy", b"", flags=0x808)
        else:
            archive = Zip().add("a.npy", descriptor=descriptor)
        write("npz", f"descriptor_{name}.npz", archive.end())
    write("npz", "empty_array.npz", Zip().add("a.npy", npy(header_of(shape="(0,)")), deflate=True).end())
    write("npz", "inflates_far.npz", Zip().add("a.npy", npy(header_of(shape="(2000,)"), b"\0" * 8000), deflate=True).end())
    for name, member in [("absolute", "/a.npy"), ("drive", "c:a.npy"), ("backslash", "a\\b.npy"), ("parent", "../a.npy"),
                         ("here", "./a.npy"), ("no_part", "a//b.npy"), ("nothing", ".npy"), ("other", "a.text")]:
        write("npz", f"name_{name}.npz", Zip().add(member).end())


def safetensors(header, data=b""):
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors_inputs():
    one = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    write("safetensors", "beyond_63_bits", safetensors({"a": one | {"shape": [2**64 - 1]}}, b"x"))
    write("safetensors", "many_dimensions", safetensors({"a": one | {"shape": [1] * 9}}, b"x"))
    for field in one:
        write("safetensors", f"no_{field}", safetensors({"a": {key: value for key, value in one.items() if key != field}}, b"x"))
    write("safetensors", "hole", safetensors({"a": one, "b": one | {"data_offsets": [2, 3]}}, b"xyz"))
    write("safetensors", "twice", safetensors('{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": 1}', b"x"))
    for field, value in [("dtype", 1), ("dtype", [1]), ("data_offsets", [0]), ("shape", "U8")]:
        write("safetensors", f"{field}_{type(value).__name__}", safetensors({"a": one | {field: value}}, b"x"))
    write("safetensors", "metadata", safetensors({"__metadata__": {"a": "b", "c": "é"}, "a": one}, b"x"))


def tokenizer_inputs():
    def divided(first, second):
        """Padded so that the target divides it there."""
        first, second = first.encode(), second.encode()
        length = max(len(first), len(second))
        return first.ljust(length) + b" " * (length - len(second)) + second

    write("tokenizer", "joiners", divided("it's l’été x-y a‐b c‑d", "l’été it's x-y a‐b c‑d a-, b' c’"))
    write("tokenizer", "scripts", divided("한국 ㄱㄴ ꥠ ᄀ ㈀ 々日 カタ ー", "々 ㄱ 日本 가나 힣ퟰ ꥠꥼ ᄀᇿ ㇰ ☃"))
    write("tokenizer", "invisible", divided("\u2028\u2029\u202e\x85\x01 \x80\u200b", " \u0301a\u200d\u200c\u2028\u2029\u202e\x85\r\n\r\t \u0489"))
    write("tokenizer", "emoji", divided("❤️ 👩‍👩‍👧 🇫🇷 ", "👍🏽❤️ 👩‍👩‍👧🇫🇷🇫 "))
    write("tokenizer", "no_text", b"\xff\xfe\x80")


def vocabulary_inputs():
    special = ["<pad>", "<bos>", "<eos>", "<unk>"]

    def vocabulary(tokens, **more):
        return json.dumps({"format": "heed.vocabulary", "version": 1, "units": "words", "tokens": tokens} | more, ensure_ascii=False)

    write("vocabulary", "twice.json", vocabulary(special + ["a", "a"]))
    write("vocabulary", "wide.json", vocabulary(special + ["é" * 40], units="characters"))
    write("vocabulary", "odd_wide.json", vocabulary(special + ["é" * 41], units="characters"))
    for name, tokens in [("number", 1), ("texts", {"a": "b"}), ("negative", special + [-1]), ("truth", special + [True]),
                         ("null", special + [None]), ("nested", special + [["a"]]), ("half", special + [0.5]), ("empty", special + [""]),
                         ("short", special[:3]), ("other", ["a", "b", "c", "d"])]:
        write("vocabulary", f"tokens_{name}.json", vocabulary(tokens))
    write("vocabulary", "units.json", vocabulary(special, units="bytes"))
    write("vocabulary", "version.json", vocabulary(special, version=2))
    write("vocabulary", "format.json", vocabulary(special, format="x"))
    write("vocabulary", "version_number.json", vocabulary(special, version=1.0, more=[{"version": 3, "format": "y", "units": -1}]))
    write("vocabulary", "member_twice.json", vocabulary(special)[:-1] + ', "version": 1}')
    write("vocabulary", "overflow.json", '{"version": 1e999}')


def parallel_text_inputs():
    write("parallel_text", "long_line", b"a\nb\n" + b"x" * 10_001 + b"\xff1\n2\n3\n")


def changed(settings, path, value):
    """A copy with one member, a.b, replaced; left out where the value is None."""
    copy = json.loads(json.dumps(settings))
    *folders, name = path.split(".")
    inner = copy
    for folder in folders:
        inner = inner[folder]
    inner.pop(name)
    if value is not None:
        inner[name] = value
    return copy


def settings_inputs():
    def variants(task, changes):
        settings = json.loads((DATA / "settings" / f"{task}.json").read_text())
        for i, several in enumerate(changes):
            result = settings
            for path, value in several.items():
                result = changed(result, path, value)
            write("settings", f"{task}_{i:02}.json", json.dumps(result))

    variants("lm", [{"model.heads": 3}, {"model.heads": 0}, {"model.d_model": 1025}, {"model.d_model": 9, "model.heads": 3},
                    {"model.positions": "none"}, {"model.positions": "learned"}, {"model.positions": "x"}, {"task": 3},
                    {"training.learning_rate": 0}, {"training.steps": "x"}, {"model": None}, {"characters": 3},
                    {"model.positions": "learned", "model.d_model": 9, "model.heads": 3}, {"training": None}])
    variants("translate", [{"corpus.task": "parallel-text"}, {"corpus.task": "dates"}, {"corpus.task": "copy"}, {"corpus.task": "x"},
                           {"corpus.from": "de"}, {"corpus.from": "x"}, {"corpus.to": "en", "corpus.from": "fr"},
                           {"model.d_model": 9}, {"model.attention": "multihead"}, {"model.attention": "multihead", "model.heads": 3},
                           {"model.attention": "x"}, {"model.dropout": -1}, {"model.dropout": 1}, {"corpus.units": "x"},
                           {"training.steps": 0}, {"epochs": 0}, {"model.heads": None}, {"corpus": None}])
    write("settings", "deep.json", '{"task": "lm", "more": ' + "[" * 40 + "]" * 40 + "}")


def request(body, host="127.0.0.1:8000", method="POST", path="/api/attention", more="Content-Type: application/json\r\n"):
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}{length}\r\n{body}"


def request_inputs():
    bodies = ['{"sentence": "a b"}', '{"sentence": 1}', '{"sentence": "a b", "heads": 0}', '{"sentence": "a b", "heads": 3}',
              '{"sentence": "a b", "heads": 65}', '{"sentence": "a b", "heads": -1}', '{"sentence": "a b", "heads": "x"}',
              '{"sentence": "a b", "seed": 1e999}', '{"sentence": ""}', "[]", "{", '{"sentence": "a", "heads": ' + "[" * 40 + "]" * 40 + "}"]
    for i, body in enumerate(bodies):
        write("requests", f"body_{i:02}", request(body))
    hosts = ["127.0.0.2:8000", "[::1]:8000", "localhost:8000", "LOCALHOST:8000", "10.0.0.1:8000", "0.0.0.0:8000", "here:8000", "[::1]",
             "[::1", "[::1]x8000", "127.0.0.1:80x", "127.0.0.1", "[]:8000"]
    for i, host in enumerate(hosts):
        write("requests", f"host_{i:02}", request("", host, "GET", "/", ""))
    write("requests", "text", request("{}", more="Content-Type: text/plain\r\n"))
    write("requests", "elsewhere", request("", method="GET", path="/x"))


def checkpoint_inputs():
    data = (DATA / "checkpoint" / "step1.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    for name, step in [("none", None), ("word", "x"), ("followed", "1x"), ("negative", "-1"), ("beyond", "9" * 30)]:
        metadata = {key: value for key, value in header["__metadata__"].items() if key != "step"} | ({"step": step} if step else {})
        write("checkpoint", f"step_{name}.safetensors", safetensors(header | {"__metadata__": metadata}, rest))


def gguf_text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


class Gguf:
    """Keys and tensors; the data is aligned to 8 bytes where a key says so."""

    def __init__(self, alignment=8):
        self.keys, self.tensors, self.data = [], [], b""
        if alignment != 32:
            self.add("general.alignment", 4, struct.pack("<I", alignment))

    def add(self, key, kind, value):
        self.keys.append(gguf_text(key) + struct.pack("<I", kind) + value)
        return self

    def tensor(self, name, dims, kind, data=b"", offset=None):
        self.data += b"\0" * (-len(self.data) % 8)
        offset = len(self.data) if offset is None else offset
        self.tensors.append(gguf_text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset))
        self.data += data
        return self

    def end(self, version=3, alignment=8):
        head = b"GGUF" + struct.pack("<IQQ", version, len(self.tensors), len(self.keys)) + b"".join(self.keys + self.tensors)
        return head + b"\0" * (-len(head) % alignment) + self.data


def gguf_inputs():
    def array(kind, count, data):
        return struct.pack("<IQ", kind, count) + data

    numbers = Gguf()
    for kind, code in enumerate("BbHhIif?"):
        numbers.add(f"k{kind}", kind, struct.pack("<" + code, 1))
        numbers.add(f"a{kind}", 9, array(kind, 2, struct.pack("<2" + code, 0, 1)))
    for kind, code in [(10, "Q"), (11, "q"), (12, "d")]:
        numbers.add(f"k{kind}", kind, struct.pack("<" + code, 1))
    write("gguf", "numbers", numbers.end())
    write("gguf", "texts", Gguf().add("text", 8, gguf_text("größe")).add("texts", 9, array(8, 2, gguf_text("a") + gguf_text(""))).end())
    tensors = Gguf().tensor("a", [3, 2], 0, b"a" * 24).tensor("q", [32, 1, 1, 2], 3, b"q" * 40).tensor("x", [5], 99).tensor("none", [0], 24)
    write("gguf", "tensors", tensors.end())
    write("gguf", "version2", tensors.end(version=2))
    write("gguf", "big_endian", tensors.end(version=3 << 24))
    write("gguf", "default_alignment", Gguf(32).tensor("a", [1], 24, b"a").end(alignment=32))
    one = Gguf().tensor("a", [8], 24, b"a" * 8)
    for name, dims, kind, offset in [("scalar", [], 0, 0), ("five", [1] * 5, 0, 0), ("wraps", [1 << 31, 1 << 31, 4], 0, 0),
                                     ("wide", [1 << 62], 0, 0), ("rows", [33], 3, 0), ("overlaps", [8], 24, 0), ("outside", [1], 24, 8),
                                     ("unaligned", [1], 24, 1), ("far", [64], 24, (1 << 63) - 8)]:
        other = Gguf().tensor("a", [8], 24, b"a" * 8).tensor("b", dims, kind, offset=offset)
        write("gguf", f"tensor_{name}", other.end())
    write("gguf", "tensor_twice", one.tensor("a", [8], 24, b"a" * 8).end())
    for name, kind, value in [("nested", 9, array(9, 1, b"")), ("unknown", 13, b"1"), ("half_true", 7, b"\2"), ("beyond", 10, b"\xff" * 8)]:
        write("gguf", f"value_{name}", Gguf().add("k", kind, value + b" " * 8).end())
    write("gguf", "alignment_48", Gguf(48).end())
    write("gguf", "alignment_wide", Gguf(32).add("general.alignment", 10, struct.pack("<Q", 8)).end())
    write("gguf", "key_twice", Gguf().add("general.alignment", 4, struct.pack("<I", 8)).end())
    write("gguf", "key_empty", Gguf().add("", 4, struct.pack("<I", 8)).end())


def checkpoint_index_inputs():
    write("checkpoint_index", "two", '{"metadata": {"total_size": 8, "more": [{"weight_map": null}]}, "weight_map": {"a": "x", "b": "y"}}')
    for name, value in [("array", "[]"), ("number", "1"), ("negative", "-1"), ("real", "0.5"), ("truth", "true"), ("null", "null"), ("text", '"x"')]:
        write("checkpoint_index", f"is_{name}", value)
        write("checkpoint_index", f"map_{name}", '{"weight_map": %s}' % value)
        write("checkpoint_index", f"file_{name}", '{"weight_map": {"a": %s, "a": "x"}}' % value)
    write("checkpoint_index", "map_twice", '{"weight_map": {}, "weight_map": {}}')
    write("checkpoint_index", "file_object", '{"weight_map": {"a": {}}}')
    write("checkpoint_index", "no_map", "{}")
    for name, file in [("parent", ".."), ("here", "."), ("path", "a/b"), ("empty", "")]:
        write("checkpoint_index", f"file_{name}", json.dumps({"weight_map": {"a": file}}))
    write("checkpoint_index", "overflow", '{"weight_map": {}, "x": 1e999}')


def word_pieces(**parts):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "caf", "##e", "##s", "12", "!"]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": 20, "vocab": {token: i for i, token in enumerate(tokens)}}
    added = [{"id": i, "content": token, "special": True, "lstrip": i == 4} for i, token in enumerate(tokens[:5])]
    return {"added_tokens": added, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor":
            {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}, "decoder": {"type": "WordPiece"}, "model": model} | parts


def pairs_of_bytes(**parts):
    tokens = ["t", "h", "e", "\u0120", "\u00c3", "\u00a9", "1", "th", "the", "\u0120the", "<unk>", "<0x21>"]
    model = {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": ["t h", ["th", "e"], "\u0120 the"],
             "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    added = [{"id": 12, "content": "<|end|>", "special": True}, {"id": 13, "content": "Tool", "special": False, "single_word": True, "rstrip": True}]
    return {"added_tokens": added, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}, "decoder": {"type": "ByteLevel"},
            "post_processor": {"type": "RobertaProcessing", "cls": ["<unk>", 10], "sep": ["<unk>", 10]}, "model": model} | parts


def tokenizer_json_inputs():
    def write_json(name, value):
        write("tokenizer_json", name, json.dumps(value, ensure_ascii=False))

    def sequence(key, *steps):
        return {"type": "Sequence", key: list(steps)}

    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    tail = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    letters = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
    bytes_alone = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": False}
    turn = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    first = "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}"
    prompt = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    after_system = "{% for message in messages %}" + first + turn + "{% endfor %}" + prompt
    header = "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>'"
    llama3 = ("{{ bos_token }}{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = " + header + " %}"
              "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
              "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}")
    write_json("word_piece", word_pieces())
    write_json("words", word_pieces(
        normalizer=sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
        pre_tokenizer=sequence("pretokenizers", {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True})))
    write_json("punctuation", word_pieces(
        normalizer=sequence("normalizers", {"type": "NFC"}, {"type": "NFKC"}, {"type": "NFKD"}),
        pre_tokenizer=sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "MergedWithNext"},
                               {"type": "Digits"}), decoder=None))
    write_json("byte_level", pairs_of_bytes())
    for name, regex in [("llama3", letters + r"\p{N}{1,3}|" + tail), ("qwen2", letters + r"\p{N}|" + tail)]:
        write_json(name, pairs_of_bytes(pre_tokenizer=sequence("pretokenizers", split | {"pattern": {"Regex": regex}}, bytes_alone)))
    write_json("regex", pairs_of_bytes(pre_tokenizer=split | {"pattern": {"Regex": "x+"}}))
    for behavior in ["Removed", "MergedWithPrevious", "Contiguous"]:
        write_json("split_" + behavior, pairs_of_bytes(pre_tokenizer=split | {"pattern": {"String": " "}, "behavior": behavior, "invert": True}))
    special = {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<unk>"]}}
    first, begin = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<s>", "type_id": 0}}
    frame = {"type": "TemplateProcessing", "single": [begin, first], "pair": [begin, first, {"Sequence": {"id": "B", "type_id": 1}}],
             "special_tokens": special}
    write_json("template", pairs_of_bytes(post_processor=sequence("processors", bytes_alone, frame)))
    write_json("template_twice", pairs_of_bytes(post_processor=sequence("processors", frame, frame)))
    write_json("template_pair", pairs_of_bytes(post_processor=frame | {"pair": [first, first]}))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u0120"}
    write_json("fallback", pairs_of_bytes(
        normalizer=sequence("normalizers", {"type": "Prepend", "prepend": "\u0120"}, replace), pre_tokenizer=None,
        decoder=sequence("decoders", replace, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1})))
    suffixed = pairs_of_bytes()
    suffixed["model"] |= {"end_of_word_suffix": "e", "continuing_subword_prefix": "t", "ignore_merges": True, "merges": []}
    write_json("suffix", suffixed)
    precompiled = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(map_of_characters()).decode()}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}|\\p{P}++(?!x)"}, "content": " "}
    write_json("unigram", unigram(normalizer=sequence("normalizers", precompiled, {"type": "Nmt"}, {"type": "Strip"}, spaces)))
    write_json("unigram_bytes", unigram(
        normalizer={"type": "ByteLevel"}, pre_tokenizer=split | {"pattern": {"Regex": "[^a-z\\s]{1,3}|(?i:'s)?b$"}},
        model={"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": [["a", -1]] + [[f"<0x{i:02X}>", 0] for i in range(256)]},
        added_tokens=[], decoder={"type": "BPEDecoder", "suffix": "a"}))
    write_json("word_level", unigram(model={"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "</s>": 1, "the": 2}},
                                     pre_tokenizer={"type": "CharDelimiterSplit", "delimiter": " "}))
    hole = word_pieces()
    hole["model"]["vocab"]["!"] = 11
    write_json("hole", hole)
    write_json("config", word_pieces(bos_token="[CLS]", eos_token={"content": "[SEP]"}, pad_token="[PAD]", do_lower_case=False,
                                     chat_template=after_system))
    write_json("templates", word_pieces(cls_token="[CLS]", chat_template=[{"name": "default", "template": llama3}]))
    write("tokenizer_json", "vocabulary", "\n".join(word_pieces()["model"]["vocab"]) + "\r\n")


def map_of_characters():
    """SentencePiece's map with "a" to "x" and "ab" to "yz"; children are at 0, 256 and 512."""
    has_value, is_value = 1 << 8, 1 << 31
    units = [0] * 768
    units[97] = 97 | has_value | (97 ^ 256) << 10
    units[256] = is_value | 0
    units[256 ^ 98] = 98 | has_value | (256 ^ 98 ^ 512) << 10
    units[512] = is_value | 2
    return struct.pack("<I768I", 4 * 768, *units) + b"x\0yz\0"


def character_map_inputs():
    good = map_of_characters()
    write("character_map", "good", good)
    write("character_map", "cut", good[:-3])
    write("character_map", "base64", "aGVlZA==")
    write("character_map", "beyond", good[: 4 + 4 * 99] + b"\xFF" * 3 + b"\x7F" + good[8 + 4 * 99 :])


def unigram(**parts):
    vocabulary = [["<unk>", 0], ["</s>", 0], ["\u2581", -1], ["\u2581the", -2.5], ["s", -3], ["a", -4]]
    marks = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    added = [{"id": 0, "content": "<unk>", "special": True}, {"id": 1, "content": "</s>", "special": True}]
    return {"added_tokens": added, "pre_tokenizer": marks, "decoder": marks, "model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary}} | parts


def seal_inputs():
    model, all_parts = "0123456789abcdef", 22 * "x"
    options = "n=40,t=0.8,k=3,p=0.5,s=7,key=int8,value=int4,stop=0011223344556677"
    text = f"heed1:generate:{model}:01234567:{options}:89abcdef:AAbb-_99:{all_parts}"
    pooling = "pool=mean+cls,norm=1,max=256,prompt=0011223344556677"
    vectors = f"heed1:embed:{model}:01234567:{pooling}:89abcdef:AAbb:{all_parts}"
    for name, seal in [("text", text), ("vectors", vectors)]:
        write("seal", name, seal)
        check = base64.urlsafe_b64encode(hashlib.sha256(seal.encode()).digest()).decode()[:4]
        write("seal", f"{name}_checked", f"{seal}:{check}\n")
    write("seal", "lines", f"heed1:embed:{model}:\r\n 01234567::89abcdef::{all_parts}")
    write("seal", "version", "heed22:generate:x")


for make in [npy_inputs, npz_inputs, safetensors_inputs, tokenizer_inputs, vocabulary_inputs, parallel_text_inputs, settings_inputs,
             request_inputs, checkpoint_inputs, gguf_inputs, checkpoint_index_inputs, tokenizer_json_inputs, character_map_inputs,
             seal_inputs]:
    make()
