"""The numbers on the page are heed's."""

import json

import numpy as np
import pytest

from conftest import SENTENCE, settle, weights_of
from exhaustive import diagonal

# The allowed difference between the page's softmax and heed's.
TOLERANCE = 1e-6


def shown_weights(page, head: int) -> np.ndarray:
    flat = np.array(page.evaluate("(head) => heed.weights(head)", head))
    length = round(len(flat) ** 0.5)
    return flat.reshape(length, length)


def array(page, name: str, width: str) -> np.ndarray:
    """[head, token, width] as embedded in the page."""
    sentence = page.evaluate(
        "([name, width]) => { const s = heed.sentences[heed.state.sentence];"
        " return {values: Array.from(s[name]), shape: [s.numHeads, s.length, s[width]]}; }", [name, width])
    return np.array(sentence["values"]).reshape(sentence["shape"])


def test_opens_with_the_sentence_and_has_a_worked_example(written, guard):
    page = guard.open(written(SENTENCE))
    assert page.locator('[aria-selected="true"]').inner_text() == SENTENCE
    assert page.locator("#strip button").all_inner_texts() == SENTENCE.split()
    assert page.title() == f"{SENTENCE} · heed"
    page.locator("#sentences button", has_text="Worked example").click()
    settle(page)
    tokens = page.locator("#strip button").all_inner_texts()
    assert tokens == ["the", "cat", "sat", "on", "the", "mat"]
    assert page.inner_text("#readout").startswith("sat attends to cat with 0.74")
    assert shown_weights(page, 0).argmax(axis=1).tolist() == [4, 2, 1, 5, 0, 3]
    assert shown_weights(page, 1).argmax(axis=1).tolist()[1:] == [0, 1, 2, 3, 4]

    page.click('#temperatures button[value="0.1"]')
    settle(page)
    cold = shown_weights(page, 0)
    assert cold.max(axis=1).min() > 0.99
    assert cold[2, 1] > 0.9999 and cold[0, 4] > 0.9999 and cold[4, 0] > 0.9999

    page.click('#temperatures button[value="3"]')
    settle(page)
    warm = shown_weights(page, 0)
    assert warm.max() < 0.36
    assert warm.argmax(axis=1).tolist() == [4, 2, 1, 5, 0, 3]


@pytest.mark.parametrize(("mask", "temperature"), diagonal(["causal", "none", "sliding_window(2, 1)"], [0.1, 1, 3]))
def test_weights_agree_with_heed(written, guard, heed, mask, temperature):
    page = guard.open(written(SENTENCE, "--heads", 8))
    page.click("#mask-none")
    settle(page)  # the box would not be clicked while it is still drawn as checked
    if mask == "causal":
        page.check("#mask-causal")
    elif mask != "none":
        page.fill("#window-left", "2")
        page.fill("#window-right", "1")
    page.fill("#temperature-text", str(temperature))
    page.press("#temperature-text", "Enter")
    settle(page)
    expected = np.array(weights_of(heed, SENTENCE, "--heads", 8, "--mask", mask, "--temperature", temperature))
    for head in range(8):
        assert np.abs(shown_weights(page, head) - expected[head]).max() < TOLERANCE


def test_a_mask_that_the_page_has_no_switch_for(written, guard, heed):
    arguments = (SENTENCE, "--mask", "prefix(3) & sliding_window(4, 4)")
    page = guard.open(written(*arguments))
    assert page.is_checked("#mask-given")
    assert "prefix" in page.inner_text("#mask-given-name")
    expected = np.array(weights_of(heed, *arguments))
    for head in range(4):
        assert np.abs(shown_weights(page, head) - expected[head]).max() < TOLERANCE
    page.uncheck("#mask-given")
    settle(page)
    assert (shown_weights(page, 0) > 0).all()


def test_the_limits_of_temperature_and_what_lies_near(written, guard):
    page = guard.open(written(SENTENCE))
    page.click('#temperatures button[value="0"]')
    settle(page)
    assert set(shown_weights(page, 0).ravel()) == {0, 1}
    assert page.inner_text("#entropy") == "0 nats"
    page.click('#temperatures button[value="Infinity"]')
    settle(page)
    rows = np.tril(np.ones((9, 9)))
    assert np.allclose(shown_weights(page, 0), rows / rows.sum(axis=1, keepdims=True), atol=1e-12)
    for temperature in ("1e-300", "1e-9", "1e9", "1e300"):
        page.fill("#temperature-text", temperature)
        page.press("#temperature-text", "Enter")
        settle(page)
        weights = shown_weights(page, 0)
        assert np.isfinite(weights).all()
        assert np.allclose(weights.sum(axis=1), 1, atol=1e-12)


def test_the_slider_is_continuous_between_its_limits(written, guard):
    page = guard.open(written(SENTENCE))
    seen = []
    for place in (0, 250, 499.5, 500, 500.5, 750, 1000):
        page.evaluate("(place) => { const slider = document.getElementById('temperature');"
                      " slider.value = place; slider.dispatchEvent(new Event('input')); }", place)
        seen.append(page.evaluate("String(heed.state.temperature)"))
    temperatures = [float(text.replace("Infinity", "inf")) for text in seen]
    assert temperatures[0] == 0 and temperatures[-1] == float("inf")
    assert temperatures[1:-1] == pytest.approx([0.1, 0.9954, 1, 1.0046, 10], rel=1e-4)


def test_steps_show_the_way_of_the_chosen_cell(written, guard):
    page = guard.open(written(SENTENCE), "#head=2&q=5&k=3&t=0.5")
    query, key = array(page, "query", "headDim")[2], array(page, "key", "headDim")[2]
    value = array(page, "value", "valueDim")[2]
    scores = query[5] @ key.T / np.sqrt(16)
    powers = np.exp((scores[:6] - scores[:6].max()) / 0.5)
    weights = powers / powers.sum()
    results = page.locator("#steps .result").all_inner_texts()
    shown = [float(text.replace("−", "-")) for text in results]
    assert shown[0] == pytest.approx(scores[3] * 4, abs=6e-5)
    assert shown[1] == shown[2] == pytest.approx(scores[3], abs=6e-5)
    assert shown[3] == pytest.approx(weights[3], abs=6e-7)
    boxes = page.locator("#steps .vector")
    output = [float(text.replace("−", "-")) for text in boxes.nth(3).locator("span").all_inner_texts()[:16]]
    assert output == pytest.approx((weights @ value[:6]).tolist(), abs=0.0051)
    entropy = -(weights * np.log(weights)).sum()
    assert page.inner_text("#entropy") == f"{entropy:.3f} nats"
    assert page.inner_text("#perplexity") == f"{np.exp(entropy):.2f} keys"


def test_the_table_has_every_weight(written, guard, heed):
    page = guard.open(written(SENTENCE), "#head=1")
    page.click("#table-box summary")
    settle(page)
    cells = page.locator("#table td").all_inner_texts()
    expected = np.array(weights_of(heed, SENTENCE))[1]
    for cell, weight in zip(np.reshape(cells, (9, 9))[np.tril_indices(9)], expected[np.tril_indices(9)]):
        assert float(cell) == pytest.approx(weight, abs=5.1e-5)
    assert set(np.reshape(cells, (9, 9))[np.triu_indices(9, 1)]) == {"masked"}


def test_padding_and_a_row_that_sees_nothing(written, guard):
    page = guard.open(written(SENTENCE), "#mask=none&q=8")
    page.check("#mask-padding")
    page.fill("#padding-count", "3")
    settle(page)
    weights = shown_weights(page, 0)
    assert (weights[:, 6:] == 0).all()
    assert np.allclose(weights.sum(axis=1), 1)
    page.check("#mask-window")
    page.fill("#window-left", "0")
    page.fill("#window-right", "0")
    settle(page)
    assert (shown_weights(page, 0)[8] == 0).all()
    assert page.inner_text("#entropy") == "—"
    assert "masked" not in page.inner_text("#readout") and "does not see" in page.inner_text("#readout")


def test_weights_alone_are_enough(written, guard, tmp_path):
    """A program that has no queries and keys hands over weights; temperature 1 gives them back."""
    text = written(SENTENCE).read_text()
    start = text.index('id="data">') + len('id="data">')
    data = json.loads(text[start:text.index("</script>", start)])
    for name in ("query", "key", "value", "headDim", "valueDim", "scale"):
        del data["sentences"][0][name]
    path = tmp_path / "weights.html"
    path.write_text(text[:start] + json.dumps(data) + text[text.index("</script>", start):])
    page = guard.open(path, "#q=4")
    expected = array(page, "weights", "length")
    assert np.abs(shown_weights(page, 1) - expected[1]).max() < 1e-7
    page.fill("#temperature-text", "2")
    page.press("#temperature-text", "Enter")
    settle(page)
    roots = np.sqrt(expected[1])
    assert np.abs(shown_weights(page, 1) - roots / roots.sum(axis=1, keepdims=True)).max() < 1e-7
    assert "not known" in page.inner_text("#steps")
