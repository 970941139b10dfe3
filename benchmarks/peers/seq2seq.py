#!/usr/bin/env python3
"""Training of a sequence-to-sequence model: `heed bench seq2seq` beside the same model in PyTorch, alternating.

Usage: seq2seq.py HEED [--rounds N] [--threads N], with the packages of tests/python/requirements.txt."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/python"))
import torch_sequence  # noqa: E402

# As cli/bench/seq2seq.cc has them.
SRC_VOCAB, TGT_VOCAB, SRC_LEN, TGT_LEN = 10_000, 8_000, 30, 25
BATCH, D_MODEL, HEADS, LAYERS = 64, 256, 8, 2
STEPS = 3


class Peer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        self.src = torch.randint(4, SRC_VOCAB, (BATCH, SRC_LEN))
        self.tgt = torch.randint(4, TGT_VOCAB, (BATCH, TGT_LEN + 1))

    def step(self) -> None:
        self.optimizer.zero_grad()
        logits, _ = self.model(self.src, self.tgt[:, :-1], None, False)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), self.tgt[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        loss.item()

    def seconds(self) -> list[float]:
        self.step()
        times = []
        for _ in range(STEPS):
            start = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - start)
        return times


def heed_seconds(command: str, threads: int) -> list[float]:
    arguments = ["bench", "seq2seq", "--attention", "multihead", "--threads", threads, "--repeat", STEPS, "--json"]
    out = subprocess.run([command, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    result = json.loads(out)["results"][0]
    return [result["median_ms"] / 1e3, result["best_ms"] / 1e3]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("heed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    peer = Peer(torch_sequence.AttentionSeq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HEADS, LAYERS))
    times = {"heed": [], "PyTorch " + torch.__version__: []}
    for _ in range(arguments.rounds):
        for title, seconds in zip(times, (heed_seconds(arguments.heed, arguments.threads), peer.seconds())):
            times[title].append((statistics.median(seconds), min(seconds)))
    print(f"target tokens a second in training, {arguments.threads} threads, {arguments.rounds} rounds")
    for title, rounds in times.items():
        median = statistics.median(median for median, _ in rounds)
        best = min(best for _, best in rounds)
        print(f"{title:20} median {BATCH * TGT_LEN / median:7.0f}  best {BATCH * TGT_LEN / best:7.0f}")


if __name__ == "__main__":
    main()
