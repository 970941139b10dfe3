"""python -m heed.bench: what it prints and writes, not how fast anything is."""

import json
import pathlib
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
import torch

import heed
from heed.bench.__main__ import main


@pytest.fixture(autouse=True)
def _threads_afterwards() -> Iterator[None]:
    yield
    heed.set_num_threads(0)
    torch.set_num_threads(1)


def test_every_peer_computes_the_same(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """It ends when one does not."""
    arguments = ["--seq", "17", "--threads", "1,2", "--repeat", "1"]
    assert main([*arguments, "--json", str(tmp_path / "a.json"), "--svg", str(tmp_path / "a.svg")]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("| ms a call | heed | PyTorch SDPA | PyTorch by hand |")
    assert table[2].startswith("| tutorial: causal, T = 256, 1 thread |") and "×" in table[2]
    assert len(table) == 2 + 2 * 7
    report = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert report["machine"]["attention_target"] == heed.attention_target()
    first = report["results"][0]
    assert first["peer"] == "heed" and first["case"]["q_len"] == 256 and first["median_ms"] > 0
    texts = [node.text for node in ElementTree.parse(tmp_path / "a.svg").iter() if node.tag.endswith("text")]
    assert "decode, 2 key heads, 17 keys, 2 threads" in texts


def test_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing"]) == 2
    assert 'no case has "nothing" in its name' in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--seq", "0"])
    assert ended.value.code == 2
