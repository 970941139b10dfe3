"""How smooth the explorer is while the pointer moves and the slider is dragged, at 512 tokens and 12 heads, and while heads
of a model of 12 layers are opened, another in each frame, or the page is scrolled: the time from one frame to the next, and
the page's processor time for each, which other programs on the machine hardly change.

Usage: .venv/bin/python tests/browser/frame_times.py HEED CHROMIUM [SCREENSHOTS]
HEED is the command in a build folder that has the tests too, CHROMIUM the browser; into the folder SCREENSHOTS, where it is
given, the pictures of docs/explorer.md are written.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

FRAMES = 120
MINI_LM = pathlib.Path(__file__).parents[2] / "build/models/all-MiniLM-L6-v2"

# Calls act(i) before each frame. Returns the milliseconds between frames.
MEASURE = """async ([act, frames]) => {
  const acts = {
    hover: (i) => {
      const box = document.getElementById('heat').getBoundingClientRect();
      const at = {clientX: box.left + box.width * (0.3 + 0.5 * ((i * 37) % 101) / 101),
        clientY: box.top + box.height * (0.3 + 0.5 * ((i * 53) % 103) / 103)};
      document.getElementById('heat').dispatchEvent(new PointerEvent('pointermove', {...at, bubbles: true}));
    },
    slider: (i) => {
      const slider = document.getElementById('temperature');
      slider.value = String(200 + 5 * i);
      slider.dispatchEvent(new Event('input', {bubbles: true}));
    },
    open: (i) => document.querySelector(`#map-cells button[data-cell="${(i * 13) % 144}"]`).click(),
    scroll: (i) => window.scrollTo(0, 15 * i),
  };
  const times = [];
  let last = 0;
  for (let i = 0; i <= frames; ++i) {
    acts[act](i);
    const now = await new Promise((done) => requestAnimationFrame(done));
    if (i > 0) times.push(now - last);
    last = now;
  }
  return times;
}"""


def explain(heed: str, sentence: str, *arguments: object) -> pathlib.Path:
    path = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    subprocess.run([heed, "explain", "--out", path, *map(str, arguments), "--", sentence], check=True, capture_output=True)
    return path


def model(heed: str, layers: int, tokens: int, width: int) -> pathlib.Path:
    """The page of a model of 12 heads a layer: the first look a few tokens back, each further than the one before it, some
    at the first token, the others here and there."""
    random = np.random.default_rng(0)
    query, key = random.standard_normal((2, layers, 12, tokens, width), dtype=np.float32)
    angles = np.arange(tokens)[:, None] / 3 ** (np.arange(width // 2) / (width // 8))
    for layer in range(layers):
        for head in random.permutation(12)[:7]:
            back = int(random.integers(0, 5))
            key[layer, head] = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) * random.uniform(1, 4)
            query[layer, head] = np.concatenate([np.cos(angles - back), np.sin(angles - back)], axis=1)
            if back == 4:
                query[layer, head], key[layer, head] = 1, random.standard_normal((tokens, width)) / 4
                key[layer, head, 0] += random.uniform(0.2, 1)
    folder = pathlib.Path(tempfile.mkdtemp())
    np.savez(folder / "arrays.npz", query=query, key=key)
    probe = pathlib.Path(heed).parent / "tests/python/probe/explorer_probe"
    subprocess.run([probe, folder / "arrays.npz", folder / "page.html"], check=True)
    return folder / "page.html"


def processor_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def measure(page: Page, session: CDPSession, act: str) -> str:
    before = processor_seconds(session)
    times = sorted(page.evaluate(MEASURE, [act, FRAMES]))
    busy = 1000 * (processor_seconds(session) - before) / FRAMES
    return (f"busy {busy:.1f} ms a frame; from one to the next median {statistics.median(times):.1f}, "
            f"95 % below {times[int(0.95 * len(times))]:.1f} ms")


def screenshots(browser: Browser, heed: str, folder: pathlib.Path) -> None:
    path = explain(heed, "Time flies like an arrow")
    for name, width, height, scheme in (("explorer", 1280, 1000, "light"), ("explorer-narrow", 400, 860, "dark")):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.screenshot(path=folder / f"{name}.png")
    if not MINI_LM.exists():
        print("`make models` has not been run: no picture of a model")
        return
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    path = explain(heed, "The cat sat on the mat because it was tired.", "--model", MINI_LM)
    page.goto(path.as_uri())
    page.wait_for_timeout(30000)  # until every small picture is drawn
    page.screenshot(path=folder / "explorer-model.png")


def main() -> None:
    heed, chromium = sys.argv[1:3]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        if len(sys.argv) > 3:
            screenshots(browser, heed, pathlib.Path(sys.argv[3]))
        sentence = " ".join(f"word{i % 97}" for i in range(512))
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(explain(heed, sentence, "--heads", 12, "--d-model", 96).as_uri() + "#held=0")
        page.wait_for_timeout(5000)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        for act in ("hover", "slider"):
            print(f"{act:7} {measure(page, session, act)}")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(model(heed, 12, 512, 64).as_uri())
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        print(f"scroll  {measure(page, session, 'scroll')} (while pictures are made)")
        page.wait_for_timeout(60000)
        for act in ("open", "scroll"):
            print(f"{act:7} {measure(page, session, act)}")
        browser.close()


if __name__ == "__main__":
    main()
