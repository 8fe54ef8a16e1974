import pytest
from devtools import Chromium, find_chromium
from page_audit import ROOT


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    binary = find_chromium()
    if binary is None:
        pytest.skip("no Chromium to open the pages with; on Debian or Ubuntu: apt install chromium")
    chromium = Chromium(binary, tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="session")
def docs():
    if not (ROOT / "index.html").is_file():
        pytest.skip("the documentation is not built; run make docs first")
    return ROOT


@pytest.fixture(scope="session")
def mathjax(docs):
    script = docs / "_static" / "mathjax" / "tex-svg-full.js"
    if not script.is_file():
        pytest.skip("the documentation was built without MathJax; install npm and run make docs again")
    return script
