"""The pictures of the gallery whose numbers the tutorials compute, against PyTorch: each number at its printed precision."""

import html.parser
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from lessons import FourProjections, attend, future, three_draws

SENTENCE = "The cat sat on the mat".split()

Matrix = list[list[str]]


class Tables(html.parser.HTMLParser):
    """The numbers of every table of a page, without its names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[Matrix] = []
        self.is_number = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        self.is_number = tag == "td"

    def handle_endtag(self, tag: str) -> None:
        self.is_number = False

    def handle_data(self, data: str) -> None:
        if self.is_number:
            self.tables[-1][-1].append(data)


def drawn(length: int, hidden: torch.Tensor | None = None, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return attend(*(torch.randn(1, length, 8) for _ in range(3)), hidden=hidden)[1]


def layer_of_heads() -> torch.Tensor:
    torch.manual_seed(0)
    layer = FourProjections(64, 8)
    return layer(torch.randn(2, 10, 64))[0][0]


def one_and_many() -> torch.Tensor:
    three_draws()
    one, many = FourProjections(64, 1), FourProjections(64, 8)
    x = torch.randn(1, 8, 64)
    return torch.stack([one(x)[0][0, 0], many(x)[0][0, :4].mean(dim=0)])


def notebook() -> tuple[FourProjections, torch.Tensor]:
    """The notebook's draws, in its order: Q, K and V, a layer, its input."""
    three_draws()
    return FourProjections(128, 8), torch.randn(2, 10, 128)


def eight_causal_heads() -> torch.Tensor:
    layer, x = notebook()
    return layer(x, hidden=future(10))[0][0]


def sentence_head() -> torch.Tensor:
    layer, _ = notebook()
    table = nn.Embedding(256 + len(SENTENCE), 128)  # the bytes, then a row for each word
    ids = torch.tensor([[256 + SENTENCE.index(word) for word in SENTENCE]])
    return layer(table(ids), hidden=future(len(SENTENCE)))[0][0, :1]


def running_example() -> torch.Tensor:
    torch.manual_seed(0)
    x = nn.Embedding(4, 4).weight[None]
    return FourProjections(4, bias=False)(x, hidden=future(4))[0][0]


def temperatures() -> torch.Tensor:
    return torch.cat([attend(*three_draws(), temperature=t)[1] for t in (0.5, 1.0, 2.0)])


PICTURES: dict[str, Callable[[], torch.Tensor]] = {
    "weights-of-four": lambda: drawn(4),
    "bidirectional-and-causal": lambda: torch.cat([drawn(6), drawn(6, future(6))]),
    "eight-heads": layer_of_heads,
    "one-and-many-heads": one_and_many,
    "temperatures": temperatures,
    "no-masking": lambda: drawn(4, seed=42),
    "with-causal-masking": lambda: drawn(4, future(4), seed=42),
    "eight-causal-heads": eight_causal_heads,
    "sentence-head": sentence_head,
    "running-example": running_example,
}


@pytest.fixture(scope="module")
def pages(heed: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("gallery")
    heed("gallery", folder, "--light", "--format", "html", "--only", ",".join(PICTURES))
    return folder


@pytest.mark.parametrize("name", PICTURES)
def test_numbers_are_pytorchs(name: str, pages: pathlib.Path) -> None:
    tables = [[row for row in table if row] for table in Tables((pages / f"{name}.html").read_text()).tables]
    expected = PICTURES[name]().detach().double().numpy()
    assert np.shape(tables) == expected.shape
    for found, number in zip(np.array(tables).flat, expected.flat, strict=True):
        if found == "masked":
            assert number == 0
            continue
        decimals = len(found.split(".")[1])
        assert abs(float(found) - number) <= 0.5 * 10**-decimals + 1e-6, (found, number)
