"""The pictures that heed writes, as a browser shows them: the gallery's page, and the SVG files by themselves."""

import pathlib
import xml.etree.ElementTree as ElementTree

import pytest

ROOT = pathlib.Path(__file__).parents[2]

# Decodes every picture of the page. Returns the file and width of each, 0 where nothing is visible.
WIDTHS = """async () => Promise.all([...document.images].map(async (image) => {
  image.loading = 'eager';
  await image.decode().catch(() => {});
  return [image.currentSrc.split('/').pop(), image.naturalWidth];
}))"""


@pytest.fixture(scope="module")
def gallery(heed, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("gallery")
    heed("gallery", folder)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_picture_of_the_gallery_is_seen(gallery, guard, scheme):
    guard.own = gallery
    page = guard.open(gallery / "index.html", color_scheme=scheme)
    widths = dict(page.evaluate(WIDTHS))
    expected = {path.name for path in gallery.glob("*.svg") if path.stem.endswith("-dark") == (scheme == "dark")}
    assert set(widths) == expected and len(expected) > 20
    assert min(widths.values()) > 0, [name for name, width in widths.items() if width == 0]


def test_every_committed_picture_is_seen(guard, tmp_path):
    files = [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "tests/data/figures").glob("*.svg")]
    page = tmp_path / "pictures.html"
    page.write_text("\n".join(f'<img src="{path.as_uri()}">' for path in files))
    guard.own = ROOT
    widths = guard.open(page).evaluate(WIDTHS)
    assert len(widths) == len(files) > 30
    assert all(width > 0 for _, width in widths), [name for name, width in widths if width == 0]
    for path in files:
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg", path
