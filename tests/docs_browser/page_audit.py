"""What is wrong with a page, as the browser sees it: a list of complaints, empty for a good page."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

HERE = Path(__file__).parent
ROOT = Path(os.environ.get("KFDYN_DOCS", HERE.parents[1] / "docs" / "_build" / "html"))
PHONE = 390  # pixels
REPORT = (HERE / "page_report.js").read_text(encoding="utf-8")


def audit(browser, page, root):
    """Open a page (a path under ``root``), and return (complaints, report)."""
    browser.open(page.resolve().as_uri())
    report = browser.evaluate(REPORT)
    root = root.resolve()
    complaints = [f"image does not load: {src}" for src in report["images"]]
    complaints += [f"formula not rendered: {text}" for text in report["unrendered"]]
    complaints += [f"formula with an error: {text}" for text in report["wrong"]]
    complaints += [f"{report['empty']} formulas of no width"] * bool(report["empty"])
    complaints += [f"raw TeX in the text: {text}" for text in report["raw"]]
    complaints += [f"the page is {report['wide']} pixels wider than its window"] * (report["wide"] > 0)
    complaints += [f"equation {number} overprints its number" for number in report["overprinted"]]
    width, overprinted = browser.at_width(PHONE, "[document.documentElement.scrollWidth, overprinted()]")
    complaints += [f"the page is {width - PHONE} pixels wider than a phone"] * (width > PHONE)
    complaints += [f"on a phone equation {number} overprints its number" for number in overprinted]
    complaints += ["no title"] * (not report["title"])
    for event in browser.happened("Network.requestWillBeSent"):
        url = event["request"]["url"]
        scheme = urlsplit(url).scheme
        if scheme == "file" and not local_path(url).is_relative_to(root):
            complaints.append(f"asks for a file outside the documentation: {url}")
        elif scheme not in ("file", "data", "blob"):
            complaints.append(f"asks the network: {url}")
    complaints += [f"request failed: {event['errorText']}" for event in browser.happened("Network.loadingFailed")]
    for event in browser.happened("Runtime.consoleAPICalled"):
        if event["type"] in ("error", "assert"):
            said = " ".join(str(argument.get("value", argument.get("description"))) for argument in event["args"])
            complaints.append(f"console error: {said}")
    for event in browser.happened("Runtime.exceptionThrown"):
        complaints.append(f"exception: {event['exceptionDetails'].get('exception', {}).get('description')}")
    for event in browser.happened("Log.entryAdded"):
        if event["entry"]["level"] == "error":
            complaints.append(f"log error: {event['entry']['text']} {event['entry'].get('url', '')}")
    return complaints, report


def broken_links(report, page, ids_of):
    """Links of a page to files and anchors that are not there; ``ids_of(path)`` gives the ids of another page."""
    broken = []
    for link in report["links"]:
        parts = urlsplit(link)
        if parts.scheme != "file":
            continue
        path = local_path(link)
        if not path.is_file():
            broken.append(f"link to a missing file: {link}")
        elif (
            parts.fragment and "=" not in parts.fragment and path.suffix == ".html"
        ):  # explore.html#scene=… is no anchor
            ids = report["ids"] if path == page.resolve() else ids_of(path)
            if unquote(parts.fragment).removeprefix("/") not in ids:  # reveal.js writes #/slide
                broken.append(f"link to a missing anchor: {link}")
    return broken


def local_path(url):
    return Path(url2pathname(urlsplit(url).path)).resolve()
