"""The layers under test, written in PyTorch: parameters named and drawn in the same order."""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def causal(length: int) -> Tensor:
    """true = may not attend."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def attend(query: Tensor, key: Tensor, value: Tensor, blocked: Tensor | None) -> tuple:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights @ value, weights


class ScaledDotProductAttention(nn.Module):
    pass


class MultiHead(nn.Module):
    """What the layers have in common: `parts` are the projections and what stands behind them."""

    is_causal = False

    def __init__(self, num_heads: int, inputs: list[str], out: str, parts: dict) -> None:
        super().__init__()
        for name, part in parts.items():
            self.add_module(name, part())
        self.num_heads, self.inputs, self.out = num_heads, inputs, out

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def project(self, *inputs: Tensor) -> Iterator[Tensor]:
        if len(self.inputs) == 1:
            projected = getattr(self, self.inputs[0])(inputs[0]).chunk(3, dim=-1)
        else:
            projected = (getattr(self, name)(x) for name, x in zip(self.inputs, inputs))
        return map(self.heads, projected)

    def forward(self, query: Tensor, key=None, value=None, blocked=None) -> tuple[Tensor, Tensor]:
        key, value = query if key is None else key, query if value is None else value
        if self.is_causal:
            blocked = causal(query.shape[1])
        out, weights = attend(*self.project(query, key, value), blocked)
        out = out.transpose(1, 2).flatten(2)
        return getattr(self, self.out)(out) if self.out else out, weights


def linears(names: list[str], width: int, out: int, bias: bool = True) -> dict[str, Callable]:
    return {name: lambda: nn.Linear(width, out, bias) for name in names}


class MultiHeadAttention(MultiHead):
    pass


def alibi_slopes(num_heads: int) -> Tensor:
    """For a power of two of heads."""
    return 2.0 ** (-8 / num_heads * torch.arange(1, num_heads + 1))


def turn(x: Tensor, base: float) -> Tensor:
    """Rotary positions of [batch, heads, length, head_dim], in halves, as transformers has them."""
    frequencies = base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.outer(torch.arange(x.shape[-2]), frequencies).repeat(1, 2)
    low, high = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-high, low], dim=-1) * angles.sin()


class ConfiguredAttention(MultiHead):
    """Self-attention with the terms of the operator, and heads of keys that several heads share."""

    window = None
    softcap = 0.0
    alibi = False
    rotary_base = None

    def __init__(
        self, width: int, num_heads: int, num_kv_heads: int, is_fused: bool = False, **terms: object
    ) -> None:
        self.head_dim = width // num_heads
        shared = self.head_dim * num_kv_heads
        self.widths = [width, shared, shared]
        outs = {"qkv_proj": sum(self.widths)} if is_fused else dict(zip(PROJECTIONS, self.widths))
        outs["out_proj"] = width
        parts = {name: lambda n=n: nn.Linear(width, n, not is_fused) for name, n in outs.items()}
        super().__init__(num_heads, list(outs)[:-1], "out_proj", parts)
        for name, value in terms.items():
            setattr(self, name, value)

    def _get_name(self) -> str:
        return "MultiHeadAttention"

    def project(self, x: Tensor) -> Iterator[Tensor]:
        projected = torch.cat([getattr(self, name)(x) for name in self.inputs], dim=-1)
        for part in projected.split(self.widths, dim=-1):
            yield part.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        positions = torch.arange(query.shape[2])
        behind = positions[:, None] - positions
        if self.alibi:
            scores = scores - alibi_slopes(self.num_heads)[:, None, None] * behind.abs()
        if self.window is not None:
            scores = scores.masked_fill((behind < 0) | (behind > self.window), -math.inf)
        return scores

    def forward(self, x: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:
        query, key, value = self.project(x)
        if self.rotary_base is not None:
            query, key = turn(query, self.rotary_base), turn(key, self.rotary_base)
        times = query.shape[1] // key.shape[1]
        key, value = (t.repeat_interleave(times, dim=1) for t in (key, value))
        scores = self.scores(query, key)
        weights = F.softmax(scores if bias is None else scores + bias, dim=-1)
        return self.out_proj((weights @ value).transpose(1, 2).flatten(2)), weights


def fused(width: int, num_heads: int) -> MultiHead:
    parts = linears(["qkv_proj"], width, 3 * width, bias=False)
    parts |= linears(["out_proj"], width, width, bias=False) | {"dropout": lambda: nn.Dropout(0.0)}
    return MultiHeadAttention(num_heads, ["qkv_proj"], "out_proj", parts)


PROJECTIONS = ["q_proj", "k_proj", "v_proj"]


def separate(width: int, num_heads: int) -> MultiHead:
    parts = linears([*PROJECTIONS, "out_proj"], width, width)
    parts |= {"attention": ScaledDotProductAttention, "dropout": lambda: nn.Dropout(0.0)}
    return MultiHeadAttention(num_heads, PROJECTIONS, "out_proj", parts)


def twice_dropped(width: int, num_heads: int) -> MultiHead:
    parts = linears([*PROJECTIONS, "out_proj"], width, width)
    parts |= {name: lambda: nn.Dropout(0.0) for name in ("attn_dropout", "out_dropout")}
    return MultiHeadAttention(num_heads, PROJECTIONS, "out_proj", parts)


def cross(width: int, num_heads: int) -> MultiHead:
    parts = linears(["W_q", "W_k", "W_v", "W_o"], width, width)
    parts |= {"dropout": lambda: nn.Dropout(0.0)}
    return MultiHeadAttention(num_heads, ["W_q", "W_k", "W_v"], "W_o", parts)


class SelfAttention(MultiHead):
    def __init__(self, width: int) -> None:
        names = ["W_q", "W_k", "W_v"]
        super().__init__(1, names, "", linears(names, width, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out, weights = super().forward(x)
        return out, weights.squeeze(1)


class SingleHeadAttention(MultiHead):
    is_causal = True

    def __init__(self, width: int, head_dim: int) -> None:
        names = ["W_Q", "W_K", "W_V"]
        parts = linears(names, width, head_dim, bias=False)
        super().__init__(1, names, "W_O", parts | linears(["W_O"], head_dim, width, bias=False))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out, weights = super().forward(x)
        return out, weights.squeeze(1)


class CausalSelfAttention(nn.Module):
    make = staticmethod(cross)

    def __init__(self, width: int, num_heads: int, max_len: int) -> None:
        super().__init__()
        self.mha = self.make(width, num_heads)
        self.register_buffer("mask", causal(max_len))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        length = x.shape[1]
        return self.mha(x, blocked=self.mask[:length, :length])


class CausalMultiHeadAttention(CausalSelfAttention):
    make = staticmethod(separate)


class AdditiveAttention(nn.Module):
    def __init__(self, encoder_dim: int, decoder_dim: int, attention_dim: int) -> None:
        super().__init__()
        self.W1 = nn.Linear(encoder_dim, attention_dim, bias=False)
        self.W2 = nn.Linear(decoder_dim, attention_dim, bias=False)
        self.v = nn.Linear(attention_dim, 1, bias=False)

    def scores(self, encoder: Tensor, decoder: Tensor) -> Tensor:
        return self.v(torch.tanh(self.W1(encoder) + self.W2(decoder).unsqueeze(1))).squeeze(-1)

    def forward(self, encoder: Tensor, decoder: Tensor) -> tuple[Tensor, Tensor]:
        weights = F.softmax(self.scores(encoder, decoder), dim=-1)
        return torch.einsum("bs,bsd->bd", weights, encoder), weights


class MultiplicativeAttention(AdditiveAttention):
    def __init__(self, encoder_dim: int, decoder_dim: int, method: str) -> None:
        nn.Module.__init__(self)
        self.method = method
        if method == "general":
            self.W = nn.Linear(decoder_dim, encoder_dim, bias=False)
        elif method == "concat":
            self.W = nn.Linear(encoder_dim + decoder_dim, decoder_dim, bias=False)
            self.v = nn.Linear(decoder_dim, 1, bias=False)

    def scores(self, encoder: Tensor, decoder: Tensor) -> Tensor:
        if self.method == "concat":
            repeated = decoder.unsqueeze(1).expand(-1, encoder.shape[1], -1)
            pairs = torch.cat([encoder, repeated], dim=-1)
            return self.v(torch.tanh(self.W(pairs))).squeeze(-1)
        projected = self.W(decoder) if self.method == "general" else decoder
        return torch.einsum("bsd,bd->bs", encoder, projected)


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, width: int, max_len: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.0)
        frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        angles = torch.arange(max_len).unsqueeze(1) * frequencies
        pe = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[:, : x.shape[1]])


class LearnedPositionalEncoding(nn.Module):
    def __init__(self, width: int, max_len: int) -> None:
        super().__init__()
        self.position_embeddings = nn.Embedding(max_len, width)
        self.dropout = nn.Dropout(0.0)
        nn.init.normal_(self.position_embeddings.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.position_embeddings(torch.arange(x.shape[1])))


class TokenEmbedding(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids)


class Model(nn.Module):
    """A transformer block over characters."""

    def __init__(self, vocabulary: int, width: int, max_len: int, has_bias: bool) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(vocabulary, width)
        self.positions = LearnedPositionalEncoding(width, max_len)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary)
        self.attention = CausalSelfAttention(width, 4, max_len) if has_bias else fused(width, 4)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.positions(self.tokens(ids))
        is_masked = isinstance(self.attention, CausalSelfAttention)
        attended = self.attention(x) if is_masked else self.attention(x, blocked=causal(x.shape[1]))
        return self.out(self.norm(x + attended[0]))
