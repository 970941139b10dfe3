"""heed.diagnose, heed.figure and heed.show of what models return."""

import json
import pathlib
import re
import types

import numpy as np
import pytest
import torch

import heed
from test_show import numbers_of

RANDOM = np.random.default_rng(0)


def weights_of(*shape: int) -> np.ndarray:
    scores = RANDOM.standard_normal(shape)
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


# The weights of two layers of two heads on five tokens: one head looks at the previous token, the others are random.
LAYERS = [weights_of(1, 2, 5, 5), weights_of(1, 2, 5, 5)]
LAYERS[1][0, 1] = np.eye(5, k=-1)
LAYERS[1][0, 1, 0, 0] = 1


def sentences_of(page: heed.Page) -> list[dict]:
    data = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.html, re.DOTALL)
    return json.loads(data[1])["sentences"]


# --- diagnostics ----------------------------------------------------------------------------------------------------


def test_measures_are_their_definitions() -> None:
    weights = weights_of(2, 3, 6, 6)
    layer = heed.diagnose(weights)
    assert layer.name == "attention weights" and len(layer.heads) == 3
    for head, found in enumerate(layer.heads):
        rows = weights[:, head]
        assert found.rows == 12 and found.broken_rows == 0
        np.testing.assert_allclose(found.entropy, (-(rows * np.log(rows)).sum(-1) / np.log(6)).mean())
        np.testing.assert_allclose(found.first, rows[..., 0].mean())
        np.testing.assert_allclose(found.same, np.diagonal(rows, axis1=1, axis2=2).mean())
        np.testing.assert_allclose(found.previous, np.diagonal(rows, -1, 1, 2).mean())
        np.testing.assert_allclose(found.next, np.diagonal(rows, 1, 1, 2).mean())
    a, b = weights[:, 0], weights[:, 2]
    cosine = (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    np.testing.assert_allclose(layer.similarity[0, 2], cosine.mean())
    np.testing.assert_allclose(layer.mean_similarity, layer.similarity[np.triu_indices(3, 1)].mean())


def test_attention_and_its_weights_say_the_same() -> None:
    query, key = (RANDOM.standard_normal((2, 4, 9, 8)) for _ in range(2))
    options = {"causal": True, "softcap": 2.0}
    weights = heed.reference.attention(query, key, key, keep=["weights"], **options).weights
    of_attention = heed.diagnose(query, key, q_lengths=[9, 6], kv_lengths=[9, 6], **options)
    of_weights = heed.diagnose(weights, causal=True, q_lengths=[9, 6], kv_lengths=[9, 6])
    for one, other in zip(of_attention.heads, of_weights.heads):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(of_attention.similarity, of_weights.similarity, atol=1e-12)
    tensors = heed.diagnose(torch.from_numpy(query).float(), torch.from_numpy(key).float(), **options)
    assert torch.is_tensor(tensors.similarity)
    assert tensors.heads[0].rows == 2 * 8


def test_findings_and_layers() -> None:
    first, second = heed.diagnose(tuple(LAYERS))
    assert (first.name, second.name) == ("layer 0", "layer 1")
    (pattern,) = [finding for finding in second.findings if finding.kind == "previous-token head"]
    assert pattern.heads == [1] and pattern.score == 1 and not pattern.is_problem
    assert "previous-token head: head 1: " in str(second) and pattern.measured in str(pattern)
    assert pattern.meaning and isinstance(pattern.advice, str)
    equal = heed.diagnose(np.full((1, 2, 4, 4), 0.25))
    assert equal.findings[0].is_problem and str(equal.findings[0]).startswith("! ")
    assert "nothing was found" in str(equal._replace(findings=[]))


def outputs(**fields) -> types.SimpleNamespace:
    return types.SimpleNamespace(**fields)


def test_outputs_of_models() -> None:
    tensors = tuple(torch.from_numpy(x).float().requires_grad_() for x in LAYERS)
    assert [layer.name for layer in heed.diagnose(outputs(attentions=tensors))] == ["layer 0", "layer 1"]
    of_both = outputs(
        encoder_attentions=(weights_of(1, 2, 3, 3),), decoder_attentions=tensors[:1],
        cross_attentions=(weights_of(1, 2, 5, 3),), attentions=None,
    )  # fmt: skip
    found = heed.diagnose(of_both, q_lengths=[4], kv_lengths=[3])
    assert [layer.name for layer in found] == ["encoder 0", "decoder 0", "cross 0"]
    assert [layer.heads[0].rows for layer in found] == [3, 4, 4]
    page = heed.show(of_both, tokens=["a", "b", "c", "d", "e"], key_tokens=["x", "y", "z"])
    encoder, decoder, cross = sentences_of(page)
    assert encoder["tokens"] == ["x", "y", "z"]
    assert decoder["tokens"] == ["a", "b", "c", "d", "e"]
    assert cross["tokens"] == ["x", "y", "z", "a", "b", "c", "d", "e"]


def test_decoder_and_cross_lengths() -> None:
    """The queries of a decoder are its tokens, and so are its keys."""
    of_both = outputs(decoder_attentions=(weights_of(1, 1, 4, 4),))
    (layer,) = heed.diagnose(of_both, q_lengths=[2])
    assert layer.heads[0].rows == 2


def test_a_page_has_a_tab_for_each_layer() -> None:
    sentences = sentences_of(heed.show(tuple(LAYERS), tokens=list("abcde")))
    assert [sentence["title"] for sentence in sentences] == ["layer 0", "layer 1"]
    for sentence, layer in zip(sentences, LAYERS):
        assert sentence["tokens"] == list("abcde")
        np.testing.assert_array_equal(numbers_of(sentence["weights"], 2, 5, 5), layer[0].astype(np.float32))
    (one,) = sentences_of(heed.show(outputs(attentions=LAYERS[:1]), head=1))
    assert one["headNames"] == ["head 1"]
    recorded = tuple(torch.from_numpy(x).requires_grad_() for x in LAYERS)
    assert len(sentences_of(heed.show(recorded))) == 2


def test_a_model_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=3, num_attention_heads=2
    )
    model = transformers.LlamaModel._from_config(config, attn_implementation="eager").eval()
    found = model(torch.arange(7)[None], output_attentions=True)
    assert len(sentences_of(heed.show(found))) == 3
    layers = heed.diagnose(found, causal=True)
    assert [len(layer.heads) for layer in layers] == [2, 2, 2]
    assert all(layer.heads[0].rows == 6 for layer in layers)
    with pytest.raises(ValueError, match="has no attentions: call the model with output_attentions=True"):
        heed.show(model(torch.arange(7)[None]))


# --- figures --------------------------------------------------------------------------------------------------------


def test_figures(tmp_path: pathlib.Path) -> None:
    picture = heed.figure(LAYERS[0], tokens=list("abcde"), title="two heads", scale="log", color_map="blues")
    assert picture.render("png").startswith(b"\x89PNG") and picture.render("pdf").startswith(b"%PDF")
    svg = picture.render("svg").decode()
    assert "<svg" in svg and "two heads" in svg and picture._repr_svg_() == svg
    page = picture.page()
    assert page.startswith("<!DOCTYPE html>") and "<th" in page
    picture.save(tmp_path / "heads.svg")
    assert (tmp_path / "heads.svg").read_text(encoding="utf-8") == svg
    assert heed.figure(LAYERS[0], head=1).render("svg") != heed.figure(LAYERS[0]).render("svg")
    # The overview of all layers, one head of each, and a mask.
    overview = heed.figure(tuple(LAYERS), note="all layers").render("svg")
    recorded = [torch.from_numpy(x).requires_grad_() for x in LAYERS]
    of_tensors = heed.figure(outputs(attentions=recorded), note="all layers")
    assert of_tensors.render("svg") == overview
    assert heed.figure(LAYERS, head=1, note="all layers").render("svg") != overview
    mask = heed.figure(heed.causal().allow((4, 4)), tokens=list("abcd"))
    assert mask.page().count("<td>✗</td>") == 6
    assert heed.figure(heed.causal().allow((4, 4)), dark=True).render("svg") != mask.render("svg")


@pytest.mark.parametrize(
    ("text", "misuse"),
    [
        ("figure: scale is 'cubic', expected one of 'linear', 'log', 'per-row'", lambda: heed.figure(LAYERS[0], scale="cubic")),
        ("figure: format is 'gif', expected one of 'svg', 'png', 'pdf'", lambda: heed.figure(LAYERS[0]).render("gif")),
        (r"figure: weights has shape \[5\], expected \[queries, keys\]", lambda: heed.figure(LAYERS[0][0, 0, 0])),
        ("figure: batch is 1, of 1", lambda: heed.figure(LAYERS[0], batch=1)),
        ("figure: head is 2, of 2", lambda: heed.figure(LAYERS[0], head=2)),
        (r"the layers have shapes \[2, 5, 5\], \[1, 5, 5\], expected one for all",
         lambda: heed.figure([LAYERS[0], LAYERS[1][:, :1]])),
        ("figure: there are no layers", lambda: heed.figure(())),
        (r"show: attentions\[1\] is a NoneType, expected the weights of a layer", lambda: heed.show((LAYERS[0], None))),
        (r"show: cross_attentions\[0\] is a tuple", lambda: heed.show(outputs(cross_attentions=((LAYERS[0],),)))),
        ("diagnose: of weights softcap was given, expected mask, causal or window",
         lambda: heed.diagnose(LAYERS[0], softcap=1.0)),
        (r"diagnose: weights has shape \[5\], expected \[batch, num_heads, queries, keys\]",
         lambda: heed.diagnose(LAYERS[0][0, 0, 0])),
        ("q_lengths is 3, expected a number for each batch entry", lambda: heed.diagnose(LAYERS[0], q_lengths=3)),
        ("sum to", lambda: heed.diagnose(LAYERS[0] * 2)),
        (r"diagnose: weights.*pass weights.detach\(\)", lambda: heed.diagnose(torch.ones(2, 2).requires_grad_())),
        (r"figure: weights.*pass weights.detach\(\)", lambda: heed.figure(torch.ones(2, 2).requires_grad_())),
    ],
)  # fmt: skip
def test_misuse(text: str, misuse) -> None:
    with pytest.raises(ValueError, match=text):
        misuse()
