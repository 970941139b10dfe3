"""Hostile, foreign and long texts; the look of the page."""

import pathlib
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from conftest import PATIENCE, SENTENCE, settle, wait_until
from exhaustive import diagonal

HOSTILE = "</script><img src=x onerror=alert(1)><!-- <svg onload=alert(2)> ]]> &lt;b&gt; \" ' `${alert(3)}` a\u2028b"


def elements(page, selector: str) -> int:
    return page.evaluate("(selector) => document.querySelectorAll(selector).length", selector)


def test_markup_is_shown_and_never_read(written, guard):
    page = guard.open(written(HOSTILE), "#q=3&k=2")
    page.click("#table-box summary")
    settle(page)
    assert elements(page, "img, svg, iframe, b:not([class]):not(h1 b)") == 0
    assert elements(page, "script") == 2
    assert "".join(page.locator("#strip button").all_inner_texts()).startswith("</script><imgsrc=xonerror=alert")
    assert page.locator("#sentences button").first.inner_text().startswith("</script><img src=x")
    with page.expect_download() as download:
        page.click("#save-svg")
    root = ElementTree.parse(download.value.path()).getroot()
    kinds = {element.tag.split("}")[1] for element in root.iter()}
    assert kinds <= {"svg", "g", "rect", "path", "text", "defs", "pattern"}
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)


def test_the_policy_stops_scripts_that_are_not_the_page(written, guard, browser, tmp_path):
    text = written(SENTENCE).read_text()
    path = tmp_path / "altered.html"
    path.write_text(text.replace("<main", "<script>window.altered = true</script><main", 1))
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(path.as_uri())
    assert page.evaluate("[window.altered === undefined, typeof window.heed]") == [True, "object"]
    page.close()


@pytest.mark.parametrize("sentence", ["القطة جلست على السجادة", "חתול ישב על מחצלת", "a 👩‍👩‍👧 saw 🇩🇪 and 🦊!",
                                      "猫がマットに座った", "a\u202eb \u0007 c"])
def test_any_script(written, guard, sentence):
    page = guard.open(written(sentence))
    tokens = page.locator("#strip button").all_inner_texts()
    assert tokens == page.evaluate("heed.sentences[0].tokens")
    assert not any(character in "".join(tokens) for character in "\u202e\u0007")
    assert page.locator("#strip button").first.get_attribute("dir") == "auto"
    places = [page.locator("#strip button").nth(i).bounding_box()["x"] for i in (0, 1, 2)]
    assert places == sorted(places)
    assert page.inner_text("#steps-cell") != ""


def test_512_tokens_of_12_heads(heed, guard, tmp_path):
    sentence = " ".join(f"word{i % 97}" for i in range(512))
    path = tmp_path / "long.html"
    arguments = (sentence, "--heads", 12, "--d-model", 96)
    heed("explain", "--out", path, *arguments)
    heed("explain", "--out", tmp_path / "long.npy", *arguments)
    assert '"weights"' not in path.read_text().split('id="data">')[1].split("</script>")[0]
    page = guard.open(path, "#head=11&q=500")
    expected = np.load(tmp_path / "long.npy")[11]
    row = page.evaluate("heed.weights(11).slice(500 * 512, 501 * 512)")
    assert np.abs(np.array(row) - expected[500]).max() < 1e-6
    # The matrices are pictures: cells and arcs have no elements.
    assert elements(page, "*") < 1200
    wait_until(page, "[...document.querySelectorAll('#heads .hint')].every((e) => e.textContent)")
    for temperature in (0.3, 2):
        page.evaluate("(temperature) => heed.update({temperature})", temperature)
        settle(page)
    page.focus("#heat")
    for _ in range(7):
        page.keyboard.press("+")
    settle(page)
    assert "Tokens" in page.inner_text("#heat-note")
    page.keyboard.press("End")
    settle(page)
    assert "does not see" in page.inner_text("#readout")
    page.click("#table-box summary")
    settle(page)
    assert page.locator("#table tr").count() == 31


@pytest.mark.parametrize(("width", "scheme"), diagonal([1280, 400], ["light", "dark"]))
def test_fits_the_screen(written, guard, build: pathlib.Path, width, scheme):
    page = guard.open(written(SENTENCE), "#t=0.5", viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    # On a narrow screen the weights come first, the controls below.
    heat, controls = (page.locator(part).bounding_box() for part in ("section.heat", "aside.controls"))
    assert (controls["y"] >= heat["y"] + heat["height"]) == (width < 1000)
    folder = build / "screenshots"
    folder.mkdir(exist_ok=True)
    page.screenshot(path=folder / f"explorer-{width}-{scheme}.png", full_page=True)
    page.click("#theme")
    settle(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.click("#theme")
    settle(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_colours_of_texts_contrast(written, guard):
    """WCAG AA: 4.5 to 1 for the page's texts on its cards, in both themes."""
    for theme in ("light", "dark"):
        page = guard.open(written(SENTENCE), f"#theme={theme}")
        colors = page.evaluate("""() => {
          const style = getComputedStyle(document.documentElement);
          return Object.fromEntries(['card', 'page', 'faint', 'ink', 'soft', 'accent', 'on-accent', 'query', 'key']
            .map((name) => [name, style.getPropertyValue('--' + name).trim()]));
        }""")

        def luminance(name):
            parts = [int(colors[name][i:i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

        for ink, paper in [("ink", "card"), ("soft", "card"), ("soft", "page"), ("soft", "faint"), ("query", "card"),
                           ("key", "card"), ("on-accent", "accent")]:
            low, high = sorted([luminance(ink), luminance(paper)])
            assert (high + 0.05) / (low + 0.05) >= 4.5, (theme, ink, paper)
