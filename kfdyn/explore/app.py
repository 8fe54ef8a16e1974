"""The explorer: a robot in the browser, its moment, and what people do to it."""

from __future__ import annotations

import errno
import io
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfdyn.errors import KfdynError, ModelError
from kfdyn.explore.moment import Moment, pulled, solve
from kfdyn.explore.motion import advanced
from kfdyn.explore.panel import Panel
from kfdyn.explore.scene import WORLD, Scene
from kfdyn.explore.shapes import shapes_of
from kfdyn.extras import needed
from kfdyn.multibody import System, kinetic_energy, potential_energy
from kfdyn.multibody.calls.arguments import expect_system
from kfdyn.multibody.kinds import expect_no_loops, expect_rigid

if TYPE_CHECKING:
    import viser

FRAME = 1 / 30  # seconds
STAGES = (2_000, 10_000, 50_000, 200_000)  # samples of the check, one stage after the other


class Explorer:
    """A robot served to browsers on this machine; ``close`` ends it.

    Parameters
    ----------
    system : System
        The robot: a tree of rigid bodies, with couplings or without.
    q : (nq,), optional
        Where it starts; neutral if not given.
    source : str, optional
        The file it came from, for its meshes.
    host, port
        Where it is served; port 0 takes any that is free.

    Examples
    --------
    >>> import kfdyn as kf
    >>> from kfdyn.explore import Explorer
    >>> with Explorer(kf.models.double_pendulum(), port=0) as explorer:
    ...     explorer.address.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        system: System,
        q: ArrayLike | None = None,
        source: str | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        expect_system(system)
        expect_rigid(system, "the explorer")
        expect_no_loops(
            system,
            "the explorer",
            "a slider would pull its loops apart; explore system.without_loops, or watch a motion of it by "
            "kf.viz.animate",
        )
        if not system.nv:
            raise ModelError(f"nothing moves in {system.name!r}; is a floating base missing?")
        self.moment = Moment.at_rest(system, q)
        self.numbers = solve(self.moment)
        self.server = make_server(host, port)
        self.address = f"http://{host}:{self.server.get_port()}"
        shapes, self.missing = shapes_of(system, source)
        self.scene = Scene(self.server, self.moment, self.numbers, shapes)
        self.panel = Panel(self.server, self.moment, self.change)
        self.tip = _tip(system)
        self.handle = self.server.scene.add_transform_controls(
            f"{WORLD}/handle",
            scale=0.18 * self.scene.reach,
            disable_rotations=True,
            position=self._tip_place(),
            depth_test=False,
        )
        self.running = False
        self.checking = threading.Event()
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._listen()
        self.refresh()
        self._thread = threading.Thread(target=self._keep_moving, daemon=True)
        self._thread.start()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the motion and the server."""
        with self._lock:
            self._ended.set()
        self._thread.join(timeout=2.0)
        with redirect_stdout(io.StringIO()):
            self.server.stop()

    def change(self, use: Callable[[Moment], Moment]) -> None:
        """Replace the moment by what ``use`` makes of it and show that; say so where it cannot be solved."""
        with self._lock:
            if self._ended.is_set():  # a late event of a browser
                return
            before = self.moment
            try:
                self.moment = use(before)
                self.numbers = solve(self.moment)
            except KfdynError as error:
                self.moment = before
                self.panel.verdict.content = f"**Not possible:** {error}"
            self.refresh()

    def refresh(self, pictures: bool = True) -> None:
        """Show the moment."""
        with self._lock:
            self.scene.show(self.moment, self.numbers, self.panel.chosen(self.moment))
            self.panel.show(self.moment, self.numbers, pictures)
            self.handle.position = self._tip_place()
            if pictures:
                m = self.moment
                kinetic = float(kinetic_energy(m.built, m.q, m.v))
                potential = float(potential_energy(m.built, m.q)) if m.gravity else 0.0
                self.panel.energy.content = (
                    f"kinetic {kinetic:.4g} J, potential {potential:.4g} J, together **{kinetic + potential:.6g} J**"
                )

    def advance(self, seconds: float) -> None:
        """Move on; hold what is too fast to follow."""
        with self._lock:
            moved = advanced(self.moment, seconds)
            if moved is None:
                self.run(False)
                self.panel.verdict.content = "**Held:** it is too fast to follow; stop the motion or lower a torque."
                return
            self.moment = moved
            self.numbers = solve(self.moment)

    def run(self, on: bool) -> None:
        """Play or pause the motion."""
        self.running = on
        self.panel.play.label = "pause" if on else "play"

    def start_check(self) -> threading.Thread | None:
        """Cross-check the pose in the background, more samples at every stage; None if one is under way."""
        if self.checking.is_set():
            return None
        self.checking.set()
        self.panel.check.disabled = True
        thread = threading.Thread(target=self._check, args=(self.moment,), daemon=True)
        thread.start()
        return thread

    def _check(self, moment: Moment) -> None:
        from kfdyn.duality import cross_check

        try:
            for stage, samples in enumerate(STAGES):
                self.panel.verdict.content = f"drawing {samples:,} samples …"
                report = cross_check(moment.built, moment.q, moment.v, samples=samples, seed=stage, progress=False)
                words = "PASSED" if report.passed else "REJECTED: " + "; ".join(report.rejected)
                self.panel.figure.image = _convergence(report)
                self.panel.figure.visible = True
                self.panel.verdict.content = f"**{words}** with {report.samples:,} samples"
                if not report.passed or self._ended.is_set():
                    break
        except KfdynError as error:
            self.panel.verdict.content = f"**Not possible:** {error}"
        finally:
            self.panel.check.disabled = False
            self.checking.clear()

    def _listen(self) -> None:
        panel, system = self.panel, self.moment.system
        rng = np.random.default_rng(0)
        zero = np.zeros(system.nv)
        panel.play.on_click(lambda _: self.run(not self.running))
        panel.stop.on_click(lambda _: self.change(lambda m: replace(m, v=zero)))
        panel.neutral.on_click(lambda _: self.change(lambda m: replace(m, q=system.neutral(), v=zero)))
        panel.random.on_click(lambda _: self.change(lambda m: replace(m, q=system.random_configuration(rng), v=zero)))

        @panel.check.on_click
        def _(_event: Any) -> None:
            self.start_check()

        @self.handle.on_update
        def _(_event: Any) -> None:
            target = np.array(self.handle.position)
            self.change(lambda m: pulled(m, self.tip, target))

    def _tip_place(self) -> NDArray[np.float64]:
        k, _, offset = self.moment.system.locate(self.tip)
        place: NDArray[np.float64] = self.numbers.position[k] + self.numbers.rotation[k] @ offset
        return place

    def _keep_moving(self) -> None:
        frame = 0
        while not self._ended.is_set():
            start = time.perf_counter()
            if self.running:
                frame += 1
                try:
                    with self._lock:
                        if not self._ended.is_set():
                            self.advance(FRAME)
                            self.refresh(pictures=frame % 6 == 0)
                except KfdynError as error:
                    self.run(False)
                    self.panel.verdict.content = f"**Held:** {error}"
            self._ended.wait(max(0.002, FRAME - (time.perf_counter() - start)))


def serve(
    system: System,
    q: ArrayLike | None = None,
    source: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    open_browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the explorer until Ctrl-C.

    Parameters
    ----------
    system, q, source, host, port
        See :class:`Explorer`.
    open_browser : bool
        Whether to open a browser.
    say : callable
        Where words go.
    """
    with Explorer(system, q, source, host, port) as explorer:
        try:  # from here on the address may be known to somebody, who may press Ctrl-C
            if explorer.missing:
                say(f"{len(explorer.missing)} meshes could not be read, the first {explorer.missing[0]}")
            say(f"{system.name!r} is at {explorer.address}; Ctrl-C ends it")
            if open_browser:
                webbrowser.open(explorer.address)
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            say("ended")


def record(
    system: System, path: str | Path, q: ArrayLike | None = None, source: str | None = None, seconds: float = 4.0
) -> None:
    """Write a fall of the robot as one HTML file that opens without a server.

    Parameters
    ----------
    system, q, source
        See :class:`Explorer`.
    path : str or path
        The file to write.
    seconds : float
        How long it falls.
    """
    with Explorer(system, q, source, port=0) as explorer:
        explorer.handle.visible = False  # nobody can pull at a recording
        explorer.scene.look_from_afar()
        recording = explorer.server.get_scene_serializer()
        for _ in range(round(seconds / FRAME)):
            recording.insert_sleep(FRAME)
            explorer.advance(FRAME)
            explorer.refresh(pictures=False)
        Path(path).write_text(recording.as_html(), encoding="utf-8")


def make_server(host: str, port: int) -> viser.ViserServer:
    """Start viser's server without its share button; explain a missing package or a port in use."""
    package = needed("viser", "explore", "the explorer")
    if not 0 <= port < 65536:
        raise ModelError(f"there is no port {port}; name one from 0 (any) to 65535 by --port")
    with socket.socket() as probe:  # viser would quietly take the next port
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            not_here = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
            cure = "name an address of this machine by --host" if not_here else "name another port by --port"
            raise ModelError(f"{host}:{port} cannot be used ({error.strerror}); {cure}") from None
        port = probe.getsockname()[1]
    with redirect_stdout(io.StringIO()):  # it would print a box of addresses; ours is a line
        server: viser.ViserServer = package.ViserServer(host=host, port=port, label="kfdyn", verbose=False)
    server.gui.configure_theme(
        show_share_button=False, show_logo=False, control_width="large", brand_color=(0, 114, 178)
    )
    return server


def _tip(system: System) -> str:
    """Return the frame furthest out on the longest branch: a leaf's first named frame, or the leaf itself."""
    depth = np.zeros(system.n_bodies, dtype=int)
    for k in system.open_tree.layout.order:
        if system.parent[k] >= 0:
            depth[k] = depth[system.parent[k]] + 1
    leaf = system.body_names[int(depth.argmax())]
    on_it = [name for name, frame in system.frames.items() if frame.body == leaf]
    return on_it[-1] if on_it else leaf


def _convergence(report: Any) -> NDArray[np.uint8]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from kfdyn.viz.cross_check_figures import draw_convergence

    figure = Figure(figsize=(4.2, 3.0), dpi=110, layout="constrained")
    draw_convergence(report, figure.subplots())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
