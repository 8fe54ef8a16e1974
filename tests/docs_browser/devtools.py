"""A headless Chromium, spoken to in its DevTools protocol through a pair of pipes: no driver, no port, no network.

Messages are JSON, each ended by a NUL byte; Chromium reads them from descriptor 3 and writes to descriptor 4.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time

BINARIES = ("chromium", "chromium-browser", "google-chrome")
# Resolve no name but answer none either: a request that should not be is seen as such, and goes nowhere.
FLAGS = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--window-size=1280,1000",
]
# Puts the two ends where Chromium looks for them, and becomes Chromium.
LAUNCHER = (
    "import os, sys; r, w, *argv = sys.argv[1:]; os.dup2(int(r), 3); os.dup2(int(w), 4); os.execvp(argv[0], argv)"
)


class BrowserError(RuntimeError):
    """The browser did not start, did not answer, or refused a command."""


def find_chromium():
    """Path of an installed Chromium, or None."""
    return next((path for path in map(shutil.which, BINARIES) if path), None)


class Chromium:
    """One headless browser with one page."""

    def __init__(self, binary, profile, timeout=900.0, flags=()):
        self.timeout = timeout
        self.events = []
        self._buffer = b""
        self._number = 0
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]  # out of the way of 3 and 4
        os.close(to_browser)
        os.close(from_browser)
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox does not start for root
        argv = [binary, *FLAGS, *flags, *sandbox, f"--user-data-dir={profile}"]
        self._said = profile / "stderr.txt"
        with self._said.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, *map(str, ends), *argv],
                pass_fds=ends,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        for end in ends:
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank", session=False)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=False)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, *, session=True, **parameters):
        """Send a command, wait for its answer, keep the events that come in between."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        """Load a page and wait for its load event; the events since then are in ``events``."""
        self.events.clear()
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        deadline = time.monotonic() + self.timeout
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive(deadline, f"load of {url}"))

    def evaluate(self, script):
        """Value of a JavaScript expression in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def at_width(self, pixels, script):
        """Value of an expression when the window is so wide."""
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=800, deviceScaleFactor=1, mobile=False)
        try:
            return self.evaluate(script)
        finally:
            self.call("Emulation.clearDeviceMetricsOverride")

    def happened(self, method):
        """Parameters of the events of one kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def close(self):
        """End the browser."""
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close", session=False)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _receive(self, deadline, what):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise BrowserError(f"no answer to {what} within {self.timeout:.0f} s")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                said = self._said.read_text(encoding="utf-8", errors="replace")
                raise BrowserError(f"the browser went away: {said[-2000:]}")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
