"""The pages of verbs other than explain: cross-attention in the explorer, and figures."""

import base64
import re

import numpy as np
import pytest

from conftest import PATIENCE, settle
from exhaustive import diagonal

QUERIES, KEYS, HEADS = 3, 5, 2


@pytest.fixture(scope="module")
def cross(heed, tmp_path_factory):
    """Three queries that look at five keys: heed's page and its weights [head][query][key]."""
    folder = tmp_path_factory.mktemp("cross")
    random = np.random.default_rng(0)
    for name, length in (("query", QUERIES), ("key", KEYS), ("value", KEYS)):
        np.save(folder / f"{name}.npy", random.standard_normal((HEADS, length, 4), dtype=np.float32))
    inputs = [part for name in ("query", "key", "value") for part in (f"--{name}", folder / f"{name}.npy")]
    heed("run", *inputs, "--out", folder / "page.html", "--weights", folder / "weights.npy")
    return folder / "page.html", np.load(folder / "weights.npy")


def shown(page, head: int) -> np.ndarray:
    """The page's matrix of all tokens, in which those that are looked at come first."""
    return np.array(page.evaluate("(head) => heed.weights(head)", head)).reshape(KEYS + QUERIES, KEYS + QUERIES)


def test_cross_attention_is_heeds(cross, guard):
    path, expected = cross
    page = guard.open(path)
    assert page.locator("#strip button").all_inner_texts() == [f"key {i}" for i in range(KEYS)] + [
        f"query {i}" for i in range(QUERIES)]
    for head in range(HEADS):
        weights = shown(page, head)
        assert np.abs(weights[KEYS:, :KEYS] - expected[head]).max() < 1e-6
        assert weights[:KEYS].max() == 0 and weights[:, KEYS:].max() == 0
    assert "Hatched" not in page.inner_text("#heat-note")
    own = expected[0].astype(float)
    entropy = -(own * np.log(own)).sum(axis=1)
    assert abs(float(page.inner_text("#mean-entropy").split()[0]) - entropy.mean()) < 1e-3
    page.click("#mask-causal")
    settle(page)
    assert (shown(page, 0)[KEYS:, :KEYS] > 0).tolist() == np.tri(QUERIES, KEYS, dtype=bool).tolist()
    page.click("#table-box summary")
    settle(page)
    assert page.locator("#table tr").count() == 1 + QUERIES
    assert page.locator("#table tr").last.locator("td").count() == KEYS


def test_cross_attention_is_driven_by_pointer_and_keys(cross, guard):
    path, _ = cross
    page = guard.open(path)
    page.locator("#strip button", has_text="query 1").click()
    page.locator("#strip button", has_text="key 3").click()
    settle(page)
    assert page.inner_text("#readout").startswith("query 1 attends to key 3")
    page.focus("#heat")
    for key in ("ArrowUp", "ArrowUp", "End", "ArrowRight"):
        page.keyboard.press(key)
    settle(page)
    assert page.inner_text("#readout").startswith("query 0 attends to key 4")
    page.keyboard.press("+")
    settle(page)
    assert "Tokens 0 to" not in page.inner_text("#heat-note")
    with page.expect_download() as download:
        page.click("#save-svg")
    assert "query 2" in download.value.path().read_text()


PICTURE = """async () => {
  const image = document.images[0];
  await image.decode();
  return [image.currentSrc, image.clientWidth, image.naturalWidth];
}"""


@pytest.mark.parametrize(("lesson", "width", "scheme"), diagonal(["temperature", "scaling"], [390, 1280], ["light", "dark"]))
def test_a_lesson_is_a_page_that_follows_the_screen(heed, guard, build, tmp_path, lesson, width, scheme):
    path = tmp_path / "lesson.html"
    heed("lesson", lesson, "--out", path)
    page = guard.open(path, viewport={"width": width, "height": 700}, color_scheme=scheme)
    source, shown, natural = page.evaluate(PICTURE)
    svg = base64.b64decode(source.partition(",")[2]).decode()
    ground = re.search(r'<rect[^>]* fill="(#[0-9a-f]{6})"', svg)[1]
    assert ground == ("#16171d" if scheme == "dark" else "#ffffff")
    body = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert body == ("rgb(18, 20, 26)" if scheme == "dark" else "rgb(246, 246, 243)")
    # The page needs no scrolling, and labels of 11 pixels stay at least 9 pixels high.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelector('.picture').scrollWidth") <= width
    assert shown >= 0.85 * natural
    assert page.inner_text("h1") == page.title() != ""
    page.click("summary")
    assert page.locator("table").count() >= 2
    folder = build / "screenshots"
    folder.mkdir(exist_ok=True)
    page.screenshot(path=folder / f"{lesson}-{width}-{scheme}.png", full_page=True)


def test_a_lesson_is_dark_where_that_is_said(heed, guard, tmp_path):
    path = tmp_path / "lesson.html"
    heed("lesson", "temperature", "--dark", "--out", path)
    page = guard.open(path)
    assert "#16171d" in base64.b64decode(page.evaluate(PICTURE)[0].partition(",")[2]).decode()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 26)"
    page.click("summary")
    assert page.locator("table").count() == 3
    assert page.locator("table").first.locator("td").first.inner_text() == "0.12"


def test_the_page_of_a_causal_layer_says_so(heed, guard, tmp_path):
    random = np.random.default_rng(3)
    weights = np.tril(random.random((2, 8, 8), dtype=np.float32)) + 1e-3 * np.tri(8, dtype=np.float32)
    np.save(tmp_path / "weights.npy", weights / weights.sum(axis=-1, keepdims=True))
    path = tmp_path / "page.html"
    heed("diagnose", "--weights", tmp_path / "weights.npy", "--mask", "causal", "--out", path)
    page = guard.open(path, "#q=3&k=1")
    assert page.is_checked("#mask-causal") and page.locator("#mask-none").get_attribute("aria-pressed") == "false"
    assert "It sees 4 of 8 keys." in page.inner_text("#steps")
    assert "Hatched" in page.inner_text("#heat-note")
    heed("diagnose", "--weights", tmp_path / "weights.npy", "--out", path)
    assert "say --mask causal" in guard.open(path).inner_text("#note")


def test_the_policy_stops_scripts_in_figures(heed, browser, tmp_path):
    path = tmp_path / "figure.html"
    heed("lesson", "temperature", "--out", path)
    path.write_text(path.read_text().replace("<picture", "<script>window.altered = true</script><picture", 1))
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(path.as_uri())
    assert page.evaluate("window.altered === undefined")
    page.close()
