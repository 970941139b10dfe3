"""The lessons' demonstrations in PyTorch and NumPy: their numbers, by the names heed records.

NumPy's are in double, PyTorch's in float32, as in the lessons.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_layers as layers
import torch_sequence as sequence

Numbers = dict[str, np.ndarray | torch.Tensor | float]
LESSONS: dict[str, Callable[[], Numbers]] = {}


def lesson(name: str) -> Callable:
    """Enters a function under the lesson's name."""

    def enter(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
        LESSONS[name] = function
        return function

    return enter


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def future(length: int) -> torch.Tensor:
    """True above the diagonal: what a causal mask hides."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    temperature: float = 1,
    hidden: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masked scores, weights and output."""
    scores = query @ key.mT / (math.sqrt(query.shape[-1]) * temperature)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    weights = F.softmax(scores, dim=-1)
    return scores, weights, weights @ value


class FourProjections(nn.Module):
    """A layer that draws query, key, value and output projections in this order."""

    def __init__(self, width: int, num_heads: int = 1, bias: bool = True) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width, bias=bias) for _ in range(4)
        )
        self.num_heads = num_heads

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        query, key, value = (self.heads(f(x)) for f in (self.query, self.key, self.value))
        _, weights, mixed = attend(query, key, value, hidden=hidden)
        return weights, self.out(mixed.transpose(1, 2).flatten(2))


@lesson("softmax")
def softmax_by_hand() -> Numbers:
    by_hand, large, small = np.array([1.0, 2, 3]), np.array([1000.0, 1001, 1002]), [2, 1, 0.1]
    with np.errstate(over="ignore", invalid="ignore"):
        overflown = np.exp(large)
        naive = overflown / overflown.sum()
    return {
        "by_hand_exp": np.exp(by_hand),
        "by_hand_sum": np.exp(by_hand).sum(),
        "by_hand_weights": softmax(by_hand),
        "large_exp": overflown,
        "large_naive": naive,
        "large_shifted_exp": np.exp(large - 1002),
        "large_stable": softmax(large),
        "small_naive": np.exp(small) / np.exp(small).sum(),
        "small_stable": softmax(np.array(small)),
        "hidden_weights": softmax(np.array([2, 1, -np.inf])),
    }


@lesson("embeddings")
def embeddings() -> Numbers:
    np.random.seed(42)
    table = np.stack([np.random.randn(4).round(2) for _ in range(3)])
    return {"embeddings": table, "dot_products": table @ table.T}


def from_scratch(length: int) -> Numbers:
    """NumPy's inputs, projections and scores for `length` tokens."""
    np.random.seed(42)
    x = np.random.randn(length, 4)
    weights = [np.random.randn(4, 2) * 0.5 for _ in range(3)]
    query, key, value = (x @ weight for weight in weights)
    scores = query @ key.T / np.sqrt(2)
    names = ("query_weight", "key_weight", "value_weight")
    numbers = {"x": x, "query": query, "key": key, "value": value, "scores": scores}
    return numbers | dict(zip(names, weights, strict=True))


@lesson("from-scratch")
def attention_from_scratch() -> Numbers:
    numbers = from_scratch(3)
    weights = softmax(numbers["scores"])
    return numbers | {"weights": weights, "out": weights @ numbers["value"]}


@lesson("causal")
def causal_from_scratch() -> Numbers:
    numbers = from_scratch(4)
    scores, value = numbers["scores"], numbers["value"]
    above = np.triu(np.ones((4, 4)), 1)
    weights = softmax(scores - 1e9 * above)
    blind = softmax(scores - 1e9 * np.triu(np.ones((4, 4))))
    return {
        "scores": scores,
        "masked_scores": scores - 1e9 * above,
        "weights": weights,
        "out": weights @ value,
        "infinity_scores": np.where(above == 1, -np.inf, scores),
        "infinity_weights": softmax(np.where(above == 1, -np.inf, scores)),
        "blind_number_weights": blind,
        "blind_number_out": blind @ value,
        "unmasked_weights": softmax(scores),
    }


@lesson("by-hand")
def by_hand() -> Numbers:
    x = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
    masked, weights, out = attend(x, x, x, hidden=future(3))
    return {
        "scores": x @ x.T,
        "scaled": x @ x.T / math.sqrt(2),
        "masked": masked,
        "weights": weights,
        "out": out,
    }


@lesson("running-example")
def running_example() -> Numbers:
    torch.manual_seed(0)
    table = nn.Embedding(4, 4)
    layer = FourProjections(4, bias=False)
    x = table(torch.arange(4)).unsqueeze(0)
    query, key = layer.query(x), layer.key(x)
    weights, out = layer(x, future(4))
    return {
        "x": x,
        "query": query,
        "key": key,
        "value": layer.value(x),
        "masked": attend(query, key, key, hidden=future(4))[0],
        "weights": weights,
        "out": out,
        "parameters": sum(p.numel() for p in [*table.parameters(), *layer.parameters()]),
    }


def three_draws() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(42)
    return tuple(torch.randn(1, 4, 8) for _ in range(3))


@lesson("simple-attention")
def simple_attention() -> Numbers:
    scores, weights, out = attend(*three_draws())
    _, causal_weights, causal_out = attend(*three_draws(), hidden=future(4))
    return {
        "scores": scores,
        "weights": weights,
        "out": out,
        "causal_weights": causal_weights,
        "causal_out": causal_out,
    }


def sinusoidal(length: int, width: int) -> torch.Tensor:
    """sin and cos of t / 10000^(2i / width), in turns."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


@lesson("short-sequence")
def short_sequence() -> Numbers:
    torch.manual_seed(0)
    fused, project = nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)
    x = torch.randn(1, 10, 64) + sinusoidal(10, 64)
    heads = (part.unflatten(-1, (4, 16)).transpose(1, 2) for part in fused(x).chunk(3, dim=-1))
    _, weights, mixed = attend(*heads, hidden=future(10))
    out = project(mixed.transpose(1, 2).flatten(2))
    at_five = weights[0, :, 5]
    return {"heads": at_five, "mean": at_five.mean(dim=0), "out": out[0, 5, :8]}


@lesson("temperature")
def temperature() -> Numbers:
    numbers: Numbers = {}
    for degrees in (0.5, 1.0, 2.0):
        numbers[f"weights_{degrees}"] = attend(*three_draws(), degrees)[1]
    for degrees in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0):
        numbers[f"first_row_{degrees}"] = attend(*three_draws(), degrees)[1][0, 0]
    return numbers


@lesson("scaling")
def scaling() -> Numbers:
    scores = torch.tensor([[10.0, 1, 1], [1, 0.5, 0.5]], requires_grad=True)
    F.softmax(scores, dim=-1)[:, 0].sum().backward()
    rows = torch.tensor([[10.0, 0, 0], [10, 1, 1], [1, 0.5, 0.5]])
    return {"saturation": F.softmax(rows, dim=-1), "gradient": scores.grad}


@lesson("heads")
def one_head_and_many() -> Numbers:
    three_draws()
    one, many = FourProjections(64, 1), FourProjections(64, 8)
    x = torch.randn(1, 8, 64)
    eight = many(x)[0][0]
    return {
        "one_head": one(x)[0],
        "eight_heads": eight,
        "mean_of_four": eight[:4].mean(dim=0),
        "num_parameters": sum(p.numel() for p in many.parameters()),
    }


@lesson("demonstrate-attention")
def demonstrate_attention() -> Numbers:
    torch.manual_seed(0)
    layer = FourProjections(32, 4)
    weights, out = layer(torch.randn(1, 6, 32))
    return {"weights": weights, "out": out}


@lesson("demonstrate-causal-attention")
def demonstrate_causal_attention() -> Numbers:
    torch.manual_seed(0)
    draws = [torch.randn(1, 1, 6, 8) for _ in range(3)]
    return {
        "full_weights": attend(*draws)[1],
        "causal_weights": attend(*draws, hidden=future(6))[1],
    }


@lesson("position")
def position() -> Numbers:
    return {"table": sinusoidal(4, 8)}


@lesson("masked-rows")
def masked_rows() -> Numbers:
    torch.manual_seed(0)
    draws = [torch.randn(1, 1, 3, 4) for _ in range(3)]
    hidden = ~torch.tensor([[True, False, False], [False] * 3, [True] * 3])
    scores, weights, _ = attend(*draws, hidden=hidden)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = F.scaled_dot_product_attention(*draws, attn_mask=~hidden)
    return {
        "masked_scores": scores,
        "naive_weights": weights,
        "repaired_weights": weights.nan_to_num(),
        "weights": weights.nan_to_num(),
        "out": out,
    }


def influence(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """|∂ Σ out / ∂ word| for each word of x [1, length, width]."""
    return torch.autograd.grad(out.sum(), x)[0][0].norm(dim=-1)


@lesson("relative-positions")
def relative_positions() -> Numbers:
    slopes = np.array([1 / 4, 1 / 16, 1 / 64, 1 / 256])
    weights = softmax(-slopes[:, None] * np.arange(1023, -1, -1))
    # As transformers' T5 computes it: exact entries up to 15, then logarithmic ones, in float32.
    distance = torch.arange(129)
    far = 16 + ((distance / 16).float().log() / math.log(128 / 16) * 16).long()
    buckets = torch.where(distance < 16, distance, far.clamp(max=31))
    torch.manual_seed(0)
    layer = FourProjections(32)
    omega = 10000 ** (-torch.arange(0, 32, 2).double() / 32)
    angle = torch.arange(128).double()[:, None] * omega
    table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()
    products = (layer.query(table)[:-3] * layer.key(table)[3:]).sum(-1)
    return {
        "alibi_slopes": slopes,
        "alibi_near": weights[:, -128:].sum(-1),
        "t5_beginnings": torch.searchsorted(buckets, torch.arange(32)),
        "projected": torch.stack([products.min(), products.max()]),
    }


@lesson("sparse-attention")
def sparse_attention() -> Numbers:
    distance = torch.arange(64)[:, None] - torch.arange(64)
    hidden = (distance < 0) | (distance > 8)

    def last_of(x: torch.Tensor, layers: int) -> torch.Tensor:
        for _ in range(layers):
            x = attend(x, x, x, hidden=hidden)[2]
        return x[..., -1, :]

    changes = []
    for layers in range(1, 5):
        torch.manual_seed(0)
        x = torch.randn(1, 1, 64, 8, dtype=torch.float64)
        before = last_of(x, layers)
        x[..., 63 - 8 * layers, :] *= -1
        changes.append((last_of(x, layers) - before).abs().max())
    return {"window_changes": torch.stack(changes)}


@lesson("flash-attention")
def flash_attention() -> Numbers:
    scores = torch.tensor([1, 3, 2, 0, 5, 4, -1, 2], dtype=torch.float64)
    values = torch.arange(1, 9, dtype=torch.float64)
    torch.manual_seed(0)
    query, key, value, grad_out = (torch.randn(1, 1, 70, 16, dtype=torch.float64) for _ in range(4))
    for x in (query, key, value):
        x.requires_grad_()
    out = F.scaled_dot_product_attention(query, key, value)
    gradients = torch.autograd.grad(out, (query, key, value), grad_out)
    return {
        "whole_out": (scores.softmax(0) * values).sum(),
        "whole_lse": scores.logsumexp(0),
        "part_lse": torch.stack([scores[:5].logsumexp(0), scores[5:].logsumexp(0)]),
        "largest_gradients": torch.stack([g.abs().max() for g in gradients]),
        "row_means": (grad_out * out).sum(-1),
    }


@lesson("linear-attention")
def linear_attention() -> Numbers:
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 6, n, dtype=torch.float64) for n in (3, 3, 2))
    weights = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
    queries = torch.tensor([[1.0, 0], [0, 1], [-1, 0.5], [1, 1]])
    keys = torch.tensor([[1.0, -1], [0, 1], [2, 0], [-1, 1]])
    seen = ((F.elu(queries) + 1) @ (F.elu(keys) + 1).mT).tril()
    values = torch.arange(1.0, 5)[:, None]
    return {"order_out": weights @ value, "causal_out": seen @ values / seen.sum(-1, keepdim=True)}


@lesson("kv-cache")
def kv_cache() -> Numbers:
    torch.manual_seed(0)
    x, layer = torch.randn(1, 6, 16), FourProjections(16, 2)
    keys = values = torch.empty(1, 2, 0, 8)
    rows = []
    for t in range(6):
        token = x[:, t : t + 1]
        keys = torch.cat([keys, layer.heads(layer.key(token))], dim=2)
        values = torch.cat([values, layer.heads(layer.value(token))], dim=2)
        rows.append(attend(layer.heads(layer.query(token)), keys, values)[2])
    return {"out": torch.cat(rows, dim=2), "rows_copied_by_concatenation": sum(range(1000))}


@lesson("rnn-against-attention")
def rnn_against_attention() -> Numbers:
    torch.manual_seed(0)
    lstm, attention = nn.LSTM(16, 16, batch_first=True), FourProjections(16)
    x = torch.randn(1, 65, 16, requires_grad=True)
    places = 64 - torch.tensor([0, 1, 2, 4, 8, 16, 32, 64])
    n, d = 1000, 512
    return {
        "recurrent_operations": n * d * d,
        "attention_operations": n * n * d,
        "lstm_gradient": influence(lstm(x)[0][:, -1], x)[places],
        "attention_gradient": influence(attention(x)[1][:, -1], x)[places],
    }


@lesson("bottleneck")
def bottleneck() -> Numbers:
    torch.manual_seed(0)
    encoder = nn.LSTM(32, 32, batch_first=True)
    x = torch.randn(1, 40, 32, requires_grad=True)
    return {"influence": influence(encoder(x)[1][0], x), "source_words": 9, "target_words": 9}


@lesson("bahdanau")
def bahdanau() -> Numbers:
    h, s = torch.tensor([[1.0, 0], [0, 1], [-1, -1]]), torch.tensor([0.5, -0.5])
    scores = (h + s).tanh().sum(dim=-1)
    weights = F.softmax(scores, dim=-1)
    torch.manual_seed(0)
    layer = layers.AdditiveAttention(512, 512, 256)
    context, layer_weights = layer(torch.randn(8, 20, 512), torch.randn(8, 512))
    return {
        "by_hand_scores": scores,
        "by_hand_weights": weights,
        "by_hand_context": weights @ h,
        "weights": layer_weights.reshape(8, 20),
        "context": context.reshape(8, 512),
        "parameters": sum(p.numel() for p in layer.parameters()),
    }


@lesson("luong")
def luong() -> Numbers:
    numbers: Numbers = {}
    for method in ("dot", "general", "concat"):
        torch.manual_seed(0)
        layer = layers.MultiplicativeAttention(16, 16, method)
        context, weights = layer(torch.randn(2, 6, 16), torch.randn(2, 16))
        numbers[f"{method}_layer_weights"] = weights.reshape(2, 6)
        numbers[f"{method}_layer_context"] = context.reshape(2, 16)
        wide = layers.MultiplicativeAttention(512, 512, method)
        numbers[f"{method}_parameters"] = sum(p.numel() for p in wide.parameters())
    h, s = torch.tensor([[1.0, 0], [0, 1], [-1, -1]]), torch.tensor([0.5, -0.5])
    numbers["dot_weights"] = numbers["general_weights"] = F.softmax(h @ s, dim=-1)
    numbers["swapped_weights"] = F.softmax(h @ s.flip(0), dim=-1)
    return numbers


@lesson("seq2seq")
def seq2seq() -> Numbers:
    torch.manual_seed(0)
    model = sequence.AttentionSeq2Seq(10000, 8000, 256, 8, 2)
    src, tgt = torch.randint(0, 10000, (4, 30)), torch.randint(0, 8000, (4, 25))
    with torch.no_grad():
        logits, weights = model(src, tgt, None, True)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "logits_shape": np.array(logits.shape),
        "weights_shape": np.array(weights.shape),
        "first_logits": logits[0, 0, :8],
        "first_weights": weights[0, 0, 0],
    }


def simulated_heads() -> np.ndarray:
    """Four patterns that are made up, over eight tokens."""
    n = 8
    adjacent = np.eye(n) * 0.4 + np.eye(n, k=1) * 0.3 + np.eye(n, k=-1) * 0.3
    nouns = np.zeros((n, n))
    nouns[:, [1, 5]] = 0.5
    structural = np.eye(n) * 0.5
    structural[0, 4] = structural[4, 0] = 0.5
    structural[1, 5] = structural[5, 1] = 0.25
    punctuation = np.zeros((n, n))
    punctuation[:, -2] = 1.0
    heads = np.stack([adjacent, nouns, structural, punctuation])
    return heads / heads.sum(axis=-1, keepdims=True)


@lesson("heads-learn")
def heads_learn() -> Numbers:
    heads = simulated_heads()
    rows = heads[:, :7]  # the last token is padding
    norms = np.linalg.norm(rows, axis=-1)
    cosines = np.einsum("iqk,jqk->ijq", rows, rows) / np.einsum("iq,jq->ijq", norms, norms)
    terms = rows * np.log(rows, where=rows > 0, out=np.zeros_like(rows))
    # A padding key counts as visible where it has weight.
    seen = 7 + (rows[..., 7] > 0)
    return {
        "illustrative": heads,
        "illustrative_similarity": cosines.mean(axis=-1),
        "illustrative_entropy": (-terms.sum(axis=-1) / np.log(seen)).mean(axis=-1),
        "illustrative_padding": rows[..., 7].mean(axis=-1),
        "illustrative_same": np.einsum("hqq->h", heads[:, :7, :7]) / 7,
    }


@lesson("diagnose")
def diagnose() -> Numbers:
    torch.manual_seed(0)
    query, key = torch.randn(1, 8, 32, 16), torch.randn(1, 8, 32, 16)
    weights = attend(query, key, key)[1][0]
    cosine = F.cosine_similarity(weights[:, None], weights[None], dim=-1).mean(dim=-1)
    torch.manual_seed(0)
    x = torch.randn(2, 2, 6, 8)
    ids = torch.tensor([[5, 3, 7, 2, 0, 0], [8, 1, 4, 6, 9, 0]])
    is_padding = (ids == 0)[:, None, None]

    def on_padding(hidden: torch.Tensor | None) -> torch.Tensor:
        _, weights, _ = attend(x, x, x, hidden=hidden)
        share = (weights * is_padding).sum(dim=-1)
        return torch.cat([share[0, :, :4].flatten(), share[1, :, :5].flatten()]).mean()

    return {
        "random_similarity": cosine,
        "no_mask": on_padding(None),
        "wrong_polarity": on_padding(~is_padding),
        "right_mask": on_padding(is_padding),
        "bytes": 4096**2 * 12 * 4,
    }
