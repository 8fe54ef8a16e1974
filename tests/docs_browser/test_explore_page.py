"""docs/explore.html: its filter is the package's, and everything on it can be dragged, pressed and typed at."""

import numpy as np
import pytest
from explore_page import PAGE, Explorer, by_label

import kfdyn as kf
from kfdyn.spatial import spatial_inertia

pytestmark = pytest.mark.slow

PARENTS = {
    "2": [-1, 0],
    "3": [-1, 0, 1],
    "4": [-1, 0, 1, 2],
    "5": [-1, 0, 1, 2, 3],
    "6": [-1, 0, 1, 2, 3, 4],
    "Y": [-1, 0, 1, 1, 2, 3],
}


def near(got, wanted):
    wanted = np.asarray(wanted, dtype=float)
    np.testing.assert_allclose(np.asarray(got, dtype=float), wanted, rtol=1e-9, atol=1e-9 * max(1.0, abs(wanted).max()))


@pytest.mark.parametrize("seed", range(6))
def test_train_is_the_packages_filter(browser, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    m, R, T = rng.uniform(0.05, 5, n), rng.uniform(0, 4, n), rng.uniform(-4, 4, n)
    lock = rng.random(n) < 0.3
    R[rng.random(n) < 0.2] = 0.0
    page = Explorer(browser, scene="train", m=m, R=R, T=T, lock="".join("01"[int(x)] for x in lock))
    ss = kf.StateSpace([*range(1, n), -1], np.ones((n, 1, 1)), np.ones((n, 1, 1)), m[:, None, None], R[:, None, None])
    filt = kf.kalman_filter(ss, np.where(lock, np.nan, T))
    smooth = kf.bryson_frazier(ss, filt)
    for k, node in enumerate(page.numbers):
        near(node["P"], filt.P[k])
        near(node["Pp"], filt.P_plus[k])
        near(node["z"], filt.z[k])
        near(node["zp"], filt.z_plus[k])
        near(node["lambda"], smooth.costate[k])
        near(node["x"], smooth.x[k])
        near(node["S"], smooth.smoothed_state_cov[k])
        near(node["a"], smooth.a[k])
        if not lock[k]:
            near(node["D"], filt.D[k][0, 0])
            near(node["G"], filt.G[k][:, 0])
            near(node["eps"], filt.eps[k])
    assert page.complaints() == []


def test_car_is_the_packages_plan(browser):
    rng = np.random.default_rng(7)
    n, h = 6, 0.5
    w, R, lock = rng.uniform(0.05, 5, n), rng.uniform(0, 4, n), np.array([0, 1, 0, 0, 1, 0])
    page = Explorer(browser, scene="car", w=w, R=R, lock="".join(map(str, lock)), x="-2.5", step=2 * n)
    A, B = [[1.0, h], [0.0, 1.0]], [[h * h / 2], [h]]
    Q = [np.diag([weight, weight / 4]) for weight in w]
    plan = kf.lqr(A, B, Q, R[:, None, None], [-2.5, 0.0], r=np.where(lock, np.nan, 0.0))
    numbers = page.numbers
    near([node["lambda"] for node in numbers], plan.x)
    near([node["a"] for node in numbers], plan.u[:, 0])
    near([node["P"] for node in numbers], plan.value_hessian)
    near([node["x"] for node in numbers], plan.costate)
    assert page.complaints() == []


def planar_arm(shape, rotor, gravity):
    rod = spatial_inertia(1.0, [0.25, 0, 0], np.diag([0.0, 1.0, 1.0]) * 0.25 / 12)
    return kf.System(
        [
            kf.Body(
                f"link {k}", rod, kf.Hinge.revolute([0, 0, 1]), None if p < 0 else f"link {p}",
                position=[0.0 if p < 0 else 0.5, 0, 0], armature=rotor[k],
            )
            for k, p in enumerate(PARENTS[shape])
        ],
        gravity=(0, -9.81 if gravity else 0.0, 0),
    )  # fmt: skip


def random_arm(rng, shape):
    n = len(PARENTS[shape])
    q, v, tau, acc, rotor = (rng.uniform(-s, s, n) for s in (3, 2, 15, 20, 1))
    mode = rng.choice(list("flrd"), n, p=[0.5, 0.15, 0.2, 0.15])
    return q, v, tau, acc, abs(rotor), mode


@pytest.mark.parametrize("shape", PARENTS)
def test_arm_is_the_packages_dynamics(browser, shape):
    rng = np.random.default_rng(len(shape) + ord(shape))
    q, v, tau, acc, rotor, mode = random_arm(rng, shape)
    gravity = int(rng.integers(2))
    page = Explorer(
        browser, scene="arm", shape=shape, q=q, v=v, tau=tau, acc=acc, rotor=rotor, mode="".join(mode), gravity=gravity
    )
    system = planar_arm(shape, np.where(mode == "r", rotor, 0.0), gravity)
    known = (mode == "l") | (mode == "d")
    given = np.where(mode == "d", acc, 0.0)
    forces, rates = kf.hybrid_dynamics(system, q, v, tau, given, prescribed=known)
    numbers = page.numbers
    near([node["a"] for node in numbers], rates)
    near([node["force"] for node in numbers], forces)
    near(page.energies, [kf.kinetic_energy(system, q, v), kf.potential_energy(system, q)])
    free = np.flatnonzero(~known)
    dense = np.zeros((system.nv, system.nv))
    dense[np.ix_(free, free)] = np.linalg.inv(kf.mass_matrix(system, q)[np.ix_(free, free)])
    near(page.inverse, dense)
    if not known.any():
        filt = kf.kalman_filter(kf.as_estimation(system, q, v), tau)
        for k, node in enumerate(numbers):  # [moment; force x; force y] of [angular; linear]
            near(node["P"], filt.P[k][np.ix_([2, 3, 4], [2, 3, 4])])
            near(node["Pp"], filt.P_plus[k][np.ix_([2, 3, 4], [2, 3, 4])])
    assert page.complaints() == []


@pytest.mark.parametrize("dial", [0, 1, 50, 100])
def test_dial_is_the_dense_posterior(browser, dial):
    """Gaussian prior of the accelerations, torques 𝓜a + c + N(0, noise): solved with dense matrices."""
    rng = np.random.default_rng(dial)
    q, v, tau, acc, rotor, mode = random_arm(rng, "Y")
    page = Explorer(
        browser, scene="arm", shape="Y", q=q, v=v, tau=tau, acc=acc, rotor=rotor, mode="".join(mode), noise=dial
    )
    noise, prior, numbers = page.noise, page.prior, page.numbers
    assert (noise == 0) == (dial == 0)
    system = planar_arm("Y", np.where(mode == "r", rotor, 0.0), True)
    known = (mode == "l") | (mode == "d")
    given = np.where(mode == "d", acc, 0.0)
    M, c = kf.mass_matrix(system, q), kf.bias_forces(system, q, v)
    f = np.flatnonzero(~known)
    y = (tau - c - M[:, known] @ given[known])[f]
    A = M[np.ix_(f, f)]
    gain = prior * A.T @ np.linalg.inv(prior * A @ A.T + noise * np.eye(f.size))
    near(np.array([node["ea"] for node in numbers])[f], gain @ y)
    spread = prior * (np.eye(f.size) - gain @ A)
    near(np.array([node["evar"] for node in numbers])[f], np.diag(spread).clip(0))
    near(np.array([node["ea"] for node in numbers])[known], given[known])


def test_samples_approach_the_inverse(browser):
    page = Explorer(browser, scene="arm", shape="3")
    page.click("#sample")
    browser.evaluate(
        "new Promise(done => { const wait = () => explore.samples().n > 4000 ? done() : setTimeout(wait, 50);wait(); })"
    )
    page.click("#sample")
    samples, V = page.samples, np.array(page.inverse)
    S, n = np.array(samples["sums"]) / samples["n"], samples["n"]
    spread = np.sqrt((np.outer(np.diag(V), np.diag(V)) + V**2) / n)  # of an entry of a sample covariance
    assert np.all(abs(S - V) < 5 * spread)
    assert page.complaints() == []


@pytest.mark.parametrize("shape", PARENTS)
def test_falling_conserves_energy(browser, shape):
    """Ten seconds, in frames of the page; a frame keeps it to a part of 1e-9 of the energy exchanged."""
    page = Explorer(browser, scene="arm", shape=shape)
    before = sum(page.energies)
    moved = browser.evaluate("[...Array(600)].map(() => (explore.advance(1 / 60), explore.energies()))")
    kinetic, potential = np.array(moved).T
    assert kinetic.max() > 1.0
    assert abs(kinetic + potential - before).max() < 600 * 1e-9 * kinetic.max()


@pytest.mark.parametrize("seed", range(3))
def test_motion_is_that_of_simulate(browser, seed):
    """With torques, rotors, locked and driven hinges; what the page may leave out is rounding and 1e-9 of a frame."""
    rng = np.random.default_rng(seed)
    q, v, tau, acc, rotor, mode = random_arm(rng, "Y")
    mode[:3] = rng.permutation(["l", "d", "r"])
    v[mode == "l"] = 0.0
    page = Explorer(browser, scene="arm", shape="Y", q=q, v=v, tau=tau, acc=acc, rotor=rotor, mode="".join(mode))
    browser.evaluate("for (let i = 0; i < 24; i++) explore.advance(1 / 60)")
    system = planar_arm("Y", np.where(mode == "r", rotor, 0.0), True)
    given = np.where(mode == "d", acc, 0.0)

    def course(k):
        return lambda t: (q[k] + t * v[k] + t * t * given[k] / 2, v[k] + t * given[k], given[k])

    courses = {system.hinge_names[k]: course(k) for k in np.flatnonzero((mode == "l") | (mode == "d"))}
    wanted = kf.simulate(system, q, v, [0.0, 0.4], tau, courses=courses, substeps=2000)
    np.testing.assert_allclose(page.state["arm"]["q"], wanted.q[-1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(page.state["arm"]["v"], wanted.v[-1], rtol=1e-4, atol=1e-4)


def test_what_is_too_fast_to_follow_is_held(browser):
    page = Explorer(browser, scene="arm", shape="2", mode="dd", acc=[40, 40], v=[99.9, 0], gravity=0)
    page.click("#fall")
    browser.evaluate("new Promise(done => setTimeout(done, 400))")
    assert "too fast" in browser.evaluate("document.querySelector('#fall').textContent")
    assert np.abs(page.state["arm"]["v"]).max() <= 100
    assert page.complaints() == []


@pytest.mark.parametrize("falling", [False, True])
def test_the_menu_of_links_chooses(browser, falling):
    page = Explorer(browser, scene="arm", shape="3")
    if falling:
        page.click("#fall")
    for shape in ("5", "Y", "2"):
        browser.evaluate(
            f"(() => {{ const s = document.querySelector('#shape'); s.value = '{shape}';"
            "s.dispatchEvent(new Event('change')); })()"
        )
        assert page.state["arm"]["shape"] == shape
        assert len(page.numbers) == len(PARENTS[shape])
        assert browser.evaluate("document.querySelector('#shape').value") == shape
    assert page.complaints() == []


def test_every_number_of_a_hinge_has_its_unit(browser):
    page = Explorer(browser, scene="arm", shape="3")
    heads = page.browser.evaluate("[...document.querySelectorAll('#hinges th[scope=col]')].map(e => e.textContent)")
    assert heads[-3:] == ["Dkg m²", "ν = ε/Drad/s²", "arad/s²"]


@pytest.mark.parametrize("way", ["drag", "touch"])
def test_every_handle_of_the_train_moves(browser, way):
    page = Explorer(browser, scene="train", m=[2, 1, 3], R=[1, 1, 1], T=[1, -1, 2])
    move = getattr(page, way)
    for label, key, k, dx, dy, sign in [
        ("mass of cart 0", "m", 0, 0, -26, 1),
        ("rotor of motor 1", "R", 1, 0, -20, 1),
        ("force of motor 2", "T", 2, 20, 0, -1),
        ("measurement 0", "T", 0, 0, -20, 1),
        ("process noise 2", "m", 2, 0, 8, -1),
        ("measurement noise 1", "R", 1, 0, 8, -1),
    ]:
        before, P = page.state["train"][key][k], page.numbers[2]["x"]
        move(by_label(label), dx, dy)
        after = page.state["train"][key][k]
        assert np.sign(after - before) == sign, label
        assert page.numbers[2]["x"] != P, label
    assert page.complaints() == []


def test_every_button_of_the_train(browser):
    page = Explorer(browser, scene="train", m=[2, 1, 3], R=[1, 1, 1], T=[1, -1, 2])
    page.click(by_label("lock coupling 1"))
    assert page.state["train"]["lock"] == [0, 1, 0]
    assert page.numbers[1]["Pp"] == page.numbers[1]["P"]
    page.click(by_label("measurement 1 is missing"))
    assert page.state["train"]["lock"] == [0, 0, 0]
    for selector, step in [("#first", 0), ("#next", 1), ("#next", 2), ("#back", 1), ("#last", 6)]:
        page.click(selector)
        assert page.state["step"] == step
    page.click("#first")
    assert browser.evaluate("document.querySelectorAll('#numbers td.wait').length") == 30
    page.click("#play")
    browser.evaluate("new Promise(done => setTimeout(done, 2100))")
    assert page.state["step"] >= 2
    page.click("#play")
    browser.evaluate(
        "(() => { const s = document.querySelector('#count'); s.value = '5'; s.dispatchEvent(new Event('change')); })()"
    )
    assert len(page.numbers) == 5
    page.key(by_label("mass of cart 4"), "ArrowUp")
    assert page.state["train"]["m"][4] == pytest.approx(2.1)
    page.key(by_label("lock coupling 0"), "Enter")
    assert page.state["train"]["lock"][0] == 1
    page.click("#train-reset")
    assert page.state["train"]["lock"] == [0] * 5
    assert page.complaints() == []


def test_every_control_of_the_arm(browser):
    page = Explorer(browser, scene="arm", shape="3")
    q = page.state["arm"]["q"]
    page.drag(by_label("angle of hinge 1"), 30, -30)
    assert page.state["arm"]["q"][1] != q[1]
    assert page.state["arm"]["q"][0] == q[0]
    tip = by_label("tip of link 2, left and right")
    x, y = page.place(tip)
    page.drag(tip, -60, 40)
    assert np.hypot(*(np.array(page.place(tip)) - [x - 60, y + 40])) < 3  # the tip is where it was pulled
    page.key(by_label("angle of hinge 0"), "ArrowRight")
    page.click("#fall")
    browser.evaluate("new Promise(done => setTimeout(done, 400))")
    assert max(map(abs, page.state["arm"]["v"])) > 0
    page.click("#fall")
    page.click("#still")
    assert page.state["arm"]["v"] == [0, 0, 0]
    for k, mode in enumerate(["locked", "rotor", "driven"]):
        browser.evaluate(
            f"(() => {{ const s = document.querySelector('{by_label(f'hinge {k} is')}'); s.value = '{mode}';"
            "s.dispatchEvent(new Event('change')); })()"
        )
    assert page.state["arm"]["mode"] == ["locked", "rotor", "driven"]
    for label, key, k in [
        ("torque of hinge 1", "tau", 1),
        ("rotor of hinge 1", "rotor", 1),
        ("acceleration of hinge 2", "acc", 2),
    ]:
        before = page.state["arm"][key][k]
        page.drag(by_label(label), 12, 0)
        assert page.state["arm"][key][k] != before, label
    page.click("#gravity")
    assert page.state["arm"]["gravity"] is False
    page.drag("#noise", 10, 0)
    assert page.state["arm"]["noise"] > 0
    page.click("#tab-train")
    assert page.state["scene"] == "train"
    page.click("#dark")
    page.click("#link")
    assert page.complaints() == []


def test_an_address_is_a_moment(browser):
    page = Explorer(browser, scene="arm", shape="4", q=[0.1, 0.2, 0.3, 0.4], mode="frld", tau=[1, 2, 3, 4], noise=30)
    again = Explorer(browser, **dict(part.split("=") for part in page.address[1:].split("&")))
    assert again.state["arm"]["mode"] == ["free", "rotor", "locked", "driven"]
    assert again.state["arm"]["tau"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "moment",
    [
        {"scene": "arm", "shape": "17", "q": "a,b", "mode": "zz"},
        {"scene": "train", "m": "1e9,-3,nan", "R": "", "step": "x"},
        {"scene": "arm", "pair": "0,0", "noise": "1e9", "v": "1e300,1,1"},
        {"scene": "car", "w": "a,-1,1e9", "R": "nan", "lock": "x", "x": "far", "step": "99"},
        {"scene": "nowhere"},
    ],
)
def test_a_nonsense_address_still_opens(browser, moment):
    page = Explorer(browser, **moment)
    assert np.isfinite([node["a"] for node in page.numbers]).all()
    assert page.complaints() == []


@pytest.mark.parametrize("scene", ["train", "car", "arm"])
def test_a_phone_shows_it_all(browser, scene):
    page = Explorer(browser, scene=scene)
    assert page.browser.at_width(390, "document.documentElement.scrollWidth") <= 390


def test_size_and_frame(browser):
    assert PAGE.stat().st_size < 300_000
    page = Explorer(browser, scene="arm", shape="6")
    browser.evaluate("for (let i = 0; i < 50; i++) explore.advance(1 / 480)")
    times = [browser.evaluate("(explore.advance(1 / 480), explore.frame())") for _ in range(20)]
    print(f"\nexplore.html: {PAGE.stat().st_size / 1000:.0f} kB, {np.median(times):.1f} ms a frame for six links")
    assert page.complaints() == []


CUT = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth).filter(x => x > 0)"


@pytest.mark.parametrize(
    ("width", "moment"),
    [
        (900, {"scene": "arm", "shape": "Y", "bare": 1}),
        (360, {"scene": "arm", "shape": "Y"}),
        (360, {"scene": "train"}),
    ],
)
def test_no_column_is_cut_where_it_can_be_helped(browser, width, moment):
    page = Explorer(browser, **moment)
    assert page.browser.at_width(width, CUT) == []


def test_a_table_that_goes_on_shows_a_shadow(browser):
    page = Explorer(browser, scene="train", m=np.ones(6), R=np.ones(6), T=np.ones(6))
    script = "getComputedStyle(document.querySelector('#train .scroll')).backgroundAttachment"
    assert len(page.browser.at_width(360, CUT)) == 1
    assert page.browser.at_width(360, script).startswith("local, local, scroll, scroll")


def test_words_are_right_in_every_width_and_light(browser):
    page = Explorer(browser, scene="train", m=[2, 1, 3], R=[1, 1, 1], T=[1, -1, 2], step=6)
    said = page.browser.evaluate("document.querySelector('#says').textContent")
    assert "· (−0.432) = 0.622" in said
    every = page.browser.evaluate("document.body.innerText")
    assert "black" not in every  # D has the colour of the text, white in the dark
    head = "document.querySelector('#numbers th').innerText"
    assert page.browser.at_width(1200, head) == "letter: estimation · train"
    assert page.browser.at_width(400, head) == "letter: estimation"
    size = "getComputedStyle(document.querySelector('.caption')).fontSize"
    assert float(page.browser.at_width(360, size).removesuffix("px")) >= 12
