"""The page of docs/explore.html as a test drives it: its address, its numbers, and a pointer that is really moved."""

from pathlib import Path
from urllib.parse import urlencode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explore.html"


def listed(numbers):
    return ",".join(repr(float(x)) for x in numbers)


class Explorer:
    """One open page; ``moment`` is what its address says."""

    def __init__(self, browser, **moment):
        self.browser = browser
        fields = {key: x if isinstance(x, str | int) else listed(x) for key, x in moment.items()}
        browser.open("about:blank")
        browser.open(PAGE.as_uri() + "#" + urlencode(fields, safe=","))

    def __getattr__(self, name):
        """What ``explore.name`` is, or ``explore.name()`` gives."""
        return self.browser.evaluate(f"typeof explore.{name} === 'function' ? explore.{name}() : explore.{name}")

    def place(self, selector):
        """Centre of an element in the window, once it is scrolled there."""
        script = (
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return self.browser.evaluate(script)

    def drag(self, selector, dx, dy):
        """Press, move in four steps, let go."""
        x, y = self.place(selector)
        self._mouse("mousePressed", x, y, buttons=1)
        for i in range(1, 5):
            self._mouse("mouseMoved", x + dx * i / 4, y + dy * i / 4, buttons=1)
        self._mouse("mouseReleased", x + dx, y + dy)

    def click(self, selector):
        x, y = self.place(selector)
        self._mouse("mousePressed", x, y, buttons=1)
        self._mouse("mouseReleased", x, y)

    def touch(self, selector, dx, dy):
        x, y = self.place(selector)
        for kind, step in (("touchStart", 0), ("touchMove", 0.5), ("touchMove", 1), ("touchEnd", None)):
            points = [] if step is None else [{"x": x + dx * step, "y": y + dy * step}]
            self.browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def key(self, selector, name):
        """Press a key while the element has the focus."""
        self.browser.evaluate(f"document.querySelector({selector!r}).focus()")
        for kind in ("keyDown", "keyUp"):
            self.browser.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=_CODE[name]
            )

    def complaints(self):
        """Errors of the console, uncaught exceptions, and requests to anywhere but this file."""
        said = [e["entry"] for e in self.browser.happened("Log.entryAdded")] + self.browser.happened(
            "Runtime.exceptionThrown"
        )
        said += [e for e in self.browser.happened("Runtime.consoleAPICalled") if e["type"] in ("error", "warning")]
        asked = [e["request"]["url"] for e in self.browser.happened("Network.requestWillBeSent")]
        return said + [url for url in asked if not url.startswith(("file:", "data:", "about:"))]

    def _mouse(self, kind, x, y, buttons=0):
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1)


_CODE = {"ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "ArrowLeft": 37, "Home": 36, "End": 35, "Enter": 13}


def by_label(label):
    return f'[aria-label="{label}"]'
