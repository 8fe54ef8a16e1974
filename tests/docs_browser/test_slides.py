"""The slides of the lecture fit, wide and upright; keys turn them, scenes load, they print, and ask no network."""

import base64
import re
import time
from urllib.parse import parse_qsl

import pytest
from explore_page import PAGE, Explorer
from page_audit import ROOT

pytestmark = pytest.mark.slow

SLIDES = ROOT / "slides" / "index.html"
DOCS = PAGE.parent
MOMENTS = sorted(
    {
        moment
        for page in DOCS.rglob("*.md")
        if not {"_build", "gallery", "generated"} & set(page.relative_to(DOCS).parts)
        for moment in re.findall(r'explore\.html#([^"\s]+)', page.read_text(encoding="utf-8"))
    }
)
SHAPES = {"wide": (1280, 720), "upright": (390, 720)}
FRAMES = {"wide": [1240, 582], "upright": [600, 900]}  # of an embedded scene; slides are scaled to the window
FITS = """Reveal.getSlides().map(slide => {
  const wide = [...slide.querySelectorAll("pre code, div.math, table")].filter(e => e.scrollWidth > e.clientWidth + 1);
  const { width, height } = Reveal.getConfig();
  return [slide.querySelector("h1, h2").innerText, slide.scrollWidth - width, slide.scrollHeight - height, wide.length];
}).filter(([, right, below, wide]) => right > 0 || below > 0 || wide)"""


@pytest.fixture
def slides(browser, docs, mathjax, request):
    if not SLIDES.is_file():
        pytest.skip("the slides are not built; run make docs first")
    width, height = SHAPES[getattr(request, "param", "wide")]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < height}
    browser.call("Emulation.setDeviceMetricsOverride", **metrics)
    browser.open("about:blank")
    browser.open(SLIDES.as_uri())
    browser.evaluate("MathJax.startup.promise.then(() => Reveal.layout())")
    yield browser
    browser.call("Emulation.clearDeviceMetricsOverride")


def asked(browser):
    return [event["request"]["url"] for event in browser.happened("Network.requestWillBeSent")]


def press(browser, key, code):
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


def speaker_views(browser):
    targets = browser.call("Target.getTargets", session=False)["targetInfos"]
    return [target for target in targets if "Speaker View" in target["title"]]


def wait(condition, seconds=900.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize("slides", SHAPES, indirect=True)
def test_every_slide_fits_and_no_slide_asks_the_network(slides):
    assert slides.evaluate(FITS) == []
    total = slides.evaluate("Reveal.getTotalSlides()")
    assert total > 20
    for k in range(total):
        slides.evaluate(f"Reveal.slide({k})")
        wait(lambda: slides.evaluate("!Reveal.getCurrentSlide().querySelector('iframe:not([src])')"))
    scenes = slides.evaluate("[...document.querySelectorAll('iframe')].map(frame => frame.dataset.src)")
    wait(lambda: sum("explore.html" in url for url in asked(slides)) >= len(scenes) >= 5)
    sizes = slides.evaluate("[...document.querySelectorAll('iframe')].map(f => [f.clientWidth, f.clientHeight])")
    assert all(size in FRAMES.values() for size in sizes)
    assert [url for url in asked(slides) if not url.startswith(("file:", "data:", "about:"))] == []
    assert slides.happened("Runtime.exceptionThrown") == []
    fonts = slides.evaluate("[...document.fonts].length")
    assert fonts == 0  # letters of the system alone


def test_keys_turn_pages_and_every_slide_has_its_notes(slides):
    press(slides, "ArrowRight", 39)
    wait(lambda: slides.evaluate("Reveal.getIndices().h") == 1)
    press(slides, "ArrowLeft", 37)
    wait(lambda: slides.evaluate("Reveal.getIndices().h") == 0)
    notes = slides.evaluate(
        "Reveal.getSlides().map(slide => slide.querySelector('aside.notes')?.textContent.length || 0)"
    )
    assert min(notes) > 30
    press(slides, "s", 83)
    wait(lambda: speaker_views(slides))
    for target in speaker_views(slides):
        slides.call("Target.closeTarget", targetId=target["targetId"], session=False)


def test_on_paper_every_slide_is_a_page_with_its_scene(slides):
    slides.open(SLIDES.as_uri() + "?print-pdf")
    total = slides.evaluate("Reveal.getTotalSlides()")
    wait(lambda: slides.evaluate("document.querySelectorAll('.pdf-page').length") == total)
    wait(lambda: slides.evaluate("[...document.querySelectorAll('iframe')].every(f => f.src.includes('#scene='))"))
    slides.evaluate("MathJax.startup.promise.then(() => 1)")
    printed = slides.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]
    paper = base64.b64decode(printed)
    assert max(map(int, re.findall(rb"/Count (\d+)", paper))) == total
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^]]*)\]", paper)}
    assert all(right > below for *_, right, below in boxes)
    assert [url for url in asked(slides) if not url.startswith(("file:", "data:", "about:"))] == []


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_linked_moment_is_what_the_page_shows(browser, moment):
    """Every address in the pages and the slides says something that the page understands and keeps."""
    said = dict(parse_qsl(moment, keep_blank_values=True))
    page = Explorer(browser, **said)
    assert said.items() <= dict(parse_qsl(page.address[1:])).items()
    assert page.complaints() == []
    hidden = browser.evaluate("getComputedStyle(document.querySelector('header')).display") == "none"
    assert hidden == (said.get("bare") == "1")


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if "bare=1" in moment])
def test_a_scene_in_a_slide_is_seen_whole(browser, frame, moment):
    """Nothing is below the frame or beside it, nor when words grow; letters keep three quarters of their size."""
    width, height = FRAMES[frame]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **metrics)
    try:
        page = Explorer(browser, **dict(parse_qsl(moment)))
        bounds = (
            "(() => { const r = document.querySelector('main').getBoundingClientRect();"
            "const out = [...document.querySelectorAll('main *')].map(e => e.getBoundingClientRect());"
            "return [r.top, r.left, Math.max(...out.map(b => b.bottom)), Math.max(...out.map(b => b.right)),"
            "r.width / document.querySelector('main').offsetWidth]; })()"
        )
        for words in ("", "document.querySelector('#last').click(), document.querySelector('#sample').click()"):
            browser.evaluate(words or "0")
            browser.evaluate("new Promise(done => setTimeout(done, 200))")
            top, left, below, right, scale = browser.evaluate(bounds)
            assert top >= 0 and left >= 0
            assert below <= height and right <= width
            assert scale > 0.74
        assert page.complaints() == []
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
