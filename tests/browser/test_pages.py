"""The pages of verbs other than explain: cross-attention in the explorer, and figures."""

import numpy as np
import pytest

from conftest import settle

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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_is_a_page(heed, guard, build, tmp_path, theme):
    path = tmp_path / "lesson.html"
    heed("lesson", "temperature", "--out", path, *(["--dark"] if theme == "dark" else []))
    page = guard.open(path, viewport={"width": 400, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    ground = page.evaluate("getComputedStyle(document.querySelector('svg rect')).fill")
    assert ground == ("rgb(22, 23, 29)" if theme == "dark" else "rgb(255, 255, 255)")
    fills = page.evaluate("[...new Set([...document.querySelectorAll('svg path')].map((e) => getComputedStyle(e).fill))]")
    assert len(fills) > 10
    page.click("summary")
    assert page.locator("table").count() == 3
    assert page.locator("table").first.locator("td").first.inner_text() == "0.12"
    folder = build / "screenshots"
    folder.mkdir(exist_ok=True)
    page.screenshot(path=folder / f"figure-400-{theme}.png", full_page=True)


def test_the_policy_stops_scripts_in_figures(heed, browser, tmp_path):
    path = tmp_path / "figure.html"
    heed("lesson", "temperature", "--out", path)
    path.write_text(path.read_text().replace("<svg", "<script>window.altered = true</script><svg", 1))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("window.altered === undefined")
    page.close()
