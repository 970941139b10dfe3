"""Everything on the page that can be pressed, by pointer and by keyboard."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import SENTENCE, settle, wait_until


def state(page) -> dict:
    return json.loads(page.evaluate("JSON.stringify(heed.state)"))


def picture(page, selector: str = "#heat") -> str:
    settle(page)
    return page.evaluate("(selector) => document.querySelector(selector).toDataURL()", selector)


@pytest.fixture
def page(written, guard):
    return guard.open(written(SENTENCE, "--heads", 8), "#q=6")


def test_tokens_are_pointed_at_and_held(page):
    tokens = page.locator("#strip button")
    assert tokens.nth(6).get_attribute("aria-pressed") == "true"
    tokens.nth(3).hover()
    settle(page)
    assert page.inner_text("#readout").startswith("the attends to fox")
    tokens.nth(6).click()
    page.mouse.move(5, 5)
    settle(page)
    assert not state(page)["held"]
    assert page.inner_text("#readout").startswith("All tokens at once")
    arcs = picture(page, "#arcs")
    tokens.nth(2).hover()
    assert picture(page, "#arcs") != arcs
    assert page.inner_text("#readout").startswith("brown attends to")
    tokens.nth(2).click()
    page.mouse.move(5, 5)
    settle(page)
    assert state(page)["q"] == 2 and state(page)["held"]
    assert page.inner_text("#readout").startswith("brown attends to")


def test_heads_and_two_side_by_side(page):
    first = picture(page)
    page.locator("#heads button").nth(5).click()
    assert picture(page) != first
    assert page.inner_text("#heat-name") == "Head 5"
    assert page.locator("#heads button").nth(5).get_attribute("aria-pressed") == "true"
    assert page.is_hidden("#heat-other")
    page.select_option("#other", "2")
    settle(page)
    assert page.is_visible("#heat-other") and page.inner_text("#heat-other-name") == "Head 2"
    page.select_option("#other", "")
    settle(page)
    assert page.is_hidden("#heat-other")


def test_scale_sink_and_colours_change_the_picture(page):
    seen = [picture(page)]
    for kind in ("log", "row", "linear"):
        page.click(f'#scales button[value="{kind}"]')
        seen.append(picture(page))
        assert page.locator(f'#scales button[value="{kind}"]').get_attribute("aria-checked") == "true"
    assert seen[0] == seen[3] and len(set(seen)) == 3
    page.check("#sink")
    seen.append(picture(page))
    assert "left out" in page.inner_text("#heat-note")
    page.uncheck("#sink")
    for name in ("viridis", "YlOrRd", "Greys"):
        page.select_option("#map", name)
        seen.append(picture(page))
    assert len(set(seen)) == 7


def test_masks_combine_and_are_hatched(page):
    assert "Hatched" in page.inner_text("#heat-note")
    page.click("#mask-none")
    settle(page)
    assert "Hatched" not in page.inner_text("#heat-note")
    assert page.locator("#mask-none").get_attribute("aria-pressed") == "true"
    seen = {picture(page)}
    for name in ("causal", "window", "padding"):
        page.check(f"#mask-{name}")
        seen.add(picture(page))
    assert len(seen) == 4
    assert state(page)["mask"] == {"causal": True, "window": [2, 0], "padding": 1, "given": False}


def test_zoom_by_buttons_wheel_and_drag(page):
    whole = picture(page)
    page.click("#zoom-in")
    zoomed = picture(page)
    assert zoomed != whole and "Tokens" in page.inner_text("#heat-note")
    page.click("#zoom-reset")
    assert picture(page) == whole
    page.locator("#heat").scroll_into_view_if_needed()
    box = page.locator("#heat").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    wait_until(page, "document.getElementById('heat-note').textContent.includes('Tokens')")
    before = page.inner_text("#heat-note")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.2, steps=4)
    page.mouse.up()
    settle(page)
    assert page.inner_text("#heat-note") != before
    page.click("#zoom-out")
    page.click("#zoom-out")
    page.click("#zoom-out")
    assert picture(page) == whole or "Tokens" not in page.inner_text("#heat-note")


def test_a_click_on_the_heatmap_chooses_the_cell(page):
    page.locator("#heat").scroll_into_view_if_needed()
    box = page.locator("#heat").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.8)
    settle(page)
    chosen = state(page)
    assert chosen["held"] and chosen["k"] is not None
    tokens = page.locator("#strip button").all_inner_texts()
    assert page.inner_text("#steps-cell").endswith(f"{tokens[chosen['q']]} → {tokens[chosen['k']]}")


# WCAG 2's contrast of each token and number on a coloured background.
CONTRASTS = """() => {
  const luminance = (color) => color.match(/[0-9.]+/g).slice(0, 3).map(Number)
    .map((channel) => channel / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + [0.2126, 0.7152, 0.0722][i] * part, 0.05);
  return [...document.querySelectorAll('#strip button, .vector span')].filter((each) => each.style.backgroundColor)
    .map(getComputedStyle).map(({color, backgroundColor}) => [luminance(color), luminance(backgroundColor)])
    .map((both) => Math.max(...both) / Math.min(...both));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_on_colours_can_be_read(written, guard, scheme):
    page = guard.open(written(SENTENCE, "--heads", 8), "#q=6&k=3", color_scheme=scheme)
    contrasts = []
    for name in ("viridis", "Blues", "YlOrRd", "Greys"):
        page.select_option("#map", name)
        for head in range(4):
            page.locator("#heads button").nth(head).click()
            settle(page)
            contrasts += page.evaluate(CONTRASTS)
    assert len(contrasts) > 100 and min(contrasts) >= 4.5


def test_positions(page):
    image, curves = picture(page, "#positions"), picture(page, "#curves")
    page.fill("#position-count", "20")
    assert picture(page, "#positions") != image
    page.evaluate("() => { const range = document.getElementById('position-pair');"
                  " range.value = 9; range.dispatchEvent(new Event('input')); }")
    assert picture(page, "#curves") != curves
    page.focus("#positions")
    page.keyboard.press("ArrowDown")
    settle(page)
    expected = math.cos(10 / 10000 ** (18 / 64))
    assert page.inner_text("#position-readout") == f"Position 10, dimension 19: {expected:.4f}"
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.inner_text("#position-readout").startswith("Position 11, dimension 19: ")
    # As in heed's figures: positions on the x axis, dimensions on the y axis.
    page.locator("#positions").scroll_into_view_if_needed()
    box = page.locator("#positions").bounding_box()
    page.mouse.move(box["x"] + 36, box["y"] + box["height"] - 27)
    settle(page)
    assert page.inner_text("#position-readout").startswith("Position 0, dimension 63: ")


def test_every_control_is_reached_by_tab(page):
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(
            "() => { const e = document.activeElement; return e.id || e.parentElement?.id || e.tagName; }"))
        if reached.count("save-svg") > 1:
            break
    for name in ("save-svg", "save-png", "theme", "sentences", "strip", "temperature", "temperature-text",
                 "temperatures", "mask-none", "mask-causal", "mask-window", "window-left", "window-right",
                 "mask-padding", "padding-count", "scales", "sink", "map", "heads", "other", "zoom-out", "zoom-reset",
                 "zoom-in", "heat", "positions", "position-count", "position-pair", "table-box"):
        assert name in reached, (name, reached)


def test_keys(page):
    page.locator("#strip button").nth(6).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert page.inner_text("#readout").startswith("over attends to")
    page.keyboard.press("Enter")
    settle(page)
    assert state(page)["q"] == 5 and state(page)["held"]
    page.focus("#heat")
    for key in ("Home", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    settle(page)
    assert (state(page)["q"], state(page)["k"]) == (6, 1)
    assert page.inner_text("#readout").startswith("the attends to quick")
    page.keyboard.press("End")
    settle(page)
    assert "does not see" in page.inner_text("#readout")
    page.keyboard.press("]")
    page.keyboard.press("+")
    settle(page)
    assert state(page)["head"] == 1 and "Tokens" in page.inner_text("#heat-note")
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    settle(page)
    assert not state(page)["held"] and "Tokens" not in page.inner_text("#heat-note")
    page.locator("#heads button").nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    assert state(page)["head"] == 2
    page.locator('#scales button[aria-checked="true"]').focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert state(page)["scale"] == "log"
    page.focus("#temperature")
    before = state(page)["temperature"]
    page.keyboard.press("ArrowRight")
    settle(page)
    assert before < state(page)["temperature"] < before * 2


def test_the_fragment_brings_a_view_back(page, written, guard):
    page.fill("#temperature-text", "0.25")
    page.press("#temperature-text", "Enter")
    page.check("#mask-window")
    page.click('#scales button[value="log"]')
    page.check("#sink")
    page.select_option("#other", "3")
    page.select_option("#map", "Greys")
    page.locator("#heads button").nth(4).click()
    page.locator("#strip button").nth(4).click()
    page.click("#theme")
    wait_until(page, "location.hash.includes('theme=light')")
    again = guard.open(written(SENTENCE, "--heads", 8), page.evaluate("location.hash"))
    assert state(again) == state(page)
    assert picture(again, "#heat-other") == picture(page, "#heat-other")


def test_a_fragment_that_makes_no_sense_is_ignored(written, guard):
    fragment = "#s=9&head=-1&q=1e9&k=NaN&t=-3&mask=window:9999999999,x+<b>&scale=__proto__&map=constructor&positions=0&pair=99"
    page = guard.open(written(SENTENCE), fragment)
    expected = state(guard.open(written(SENTENCE), "#mask=none"))
    assert {**state(page), "positions": 64} == expected
    assert page.inner_text("#readout").startswith("dog attends to")


def test_the_view_is_saved_as_svg_and_png(page):
    page.select_option("#other", "1")
    with page.expect_download() as download:
        page.click("#save-svg")
    root = ElementTree.parse(download.value.path()).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("lazy") == 5 and any("Head 1" in text for text in texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) > 90
    with page.expect_download() as download:
        page.click("#save-png")
    content = open(download.value.path(), "rb").read()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20], "big") > 1500
