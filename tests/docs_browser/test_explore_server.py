"""``kfdyn explore`` in a headless Chromium: buttons are pressed, sliders and the handle dragged, as a person would."""

import base64
import contextlib
import io
import os
import time
from pathlib import Path

import numpy as np
import pytest
from devtools import Chromium, find_chromium

import kfdyn as kf
from kfdyn.explore import Explorer, Mode, record

pytestmark = pytest.mark.slow

SHOTS = os.environ.get("KFDYN_SHOTS")  # a folder for screenshots, to be looked at


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    binary = find_chromium()
    if binary is None:
        pytest.skip("no Chromium to open the explorer with; on Debian or Ubuntu: apt install chromium")
    own = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    own += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    chromium = Chromium(binary, tmp_path_factory.mktemp("profile"), flags=own)
    yield chromium
    chromium.close()


@pytest.fixture
def puma(window):
    with Explorer(kf.models.puma560(), [0.3, -0.8, 0.4, 0.2, 0.5, 0.1], port=0) as explorer:
        window.open(explorer.address)
        wait(lambda: "joint_1" in (text_of(window) or ""))
        wait(lambda: explorer.server.get_clients())
        yield explorer


def wait(condition, seconds=900.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def text_of(window):
    return window.evaluate("document.body.innerText")


def centre(window, text, tag="*"):
    """Where the element with exactly this text stands."""
    return window.evaluate(
        f"(() => {{const fits = e => e.innerText?.trim() == {text!r} && (!e.children.length || e.tagName == 'BUTTON');"
        f"const e = [...document.querySelectorAll({tag!r})].find(e => fits(e) && e.getBoundingClientRect().width > 0);"
        "if (!e) return null; e.scrollIntoView({block: 'nearest'});"
        "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )


def mouse(window, kind, x, y, buttons=0):
    window.call(
        "Input.dispatchMouseEvent",
        type=kind,
        x=x,
        y=y,
        button="left" if buttons or kind != "mouseMoved" else "none",
        buttons=buttons,
        clickCount=1,
    )


def click(window, text, tag="*", until=None):
    """Press what has this text; again and again until something holds, as one does on a slow machine."""

    def once():
        x, y = centre(window, text, tag)
        mouse(window, "mouseMoved", x, y)
        mouse(window, "mousePressed", x, y, 1)
        mouse(window, "mouseReleased", x, y)

    wait(lambda: centre(window, text, tag))
    once()
    end = time.monotonic() + 900
    while until is not None and not until():
        assert time.monotonic() < end, f"pressed {text!r} in vain"
        time.sleep(2)
        if not until():
            once()


def drag(window, start, end, steps=8, pause=0.05):
    mouse(window, "mouseMoved", *start)
    time.sleep(pause * 4)  # a handle must notice the pointer before it can be grabbed
    mouse(window, "mousePressed", *start, 1)
    for i in range(1, steps + 1):
        mouse(window, "mouseMoved", *(np.array(start) + (np.array(end) - start) * i / steps), 1)
        time.sleep(pause)
    mouse(window, "mouseReleased", *end)


def shot(window, name):
    """What the window shows, (height, width, 3); kept as a file if someone wants to look at it."""
    from matplotlib.image import imread

    picture = base64.b64decode(window.call("Page.captureScreenshot", format="png")["data"])
    if SHOTS:
        Path(SHOTS, f"{name}.png").write_bytes(picture)
    return imread(io.BytesIO(picture), format="png")[..., :3]


def complaints(window):
    """Errors, and anything asked of a machine that is not this one."""
    asked = [e["request"]["url"] for e in window.happened("Network.requestWillBeSent")]
    outside = [url for url in asked if not url.startswith(("http://127.0.0.1", "data:", "blob:", "ws://127.0.0.1"))]
    return outside + [e["exceptionDetails"]["text"] for e in window.happened("Runtime.exceptionThrown")]


def test_pose_and_motion(puma, window):
    before = puma.moment.q.copy()
    click(window, "random", until=lambda: not np.array_equal(puma.moment.q, before))
    click(window, "neutral", until=lambda: np.array_equal(puma.moment.q, puma.moment.system.neutral()))
    thumb = window.evaluate(
        "(() => { const r = document.querySelector('[role=slider]').getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    drag(window, thumb, [thumb[0] + 40, thumb[1]])
    wait(lambda: puma.moment.q[0] > 0.1)
    shot(window, "pose")
    click(window, "Motion", until=lambda: "stop motion" in text_of(window))
    click(window, "play", "button")
    wait(lambda: np.abs(puma.moment.v).max() > 0.01)
    click(window, "pause", "button")
    wait(lambda: not puma.running)
    click(window, "stop motion", "button")
    wait(lambda: not puma.moment.v.any())
    click(window, "gravity")
    wait(lambda: not puma.moment.gravity)
    assert complaints(window) == []


def test_handle_pulls_the_tip(puma, window):
    """The arrow of the handle is found by the camera's own projection and dragged with the mouse."""
    client = next(iter(puma.server.get_clients().values()))
    wait(lambda: client.camera.image_width)
    tip, q = puma._tip_place(), puma.moment.q.copy()
    axis = np.array([0.0, 0.0, 1.0])
    wait(lambda: np.ptp(shot(window, "handle")[150:700, 300:850]) > 0.6)  # the scene fades in, slowly on a slow machine
    for _ in range(5):  # the renderer may be busy, or the camera still on its way: grab again, as one does
        grab = project(client.camera, tip + 0.75 * puma.handle.scale * axis)
        aim = project(client.camera, tip + (0.75 * puma.handle.scale + 0.1) * axis)
        drag(window, grab, aim, pause=0.5)
        with contextlib.suppress(AssertionError):
            wait(lambda: not np.array_equal(puma.moment.q, q), 15)
            break
    assert not np.array_equal(puma.moment.q, q)
    wait(lambda: (puma._tip_place() - tip)[2] > 0.02)
    moved = puma._tip_place() - tip
    assert np.linalg.norm(moved[:2]) < 0.5 * moved[2] + 0.01
    assert complaints(window) == []


def project(camera, point):
    w, x, y, z = camera.wxyz
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    u, v, depth = R.T @ (np.asarray(point) - camera.position)
    focal = camera.image_height / 2 / np.tan(camera.fov / 2)
    return [float(camera.image_width / 2 + focal * u / depth), float(camera.image_height / 2 + focal * v / depth)]


def test_hinges_numbers_and_check(puma, window, monkeypatch):
    monkeypatch.setattr("kfdyn.explore.app.STAGES", (2_000, 4_000))
    for mode, key in ((Mode.LOCKED, "known"), (Mode.ROTOR, None)):
        puma.change(lambda m, mode=mode: m.with_mode("joint_1", mode))
        if key:
            assert puma.moment.known[0]
    click(window, "Hinge", until=lambda: "rotor" in text_of(window))
    assert "D =" in text_of(window)
    shot(window, "hinge")
    click(window, "Numbers", until=lambda: "log det" in text_of(window))
    assert f"{puma.numbers.logdet:.4f}" in text_of(window)
    shot(window, "numbers")
    click(window, "Check", until=lambda: "check this pose" in text_of(window))
    click(window, "check this pose", "button")
    wait(lambda: "PASSED with 4,000 samples" in text_of(window), 120)
    shot(window, "check")
    assert complaints(window) == []


def test_no_share_button(puma, window):
    words = window.evaluate(
        "[...document.querySelectorAll('button, [role=button], [aria-label], [title]')]"
        ".map(e => `${e.innerText} ${e.ariaLabel} ${e.title}`).join(' ').toLowerCase()"
    )
    assert "neutral" in words
    assert "share" not in words


def test_recording_opens_without_a_server(window, tmp_path):
    path = tmp_path / "fall.html"
    record(kf.models.double_pendulum(), path, [0.5, 0.3], seconds=0.5)
    window.open(path.as_uri())
    wait(lambda: np.ptp(shot(window, "recording")[300:700, 300:900]) > 0.3)  # something is drawn in the middle
    asked = [e["request"]["url"] for e in window.happened("Network.requestWillBeSent")]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    print(f"\nrecording: {path.stat().st_size / 1e6:.1f} MB")
