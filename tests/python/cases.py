"""The cases on which heed's reference is compared with PyTorch.

A case says the same thing twice: in heed's words (`options`, and arrays whose names the probe
knows) and in PyTorch's (`attn_mask`, `is_causal`). The masks of the second are built here from
positions, by definition, never from heed's answers.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

LENGTHS = (1, 2, 3, 7, 16, 17, 33)
HEAD_DIMS = (1, 3, 8, 64)

# The arrays that heed computes, by case and name.
Outputs = dict[str, dict[str, np.ndarray]]


@dataclass
class Case:
    """One call of attention and of its backward pass."""

    name: str
    arrays: dict[str, np.ndarray]
    options: dict = field(default_factory=dict)
    attn_mask: object = None
    is_causal: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether PyTorch's operator can say it: it has no softcap, no ALiBi and no sinks."""
        lacking = {"alibi_slopes", "sinks"}
        return not self.options.get("softcap") and lacking.isdisjoint(self.arrays)

    def tensor(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        return torch.from_numpy(self.arrays[name]).to(dtype)


def make(
    name: str,
    shape: tuple[int, ...] = (2, 4, 7, 7, 8),
    num_kv_heads: int | None = None,
    value_dim: int | None = None,
    **rest,
) -> Case:
    """A case of normal draws. `shape` is batch, num_heads, q_len, kv_len, head_dim."""
    batch, num_heads, q_len, kv_len, head_dim = shape
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    value_dim = head_dim if value_dim is None else value_dim
    random = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = {
        "query": random.standard_normal((batch, num_heads, q_len, head_dim)),
        "key": random.standard_normal((batch, kv_heads, kv_len, head_dim)),
        "value": random.standard_normal((batch, kv_heads, kv_len, value_dim)),
        "grad_out": random.standard_normal((batch, num_heads, q_len, value_dim)),
    }
    return Case(name, arrays | rest.pop("arrays", {}), **rest)


def positions(q_len: int, kv_len: int, offset: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The key position that each query stands at, [q_len, 1], and those of the keys, [kv_len]."""
    return torch.arange(q_len)[:, None] + offset, torch.arange(kv_len)


def shapes() -> Iterator[Case]:
    """Every pair of lengths, with head dimensions, heads and batches taking turns."""
    pairs = [(q_len, kv_len) for q_len in LENGTHS for kv_len in LENGTHS]
    for i, (q_len, kv_len) in enumerate(pairs):
        shape = (1 + i % 3, 1 + i % 8, q_len, kv_len, HEAD_DIMS[i % 4])
        value_dim = HEAD_DIMS[(i // 4 + i) % 4]
        yield make(f"full-{q_len}x{kv_len}", shape, value_dim=value_dim)
        causal = {"causal": True, "alignment": "top_left"}
        yield make(
            f"top_left-{q_len}x{kv_len}",
            shape,
            value_dim=value_dim,
            options=causal,
            is_causal=True,
        )


def grouped_heads() -> Iterator[Case]:
    for num_heads, num_kv_heads in ((4, 1), (4, 2), (8, 2), (6, 3), (8, 1), (5, 1)):
        name = f"heads-{num_heads}-{num_kv_heads}"
        shape = (2, num_heads, 7, 17, 8)
        yield make(name, shape, num_kv_heads, 3)
        causal = {"causal": True, "alignment": "top_left"}
        yield make(f"{name}-causal", shape, num_kv_heads, options=causal, is_causal=True)
        decode = (2, num_heads, 1, 33, 8)
        yield make(f"{name}-decode", decode, num_kv_heads)


def scales() -> Iterator[Case]:
    for scale in (0.01, 1.0, 3.0, -0.5, 0.0):
        yield make(f"scale-{scale}", options={"scale": scale})
        options = {"scale": scale, "causal": True}
        yield make(f"scale-{scale}-causal", options=options, is_causal=True)


def alignments() -> Iterator[Case]:
    for q_len, kv_len in ((7, 7), (3, 17), (1, 33), (16, 33), (17, 7), (7, 1)):
        shape = (2, 2, q_len, kv_len, 8)
        causal = {"causal": True}
        yield make(
            f"bottom_right-{q_len}x{kv_len}",
            shape,
            options=causal | {"alignment": "bottom_right"},
            attn_mask=causal_lower_right(q_len, kv_len),
        )
        yield make(
            f"upper_left-{q_len}x{kv_len}",
            shape,
            options=causal | {"alignment": "top_left"},
            attn_mask=causal_upper_left(q_len, kv_len),
        )
        for offset in (-2, 3):
            at, key = positions(q_len, kv_len, offset)
            yield make(
                f"offset{offset}-{q_len}x{kv_len}",
                shape,
                options=causal | {"alignment": offset},
                attn_mask=key <= at,
            )
    yield make(
        "query_offset-3x7",
        (2, 2, 3, 7, 8),
        options={"causal": True, "query_offset": 4},
        attn_mask=causal_lower_right(3, 7),
    )


def windows() -> Iterator[Case]:
    for left, right in ((0, 0), (1, 0), (2, 3), (None, 0), (0, None), (100, 100)):
        for q_len, kv_len in ((7, 7), (3, 17), (17, 7)):
            for alignment in ("top_left", "bottom_right"):
                at, key = positions(q_len, kv_len, kv_len - q_len if "right" in alignment else 0)
                visible = torch.ones(q_len, kv_len, dtype=torch.bool)
                if left is not None:
                    visible &= key >= at - left
                if right is not None:
                    visible &= key <= at + right
                name = f"window-{left}-{right}-{q_len}x{kv_len}-{alignment}"
                options = {"window": [left, right], "alignment": alignment}
                shape = (1, 2, q_len, kv_len, 3)
                yield make(name, shape, options=options, attn_mask=visible)
                yield make(
                    f"{name}-causal",
                    shape,
                    options=options | {"causal": True},
                    attn_mask=visible & (key <= at),
                )


# Shapes that broadcast to scores of [3, 4, 7, 5].
MASK_SHAPES = (
    (),
    (1,),
    (5,),
    (1, 5),
    (7, 1),
    (7, 5),
    (1, 7, 5),
    (4, 7, 5),
    (4, 1, 1),
    (3, 1, 1, 5),
    (3, 1, 7, 5),
    (1, 4, 1, 1),
    (1, 4, 7, 1),
    (3, 4, 7, 5),
)


def mask_tensors() -> Iterator[Case]:
    """Boolean masks of either polarity, additive ones, and biases, in every shape."""
    shape = (3, 4, 7, 5, 8)
    for mask_shape in MASK_SHAPES:
        suffix = "x".join(map(str, mask_shape)) or "scalar"
        random = np.random.default_rng(len(suffix))
        allow = np.asarray(random.random(mask_shape) < 0.7)
        visible = torch.from_numpy(allow)
        yield make(f"allow-{suffix}", shape, arrays={"mask_allow": allow}, attn_mask=visible)
        yield make(f"block-{suffix}", shape, arrays={"mask_block": ~allow}, attn_mask=visible)
        added = np.asarray(random.standard_normal(mask_shape), np.float32)
        yield make(f"bias-{suffix}", shape, 2, arrays={"bias": added.astype(np.float64)})
        added = np.where(allow, added, np.float32(-np.inf))
        yield make(f"additive-{suffix}", shape, arrays={"mask_additive": added})


def sequences() -> Iterator[Case]:
    """Masks that know where sequences begin and end."""
    shape = (3, 2, 7, 7, 8)
    at, key = positions(7, 7)
    lengths = torch.tensor([7, 3, 0])
    padded = key < lengths[:, None, None, None]
    options = {"key_lengths": lengths.tolist()}
    yield make("key_lengths", shape, options=options, attn_mask=padded)
    causal = options | {"causal": True}
    yield make("key_lengths-causal", shape, options=causal, attn_mask=padded & (key <= at))
    ids = np.where(padded[:, 0, 0].numpy(), 5, 0).astype(np.int64)
    arrays = {"token_ids": ids}
    yield make("tokens", shape, arrays=arrays, options={"padding_id": 0}, attn_mask=padded)
    document = torch.tensor([0, 0, 2, 2, 2, 3, 3])
    same = document[:, None] == document
    options = {"documents": [0, 2, 2, 5, 7]}
    yield make("documents", shape, options=options, attn_mask=same)
    causal = options | {"causal": True}
    yield make("documents-causal", shape, options=causal, attn_mask=same & (key <= at))
    seen = (key < 3) | (key <= at)
    yield make("prefix", shape, options={"prefix": 3}, attn_mask=seen)


def softcaps_and_sinks() -> Iterator[Case]:
    """What PyTorch's operator lacks: compared with a few lines of PyTorch."""
    for softcap in (0.5, 5.0, 30.0):
        yield make(f"softcap-{softcap}", options={"softcap": softcap})
        options = {"softcap": softcap, "causal": True, "scale": 2.0}
        yield make(f"softcap-{softcap}-causal", num_kv_heads=2, options=options, is_causal=True)
    random = np.random.default_rng(0)
    sinks = random.standard_normal(4) * 3
    bias = random.standard_normal((4, 7, 7))
    hidden = np.arange(7)[:, None] % 3 != 1
    visible = torch.from_numpy(hidden)
    yield make("sinks", arrays={"sinks": sinks})
    yield make("sinks-gqa", num_kv_heads=1, arrays={"sinks": sinks})
    yield make("sinks-causal", arrays={"sinks": sinks}, options={"causal": True}, is_causal=True)
    arrays = {"sinks": sinks, "mask_allow": hidden}
    yield make("sinks-alone", arrays=arrays, attn_mask=visible)
    slopes = 2.0 ** -np.arange(2, 10, 2)
    yield make("alibi", arrays={"alibi_slopes": slopes})
    yield make("alibi-offset", arrays={"alibi_slopes": slopes}, options={"query_offset": 5})
    causal = {"causal": True}
    yield make("alibi-causal", arrays={"alibi_slopes": slopes}, options=causal, is_causal=True)
    arrays = {"alibi_slopes": slopes, "sinks": sinks, "bias": bias, "mask_allow": hidden}
    options = {"softcap": 2.0, "scale": 1.5}
    yield make("everything", num_kv_heads=2, arrays=arrays, options=options, attn_mask=visible)


def layouts() -> Iterator[Case]:
    causal = {"layout": "bthd", "causal": True, "alignment": "top_left"}
    yield make("strided", (2, 4, 7, 17, 8), 2, 3, options={"layout": "bthd"})
    yield make("strided-causal", (2, 4, 7, 17, 8), options=causal, is_causal=True)


def empty() -> Iterator[Case]:
    yield make("empty-batch", (0, 2, 3, 4, 2))
    yield make("empty-heads", (2, 0, 3, 4, 2))
    yield make("empty-queries", (2, 2, 0, 4, 2))
    yield make("empty-keys", (2, 2, 3, 0, 2))
    yield make("empty-values", (2, 2, 3, 4, 2), value_dim=0)
    # PyTorch's default scale of 1/sqrt(0) is infinite; heed's is 1.
    yield make("empty-head_dim", (2, 2, 3, 4, 0), value_dim=2, options={"scale": 1.0})


def grid() -> list[Case]:
    groups = (shapes, grouped_heads, scales, alignments, windows, mask_tensors, sequences)
    groups += (softcaps_and_sinks, layouts, empty)
    return [case for group in groups for case in group()]


def hiding_last_key(name: str, **rest) -> Case:
    """A case of 7 keys whose last nobody sees."""
    allow = np.arange(7) < 6
    arrays = {"mask_allow": allow}
    return make(name, arrays=arrays, attn_mask=torch.from_numpy(allow), **rest)


def with_hidden_garbage(case: Case) -> Case:
    """The same case with NaN in the last key and infinity in the last value."""
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    arrays["key"][:, :, -1] = np.nan
    arrays["value"][:, :, -1] = np.inf
    return replace(case, name=f"{case.name}-garbage", arrays=arrays)


def in_float32(case: Case) -> Case:
    """The same case with its arrays rounded to float32."""

    def rounded(array: np.ndarray) -> np.ndarray:
        return array.astype(np.float32) if array.dtype == np.float64 else array

    arrays = {name: rounded(array) for name, array in case.arrays.items()}
    return replace(case, name=f"{case.name}-float32", arrays=arrays)
