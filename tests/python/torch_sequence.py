"""The sequence models under test, written in PyTorch: parameters named and drawn in the same order."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch_layers as layers

Lengths = list[int] | None


def run_lstm(lstm: nn.LSTM, x: Tensor, lengths: Lengths, start=None) -> tuple[Tensor, tuple]:
    if lengths is None:
        return lstm(x, start)
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    out, state = lstm(packed, start)
    return pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0], state


def padding(lengths: Lengths, length: int) -> Tensor | None:
    """true = may not be seen, [batch, length]."""
    return None if lengths is None else torch.arange(length) >= torch.tensor(lengths)[:, None]


class AttentionSeq2Seq(nn.Module):
    def __init__(self, src: int, tgt: int, width: int, heads: int, num_layers: int) -> None:
        super().__init__()
        self.width = width
        self.src_embedding = nn.Embedding(src, width)
        self.tgt_embedding = nn.Embedding(tgt, width)
        self.pos_encoding = layers.SinusoidalPositionalEncoding(width, 5000)
        self.encoder_lstm = nn.LSTM(
            width, width // 2, num_layers, batch_first=True, bidirectional=True
        )
        self.encoder_attention = layers.cross(width, heads)
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_lstm = nn.LSTM(width, width, num_layers, batch_first=True)
        self.cross_attention = layers.cross(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.output_projection = nn.Linear(width, tgt)
        self.dropout = nn.Dropout(0.0)

    def forward(self, src: Tensor, tgt: Tensor, lengths: Lengths, packs: bool) -> tuple:
        blocked = padding(lengths, src.shape[1])
        blocked = None if blocked is None else blocked[:, None, None]
        x = self.pos_encoding(self.src_embedding(src) * math.sqrt(self.width))
        x, _ = run_lstm(self.encoder_lstm, x, lengths if packs else None)
        encoded = self.encoder_norm(x + self.encoder_attention(x, x, x, blocked)[0])
        x = self.pos_encoding(self.tgt_embedding(tgt) * math.sqrt(self.width))
        x, _ = self.decoder_lstm(x)
        attended, weights = self.cross_attention(x, encoded, encoded, blocked)
        return self.output_projection(self.cross_norm(x + attended)), weights


def join(states: Tensor) -> Tensor:
    """The two directions of each layer side by side."""
    return states.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2).contiguous()


class RecurrentSeq2Seq(nn.Module):
    def __init__(self, src: int, tgt: int, width: int, num_layers: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.src_embedding = nn.Embedding(src, width)
        self.tgt_embedding = nn.Embedding(tgt, width)
        self.encoder_lstm = nn.LSTM(
            width, width // 2, num_layers, batch_first=True, bidirectional=True
        )
        self.decoder_lstm = nn.LSTM(width, width, num_layers, batch_first=True)
        if kind == "additive":
            self.attention = layers.AdditiveAttention(width, width, width)
        elif kind != "none":
            self.attention = layers.MultiplicativeAttention(width, width, kind)
        self.combine = nn.Linear(2 * width, width, bias=False)
        self.output_projection = nn.Linear(width, tgt)
        self.dropout = nn.Dropout(0.0)

    def align(self, encoded: Tensor, state: Tensor, blocked: Tensor) -> tuple[Tensor, Tensor]:
        """What one state [batch, width] sees, sentence by sentence, so that none has padding."""
        context, weights = [], torch.zeros(blocked.shape)
        for i, length in enumerate((~blocked).sum(1).tolist()):
            seen, weight = self.attention(encoded[i : i + 1, :length], state[i : i + 1])
            context.append(seen)
            weights[i, :length] = weight.flatten()
        return torch.cat(context), weights

    def forward(self, src: Tensor, tgt: Tensor, lengths: Lengths, packs: bool) -> tuple:
        encoded, (hidden, cell) = run_lstm(self.encoder_lstm, self.src_embedding(src), lengths)
        start = join(hidden), join(cell)
        states, _ = self.decoder_lstm(self.tgt_embedding(tgt), start)
        weights = None
        if self.kind == "none":
            context = start[0][-1].unsqueeze(1).expand_as(states)
        else:
            blocked = padding(lengths, src.shape[1])
            seen = [self.align(encoded, states[:, t], blocked) for t in range(tgt.shape[1])]
            context = torch.stack([c for c, _ in seen], dim=1)
            weights = torch.stack([w for _, w in seen], dim=1).unsqueeze(1)
        combined = torch.tanh(self.combine(torch.cat([context, states], dim=-1)))
        return self.output_projection(combined), weights


def losses(model: nn.Module, src: Tensor, lengths: Lengths, packs: bool, tgt: Tensor) -> Tensor:
    """50 steps on the same batch of targets, where a target of 0 does not count."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    result = []
    for _ in range(50):
        optimizer.zero_grad()
        logits, _ = model(src, tgt[:, :-1], lengths, packs)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        result.append(loss.detach())
    return torch.stack(result)
