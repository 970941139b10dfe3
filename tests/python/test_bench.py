"""python -m heed.bench: what it prints and writes, not how fast anything is."""

import json
import pathlib
import time
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
    assert table[2 + 2 * 7] == "" and heed.attention_target() in table[3 + 2 * 7]
    report = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert report["machine"]["attention_target"] == heed.attention_target()
    first = report["results"][0]
    assert first["case"]["implementation"] == "heed" and first["case"]["seq"] == 256 and first["median_ms"] > 0
    assert first["repetitions"] == 1 and first["quartiles_ms"] == [first["median_ms"]] * 2
    assert first["peak_share_median"] == pytest.approx(first["gflops"] / first["peak_gflops"])
    texts = [node.text for node in ElementTree.parse(tmp_path / "a.svg").iter() if node.tag.endswith("text")]
    assert "decode, 2 key heads, 17 keys, 2 threads" in texts


def test_masks_and_caches_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that not every peer knows, also where keys come from memory."""
    masks = ["--pass", "forward,backward", "--mask", "columns(4)", "--seq", "20", "--heads", "2", "--peer", "SDPA"]
    caches = ["--pass", "decode", "--storage", "float32,float16,bfloat16,int8,int4", "--seq", "33", "--kv-heads", "4,8"]
    halves = ["--pass", "forward,backward", "--dtype", "float16,bfloat16", "--seq", "20", "--mask", "causal"]
    for chosen, count in ((masks, 2 * 2), (caches, 2 * (4 + 3 + 2 + 2 + 2)), (halves, 2 * 2 * 2)):
        assert main([*chosen, "--threads", "1", "--repeat", "1", "--json", "-"]) == 0
        report = json.loads(capsys.readouterr().out)
        names = {result["case"]["implementation"] for result in report["results"]}
        assert {"heed", "PyTorch SDPA"} <= names
        if "ORT Attention" in names or "ORT GroupQueryAttention" in names or chosen is not caches:
            assert len(report["results"]) == count


def test_what_is_wrong_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from heed.bench.peers import Heed

    monkeypatch.setattr(Heed, "_forward", lambda self, query, key, value, options: (lambda: None, lambda: value[0]))
    with pytest.raises(SystemExit) as ended:
        main(["--pass", "forward", "--seq", "9", "--mask", "none", "--threads", "1", "--repeat", "1"])
    assert "heed is wrong by " in str(ended.value.code)


def test_calls_take_turns() -> None:
    from heed.bench.cases import Case
    from heed.bench.measure import Measured, measure, summarize

    made: list[str] = []
    one, other = Measured(Case("forward"), "one"), Measured(Case("forward"), "other")
    measure(one.case, [(one, lambda: (made.append("one"), time.sleep(0.006))), (other, lambda: made.append("other"))], 3)
    assert len(one.seconds) == len(other.seconds) == 3
    first = [name for name, following in zip(made, [*made[1:], ""]) if name != following]
    assert first == ["one", "other"] * 4  # once to warm up
    assert min(one.seconds) >= 0.006 > max(other.seconds)
    (result,) = summarize([Measured(Case("forward"), "heed", [4.0, 1.0, 2.0, 9.0, 3.0], [1.0, 2.9, 1.0, 1.0, 1.0])])
    assert (result["median_ms"], result["best_ms"], result["quartiles_ms"]) == (3000, 1000, [2000, 4000])
    assert (result["repetitions"], result["busy_threads"]) == (5, 1)


def test_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing"]) == 2
    assert 'no case has "nothing" in its name' in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--seq", "0"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        main(["--pass", "sideways"])
    assert ended.value.code == 2 and "'sideways' is not one of tutorial, forward" in capsys.readouterr().err
    assert main(["--mask", "diagonal"]) == 2
    assert "--mask: " in capsys.readouterr().err
    assert main(["--library", "/nowhere/libheed_peers.so"]) == 1
    assert "--library: /nowhere/libheed_peers.so" in capsys.readouterr().err
