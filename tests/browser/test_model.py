"""The page of a whole model: its map of layers and heads, and the numbers behind each head."""

import re
import subprocess

import numpy as np
import pytest

from conftest import PATIENCE, settle, wait_until
from exhaustive import diagonal

LAYERS, HEADS, KEY_HEADS, TOKENS, WIDTH, SOFTCAP = 3, 4, 2, 9, 8, 5.0
CAUSAL, WINDOW = "causal()", "causal() & sliding_window(2, 0)"


@pytest.fixture(scope="session")
def model_page(build, tmp_path_factory):
    """Writes the page of a model with these arrays and masks."""
    folder = tmp_path_factory.mktemp("models")
    number = iter(range(100))

    def write(arrays: dict, *masks: str):
        path = folder / f"{next(number)}.html"
        np.savez(path.with_suffix(".npz"), **arrays)
        command = [build / "tests/python/probe/explorer_probe", path.with_suffix(".npz"), path, *masks]
        subprocess.run(command, check=True, timeout=PATIENCE)
        return path

    return write


def drawn(layers: int, heads: int, key_heads: int, tokens: int, width: int) -> dict:
    """Queries and keys; later heads are sharper."""
    random = np.random.default_rng(0)
    query = random.standard_normal((layers, heads, tokens, width), dtype=np.float32)
    query *= 1 + np.arange(heads, dtype=np.float32)[:, None, None] / 2
    return {"query": query, "key": random.standard_normal((layers, key_heads, tokens, width), dtype=np.float32)}


@pytest.fixture(scope="session")
def small(model_page):
    arrays = drawn(LAYERS, HEADS, KEY_HEADS, TOKENS, WIDTH)
    arrays["scores"] = np.array([[3, 1, 2, 0], [5, -4, 7, 6], [11, 10, 9, 8.5]])
    arrays["words"] = np.array([-1, 1, 1, 2, 3, 3, 3, 4, -1])
    return arrays, model_page({**arrays, "softcap": np.array([SOFTCAP])}, CAUSAL, WINDOW)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def weights_in_numpy(arrays: dict, layer: int, head: int, visible=None, softcap: float = 0) -> np.ndarray:
    query, key = arrays["query"].astype(float), arrays["key"].astype(float)
    key_head = head * key.shape[1] // query.shape[1]
    scores = query[layer, head] @ key[layer, key_head].T / np.sqrt(query.shape[-1])
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    return softmax(scores if visible is None else np.where(visible, scores, -np.inf))


def visible_in(layer: int) -> np.ndarray:
    """As the small model's masks take turns."""
    causal = np.tri(TOKENS, dtype=bool)
    return causal if layer % 2 == 0 else causal & ~np.tri(TOKENS, k=-3, dtype=bool)


def open_head(page, layer: int, head: int, heads: int = HEADS) -> None:
    page.locator(f'#map-cells button[data-cell="{layer * heads + head}"]').click()
    settle(page)


def shown_weights(page, head: int, tokens: int = TOKENS) -> np.ndarray:
    return np.array(page.evaluate("(head) => heed.weights(head)", head)).reshape(tokens, tokens)


def cells(page) -> list[str]:
    return [f"{number // HEADS}.{number % HEADS}" for number in page.evaluate(
        "[...document.querySelectorAll('#map-cells button')].map((button) => Number(button.dataset.cell))")]


def wait_for_pictures(page) -> None:
    wait_until(page, "document.getElementById('agreement').textContent !== ''")


def test_every_head_has_numpys_weights(small, guard):
    arrays, path = small
    page = guard.open(path)
    for layer in range(LAYERS):
        for head in range(HEADS):
            open_head(page, layer, head)
            assert page.inner_text("#map-open") == f"Open: Layer {layer} · Head {head}"
            assert page.inner_text("#heat-name") == f"Layer {layer} · Head {head}"
            expected = weights_in_numpy(arrays, layer, head, visible_in(layer), SOFTCAP)
            found = shown_weights(page, head)
            assert np.abs(found - expected).max() < 1e-4
            assert (found[~visible_in(layer)] == 0).all()
    wait_for_pictures(page)
    found = re.fullmatch(r"Its weights and heed’s differ by at most (\d)e−(\d) in 12 rows, one of each head\.",
                         page.inner_text("#agreement"))
    assert found and float(f"{found[1]}e-{found[2]}") < 1e-3


def test_the_mask_goes_with_the_layer_until_another_is_chosen(small, guard):
    arrays, path = small
    page = guard.open(path, "#s=0")
    assert page.is_checked("#mask-causal") and not page.is_checked("#mask-given")
    open_head(page, 1, 0)
    assert page.is_checked("#mask-given") and "sliding_window(2, 0)" in page.inner_text("#mask-given-name")
    page.click("#mask-none")
    settle(page)
    open_head(page, 2, 3)
    expected = weights_in_numpy(arrays, 2, 3, None, SOFTCAP)
    assert np.abs(shown_weights(page, 3) - expected).max() < 1e-4
    assert page.locator("#mask-none").get_attribute("aria-pressed") == "true"


def test_steps_of_a_capped_score(small, guard):
    arrays, path = small
    page = guard.open(path, "#s=0&head=3&q=7&k=2")
    product = float(arrays["query"][0, 3, 7].astype(float) @ arrays["key"][0, 1, 2].astype(float))
    results = [float(text.replace("−", "-")) for text in page.locator("#steps .result").all_inner_texts()]
    assert results[0] == pytest.approx(product, abs=2e-3)
    assert results[1] == pytest.approx(SOFTCAP * np.tanh(product / np.sqrt(WIDTH) / SOFTCAP), abs=1e-3)
    assert "capped: 5.0 · tanh(score / 5.0)" in page.inner_text("#steps")


def test_words_stand_together_and_are_added_up(small, guard):
    arrays, path = small
    page = guard.open(path, "#s=0&head=1&q=8&k=5")
    joined = page.evaluate("[...document.querySelectorAll('#strip button')].map((b) => b.classList.contains('same-word'))")
    assert joined == [False, False, True, False, False, True, True, False, False]
    row = weights_in_numpy(arrays, 0, 1, visible_in(0), SOFTCAP)[8]
    found = re.fullmatch(r"t8 attends to t5 with ([\d.]+), and to all of t4t5t6 with ([\d.]+)\.", page.inner_text("#readout"))
    assert [float(text) for text in found.groups()] == pytest.approx([row[5], row[4:7].sum()], abs=2e-4)


def test_order_and_scores(small, guard):
    arrays, path = small
    page = guard.open(path)
    assert cells(page) == [f"{layer}.{head}" for layer in range(LAYERS) for head in range(HEADS)]
    assert page.inner_text("#map-note") == "A number for each head. Here from −4.00 to 11.00. Layers down, heads across."
    page.check("#map-sorted")
    settle(page)
    scores = arrays["scores"].ravel()
    assert cells(page) == [f"{at // HEADS}.{at % HEADS}" for at in np.argsort(-scores, kind="stable")]
    assert page.locator(".map-score").first.inner_text() == "11.00"
    assert page.locator(".map-name").first.inner_text() == "2·0"
    page.click('#map-kinds button[value="scores"]')
    settle(page)
    colors = page.evaluate("[...document.querySelectorAll('#map-cells button')].map((b) => getComputedStyle(b).backgroundColor)")
    assert len(set(colors)) == 12
    assert page.is_hidden("#map-cells canvas >> nth=0")
    page.uncheck("#map-sorted")
    settle(page)
    assert cells(page)[:2] == ["0.0", "0.1"]
    wait_until(page, "location.hash.includes('shows=scores') && location.hash.includes('order=natural')")
    again = guard.open(path, "#shows=scores&order=score&s=2&head=1")
    assert cells(again)[0] == "2.0" and again.inner_text("#map-open") == "Open: Layer 2 · Head 1"


def test_the_map_is_driven_by_keys(small, guard):
    _, path = small
    page = guard.open(path, "#s=0&head=0")
    reached = []
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id || document.activeElement.parentElement.id"))
    for name in ("map-kinds", "map-score", "map-sorted", "map-cells"):
        assert reached.count(name) == 1, (name, reached)
    page.locator('#map-cells button[aria-pressed="true"]').focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowRight", "ArrowLeft"):  # past the end of a row into the next
        page.keyboard.press(key)
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "Layer 1, head 3: made up 6.00"
    assert page.inner_text("#map-pointed") == "Layer 1 · Head 3"
    assert page.inner_text("#map-open") == "Open: Layer 0 · Head 0"
    page.keyboard.press("Enter")
    settle(page)
    assert page.inner_text("#map-open") == "Open: Layer 1 · Head 3"
    page.keyboard.press("PageDown")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    settle(page)
    assert page.inner_text("#map-open") == "Open: Layer 2 · Head 0"
    page.keyboard.press("[")
    settle(page)
    assert page.inner_text("#map-open") == "Open: Layer 1 · Head 3"
    pressed = page.locator('#map-cells button[aria-pressed="true"]')
    assert pressed.count() == 1 and pressed.get_attribute("data-cell") == "7"


def test_pointing_tells_what_a_head_does(small, guard):
    _, path = small
    page = guard.open(path, "#s=0&head=0")
    wait_for_pictures(page)
    before = page.evaluate("document.getElementById('map-preview').toDataURL()")
    cell = page.locator('#map-cells button[data-cell="6"]')
    assert cell.get_attribute("title") == "Layer 1, head 2: made up 7.00"
    cell.hover()
    assert page.inner_text("#map-pointed") == "Layer 1 · Head 2"
    assert page.inner_text("#map-scores dd") == "7.00"
    assert page.evaluate("document.getElementById('map-preview').toDataURL()") != before
    page.mouse.move(5, 5)
    assert page.inner_text("#map-pointed") == "Layer 0 · Head 0"


@pytest.mark.parametrize("mask", ["", CAUSAL])
def test_weights_alone_are_enough(model_page, guard, mask):
    random = np.random.default_rng(1)
    scores = 3 * random.standard_normal((2, 3, 6, 6))
    weights = softmax(np.where(np.tri(6, dtype=bool), scores, -np.inf) if mask else scores)
    page = guard.open(model_page({"weights": weights.astype(np.float32)}, *([mask] if mask else [])))
    for layer in range(2):
        for head in range(3):
            open_head(page, layer, head, 3)
            assert np.abs(shown_weights(page, head, 6) - weights[layer, head]).max() < 5e-4
    wait_for_pictures(page)
    assert "half precision" in page.inner_text("#agreement")
    labels = page.locator("#map-score option").all_inner_texts()
    assert labels == ["previous token", "first token", "itself", "next token", "entropy"]
    expected = np.mean([weights[1, 2, q, q] for q in range(1 if mask else 0, 6)])
    assert f"itself {expected:.2f}" in page.locator("#map-cells button").last.get_attribute("title")


# WCAG 2's contrast of the scores on their colours.
CONTRASTS = """() => {
  const luminance = (color) => color.match(/[0-9.]+/g).slice(0, 3).map(Number)
    .map((channel) => channel / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + [0.2126, 0.7152, 0.0722][i] * part, 0.05);
  return [...document.querySelectorAll('#map-cells button')].map(getComputedStyle)
    .map(({color, backgroundColor}) => [luminance(color), luminance(backgroundColor)])
    .map((both) => Math.max(...both) / Math.min(...both));
}"""


@pytest.mark.parametrize(("width", "scheme"), diagonal([1280, 400], ["light", "dark"]))
def test_fits_the_screen(model_page, guard, build, width, scheme):
    path = model_page(drawn(6, 12, 12, 20, 16))
    page = guard.open(path, viewport={"width": width, "height": 900}, color_scheme=scheme)
    wait_for_pictures(page)
    folder = build / "screenshots"
    folder.mkdir(exist_ok=True)
    page.screenshot(path=folder / f"model-{width}-{scheme}.png", full_page=True)
    for order in ("natural", "score"):
        for shows in ("pictures", "scores"):
            page.click(f'#map-kinds button[value="{shows}"]')
            page.set_checked("#map-sorted", order == "score")
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            sizes = page.evaluate("[...document.querySelectorAll('#map-cells button')].map((b) => b.offsetWidth)")
            assert len(sizes) == 72 and min(sizes) >= 24
        page.screenshot(path=folder / f"model-{width}-{scheme}-{order}.png")
    contrasts = []
    for name in ("viridis", "Blues", "YlOrRd", "Greys"):
        page.select_option("#map", name)
        settle(page)
        contrasts += page.evaluate(CONTRASTS)
    assert min(contrasts) >= 4.5


def test_a_model_of_twelve_layers_and_512_tokens(model_page, guard, is_exhaustive):
    """Everything is drawn on canvases and unpacked when it is wanted: neither elements nor memory grow with what is opened."""
    arrays = drawn(12, 12, 12, 512, 64)
    page = guard.open(model_page(arrays))
    assert page.locator("#map-cells button").count() == 144
    elements = page.evaluate("document.querySelectorAll('*').length")
    assert elements < 2500
    for layer, head in [(0, 0), (3, 11), (11, 6), (7, 2), (3, 11)]:
        open_head(page, layer, head, 12)
        found = shown_weights(page, head, 512)
        assert np.abs(found - weights_in_numpy(arrays, layer, head)).max() < 1e-3
    for layer in range(12) if is_exhaustive else (0, 5, 11):
        for head in range(12):
            page.evaluate("([layer, head]) => { heed.openHead(layer, head); heed.weights(head); }", [layer, head])
    settle(page)
    assert page.evaluate("heed.sentences.reduce((sum, s) => sum + Object.keys(s.computed).length, 0)") <= 30
    assert page.evaluate("document.querySelectorAll('*').length") < elements + 100
    wait_for_pictures(page)
    assert "144 rows" in page.inner_text("#agreement")


@pytest.fixture(scope="session")
def patterned(model_page):
    """Thirty layers of which one head looks one back and another at the first token; the others look everywhere."""
    layers, heads, tokens = 30, 4, 12
    causal = np.tri(tokens)
    weights = np.tile(causal / causal.sum(axis=1, keepdims=True), (layers, heads, 1, 1))
    back = np.eye(tokens, k=-1)
    back[0, 0] = 1
    weights[17, 2], weights[3, 1] = 0.75 * back + 0.25 * weights[17, 2], np.eye(1, tokens)
    values = np.random.default_rng(2).standard_normal((layers, 2, tokens, 5))
    arrays = {"weights": weights.astype(np.float32), "value": values.astype(np.float32)}
    return arrays, model_page(arrays, CAUSAL)


def test_opens_on_the_head_with_the_most_pattern_and_a_middle_token(patterned, guard):
    page = guard.open(patterned[1])
    assert page.inner_text("#map-open") == "Open: Layer 17 · Head 2"
    assert page.inner_text("#readout").startswith("t6 attends to t5 with 0.7")
    assert page.title() == "A model · heed"


def test_the_last_step_has_the_values(patterned, guard):
    arrays, path = patterned
    page = guard.open(path, "#s=17&head=2&q=6&k=5")
    weights, values = arrays["weights"][17, 2].astype(float), arrays["value"][17, 1].astype(float)
    boxes = page.locator("#steps li").last.locator(".vector")
    shown = [[float(text.replace("−", "-")) for text in boxes.nth(i).locator("span").all_inner_texts()] for i in (0, 1)]
    assert shown[0] == pytest.approx((weights[6, 5] * values[5]).tolist(), abs=0.006)
    assert shown[1] == pytest.approx((weights[6] @ values).tolist(), abs=0.006)


def test_nothing_of_the_page_is_empty(patterned, guard):
    page = guard.open(patterned[1])
    empty = """[...document.querySelectorAll('fieldset, section')].filter((each) => each.checkVisibility())
      .filter((each) => !each.querySelector('canvas, input, select, ol > li, button:not([hidden])')).length"""
    assert page.evaluate(empty) == 0
    assert "Heads" not in page.locator("legend").all_inner_texts()


def test_bars_have_one_scale(patterned, guard):
    page = guard.open(patterned[1], "#s=17&head=2")
    width = page.locator("#map-scores").evaluate("(list) => list.firstElementChild.clientWidth")
    values = [float(text) for text in page.locator("#map-scores dd").all_inner_texts()]
    bars = page.locator("#map-scores .map-bar").evaluate_all("(bars) => bars.map((bar) => bar.offsetWidth)")
    assert len(values) == 5 and bars == pytest.approx([value * width for value in values], abs=2)
    # Uniform weights look weak: a twelfth of the height, not all of it.
    page = guard.open(patterned[1], "#s=0&head=0&q=11")
    heights = page.evaluate("""() => {
      const {width, height} = document.querySelector('.bars');
      const {data} = document.querySelector('.bars').getContext('2d').getImageData(Math.round(width / 24), 0, 1, height);
      return Array.from({length: height}, (_, y) => data[4 * y + 3]).filter((alpha) => alpha > 0).length / height;
    }""")
    assert heights < 0.2


@pytest.mark.parametrize("width", [1280, 390])
def test_the_whole_map_is_seen(patterned, guard, width):
    page = guard.open(patterned[1], viewport={"width": width, "height": 900})
    box, cells = (page.locator(each).bounding_box() for each in ("#map-box", "#map-cells"))
    assert cells["y"] + cells["height"] <= box["y"] + box["height"]
    assert cells["width"] <= box["width"]
    last = page.locator("#map-cells button").last
    assert last.get_attribute("data-cell") == "119" and last.bounding_box()["y"] < box["y"] + box["height"]


def test_pages_of_sentences_have_no_map(written, guard):
    page = guard.open(written("Time flies like an arrow"))
    assert page.locator("#model").count() == 0
    assert page.is_visible("#positions-card") and page.is_visible("#heads")
