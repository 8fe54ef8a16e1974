"""Numbers in the running text of the pages are those that were recorded, or are computed here."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.duality import detectable, limits

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def recorded(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def said(path):
    """A text without its line breaks."""
    return " ".join(re.sub(r"\n# ?", "\n", (ROOT / path).read_text(encoding="utf-8")).split())


@pytest.fixture(scope="module")
def speed():
    spec = importlib.util.spec_from_file_location("readme_speed", DOCS / "readme_speed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_scripts_write_is_what_was_recorded(speed):
    """Tables and sentences between marks; python docs/readme_speed.py writes them again."""
    assert {page.name for page in speed.PAGES} == {
        "README.md",
        "costs.md",
        "sensors.md",
        "cross_check.md",
        "numerics.md",
    }
    for page in speed.PAGES:
        assert speed.filled(page) == page.read_text(encoding="utf-8"), page


def test_no_page_states_a_time_of_its_own(speed):
    """Outside of code and of what is written from records, numbers with a unit of time or memory are these."""
    count = r"\d[\d.,]* ?|(?:half a|some|a few|about a|a tenth of a) "
    units = "µs|ms|ns|s|seconds?|microseconds?|milliseconds?|MB|kB|GB|kilobytes|megabytes|gigabytes"
    unit = rf"\b(?:{count})(?:{units})\b"
    marks = re.compile(re.escape(speed.BEGIN) + ".*?" + re.escape(speed.END), re.DOTALL)
    found = {}
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        text = marks.sub("", page.read_text(encoding="utf-8"))
        text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        if "_build" not in page.parts and (numbers := re.findall(unit, text)):
            found[page.name] = numbers
    assert found == {
        "benchmarks.md": ["half a microsecond"],
        "costs.md": ["2.2 kilobytes", "60 kB"],
        "for_hierarchies.md": ["80 GB"],  # a hundred thousand tips, squared, eight bytes each
        "thermal.md": ["800 megabytes"],  # ten thousand joints, squared, eight bytes each
    }


def test_one_call_takes_half_a_microsecond():
    assert "A call for one state of an arm takes about half a microsecond" in said("docs/benchmarks.md")
    took = recorded("calls")["microseconds"]
    for robot in ("PUMA 560", "UR5", "Panda"):
        assert 0.3 < took[robot]["forward dynamics"]["kfdyn"] < 0.8, robot


def test_a_symplectic_step():
    """The page, and the docstring that says it shorter."""
    text, told = said("docs/simulate.md"), " ".join(kf.simulate.__doc__.split())
    assert 'takes as long as five to fifteen steps by `"rk4"`, and as three to eight of a hundred motions' in text
    assert 'some ten steps by "rk4" for one motion, some five in a batch of a hundred' in told
    for name, took in recorded("steps")["seconds"].items():
        ratio = took["symplectic"] / took["rk4"]
        assert 5 <= ratio <= 15 if name.endswith(", 1") else 3 <= ratio <= 8, name


def test_steps_and_controllers_in_calls_of_forward_dynamics():
    took = {
        robot: {call: times["kfdyn"] / calls["forward dynamics"]["kfdyn"] for call, times in calls.items()}
        for robot, calls in recorded("calls")["microseconds"].items()
    }
    text = said("docs/simulate.md")
    assert 'as long as three to five calls of `kf.forward_dynamics` on one state by `"rk4"`, and as about two' in text
    assert 'as long as seven to ten calls by `"rk4"`, and as two to four by `"euler"`' in text
    for robot, ratios in took.items():
        for law in ("", ", linear feedback"):
            assert 3 <= round(ratios["Runge–Kutta step" + law]) <= 5, robot
            assert round(ratios["Euler step" + law]) == 2, robot
        assert 7 <= round(ratios["Runge–Kutta step, Python's function"]) <= 10, robot
        assert 2 <= round(ratios["Euler step, Python's function"]) <= 4, robot
    text = said("docs/task_space.md")
    assert "For the PUMA it takes as long as some five forward dynamics" in text
    assert "as long as three ([benchmarks](benchmarks.md))" in text
    assert round(took["PUMA 560"]["operational space control"]) == 5
    assert round(took["PUMA 560"]["computed torque"]) == 3


def test_what_code_for_one_robot_gains():
    assert "It pays for batches of arms, which run up to twice as fast." in " ".join(kf.specialise.__doc__.split())
    name = "kfdyn, specialised"
    rows = [took for calls in recorded("dynamics")["seconds_per_state"].values() for took in calls.values()]
    gains = [took["kfdyn"] / took[name] for took in rows if name in took]
    assert min(gains) > 1 and round(max(gains)) == 2


def test_the_first_lines_of_the_readme():
    assert "some thirty times as fast as a Python loop over Pinocchio" in said("README.md")
    for robot, calls in recorded("dynamics")["seconds_per_state"].items():
        took = calls["forward dynamics"]
        assert 25 < took["Pinocchio loop"] / took["kfdyn"] < 40, robot


def test_sizes():
    assert "take some 2.2 kilobytes per node" in said("docs/costs.md")
    for points in recorded("scaling")["points"].values():
        assert points[-1]["peak_bytes"] / points[-1]["nodes"] == pytest.approx(2200, rel=0.05)
    assert "60 kB of results per state" in said("docs/costs.md")  # by q, by v and 𝓜
    assert 3 * 8 * recorded("dynamics")["dofs"]["TALOS"] ** 2 == 60_000
    assert said("docs/costs.md").count(f"batches of {recorded('dynamics')['batch']:,} on one core") == 2


def test_the_table_of_bodies_is_what_its_numbers_say():
    from benchmarks.bodies import report

    found = recorded("bodies")
    page = (ROOT / "benchmarks" / "results" / "bodies.md").read_text(encoding="utf-8")
    assert report(found["points"], found["environment"]).markdown() == page


def test_the_table_of_operations_is_what_the_figure_draws():
    found = recorded("operations")
    page = (ROOT / "benchmarks" / "results" / "operations.md").read_text(encoding="utf-8")
    for robot, calls in found["robots"].items():
        for call, took in calls.items():
            share = re.search(rf"^\| {robot}, .*\| {call} \|.* (\d+%) \|$", page, re.MULTILINE)[1]
            assert share == f"{took['flops'] / took['seconds'] / found['peak_flops']:.0%}", (robot, call)


def test_loops():
    told = re.search(r"some (\d+) times as fast as a Python loop over Pinocchio's", said("docs/loops.md"))
    kfdyn, peer = recorded("loops")["feet"]
    assert float(told[1]) == pytest.approx(peer / kfdyn, rel=0.2)


def test_modes():
    text, found = said("docs/flexible.md"), recorded("flexible")
    assert "takes less time than forward dynamics" in text
    assert "with one to four modes each they are several hundred times as fast as the engine" in text
    for modes in ("1", "2", "4"):
        row = found[modes]
        assert row["inverse"] < row["sweep"]
        for call in ("inverse", "hybrid"):
            assert 200 < row[f"{call}, engine"] / row[f"{call}, call"] < 1000, (modes, call)
    assert "On the clock the gain is smaller, at most a quarter" in text
    assert 0.1 < max(1 - row["split"] / row["whole"] for row in map(found.get, ("4", "8", "16", "32"))) < 0.27


def test_fast_gain():
    text, found = said("examples/plot_fast_gain.py"), recorded("fast_gain")
    assert "the same twenty microseconds of Python" in text
    for case in ("n=6, m=1", "n=20, m=2", "n=50, m=2"):
        assert 14e-6 < found[case]["fast"] < 28e-6
    assert "by a factor of five at 200" in text
    assert 4 < found["n=200, m=2"]["Riccati, BLAS"] / found["n=200, m=2"]["fast"] < 6


def test_roots_and_scores():
    found = recorded("rebuilding")
    assert "The square-root form takes two to three and a half times as long as the covariance form" in said(
        "docs/numerics.md"
    )
    assert "about 1.3 times as long as the smoother with covariances" in said("CHANGELOG.md")
    for shape in ("chain", "tree"):
        for what in ("filter", "with the smoother"):
            row = found[f"{shape}, 6 states, {what}"]
            assert 2.0 < row["square root"] / row["covariances"] < 3.5
        row = found[f"{shape}, 6 states, score"]
        assert 1.1 < row["score"] / row["smoother"] < 1.5


def test_forms_of_the_filter():
    """Docstrings say it of the sizes that were recorded."""
    found = recorded("forms")
    assert "at up to four times the cost (``kfdyn bench forms``)" in " ".join(kf.riccati.__doc__.split())
    for name, took in found["seconds"].items():
        for what in ("filter", "smoother"):
            assert took[f"{what} by roots"] < 4 * took[what], (name, what)
    told = "1.2 to 1.5 times the smoother with covariances where nodes have four states or six"
    assert told in " ".join(kf.score.__doc__.split())
    for shape in ("chain", "tree"):
        for n in (4, 6):
            took = found["seconds"][f"{shape}, n = {n}, m = 1"]
            assert 1.15 < took["score"] / took["smoother"] < 1.55, (shape, n)


def test_fits():
    told = re.search(r"finds the same estimates some (\d+) times as fast", said("docs/for_hierarchies.md"))
    took = recorded("fits")["seconds"]["Brownian motion and λ on 2,000 tips"]
    assert float(told[1]) == pytest.approx(took["peer"] / took["kfdyn"], rel=0.3)


def test_no_test_asserts_a_time():
    """So the page of benchmarks says. Whoever looks at a clock here waits, or stops a mutant or a round of fuzzing."""
    assert "No test asserts a time." in said("docs/benchmarks.md")
    clock = re.compile(r"\b(?:perf_counter|process_time|thread_time|monotonic|timeit|time\.time)\b")
    tests = [ROOT / "conftest.py", *(ROOT / "tests").rglob("*.py")]
    found = {path.name for path in tests if clock.search(path.read_text(encoding="utf-8"))} - {Path(__file__).name}
    assert found == {
        "conftest.py", "fuzz.py", "atlas_evidence.py", "sweep_evidence.py",
        "devtools.py", "test_explore_server.py", "test_slides.py",
    }  # fmt: skip


def test_operations():
    arm = kf.models.puma560()
    inverse, element = (
        sum(formula.counts)
        for formula in (kf.symbolic.mass_matrix_inverse(arm), kf.symbolic.inverse_element(arm, 0, 5))
    )
    text = said("examples/plot_symbolic_inverse.py")
    assert "is some 1,250 operations. A single element costs more than half of that" in text
    assert inverse == pytest.approx(1250, rel=0.02)
    assert inverse / 2 < element < inverse
    per_body = recorded("operations")["robots"]["UR5"]["forward dynamics"]
    assert "3,300 in all with sines and cosines" in said("docs/symbolic.md")
    assert per_body["flops"] == pytest.approx(3300, rel=0.02)


def test_digits_left():
    """Errors quoted in sentences; those of the tables are written from the same file."""
    found = json.loads((DOCS / "numerics_study.json").read_text(encoding="utf-8"))
    text = said("docs/numerics.md")
    e = {key: f"{value:.0e}" for key, value in found["singular"]["300"].items()}
    assert f"the errors are {e['P']} in $P$, {e['D']} in $D$, {e['x']} in $\\hat x$ and {e['S']} in $S$" in text
    e = {key: f"{value:.0e}" for key, value in found["long"]["4096"].items()}
    assert f"the errors are {e['P']} in $P$ and {e['x']} in $\\hat x$, no more in $P$ than over 100" in text


def test_digits_are_still_left():
    """The recorded study, run again but for its longest series: nothing is ten times as wrong as is told."""
    spec = importlib.util.spec_from_file_location("numerics_study", DOCS / "numerics_study.py")
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    found = json.loads((DOCS / "numerics_study.json").read_text(encoding="utf-8"))
    assert {part: set(found[part]) for part in study.CASES} == {part: set(rows) for part, rows in study.CASES.items()}
    for part in ("exact", "level", "trend"):
        for name, make in study.CASES[part].items():
            for key, error in study.study(make()).items():
                assert error < 10 * found[part][name][key] + 1e-15, (part, name, key)


def test_what_the_cross_check_would_miss():
    """Computed, not measured: the errors that so many samples reject with probability 0.95."""
    text = said("docs/cross_check.md")
    report = kf.cross_check(kf.models.puma560(), np.linspace(-1, 1, 6), samples=2000)
    found = detectable(6, 200_000, len(report.tests))
    entry, pair, whole = (np.ceil(1000 * x) / 10 for x in (found.entry, found.off_diagonal, found.whole))
    assert (
        f"200,000 samples {entry} % in one variance, {pair} % of √(𝓜⁻¹ᵢᵢ𝓜⁻¹ⱼⱼ) in one entry off the diagonal, "
        f"{whole} % in the" in text
    )
    assert {f"{party.tolerance:.0e}" for party in report.parties} == {"1e-13"}
    assert "64 uκ, in O(N): 1e-13 for the PUMA 560" in text
    seen = detectable(6, 20_000, len(report.tests)).entry
    for page in ("docs/slides/index.md", "docs/lecture/lecture.md"):
        assert "with 20,000 samples, some seven per cent in one variance" in said(page)
        assert round(100 * seen) == 7
    finer = round(seen / 0.001, -1)
    assert f"seventy times finer takes {finer**2:.0f} times as many samples, some hundred mill" in said(
        "docs/slides/index.md"
    )
    assert finer == 70 and round(20_000 * finer**2, -7) == 100e6
    assert "10⁸ samples of the pendulum see an error of 0.08 % in 𝓜⁻¹" in text
    tests = kf.cross_check(kf.models.pendulum(), [0.3], samples=1000).tests
    assert f"{100 * detectable(1, 10**8, len(tests)).entry:.2f}" == "0.08"


def test_what_a_claim_would_hide():
    text = said("docs/cross_check.md")
    arm, q = kf.models.puma560(), np.linspace(-1, 1, 6)
    inverse = kf.mass_matrix_inverse(arm, q)
    tests = kf.cross_check(arm, q, samples=2000, claimed={"a": inverse}).tests
    found = limits(inverse, 200_000, len(tests))
    assert "z is some 6.5 for six joints" in text
    assert found.off_diagonal[0] * np.sqrt(200_000) == pytest.approx(6.5, abs=0.2)
    assert "this is 1.5 % of the deviations, and 1 % off one entry off the diagonal stays **unseen**" in text
    assert f"{100 * found.off_diagonal[1]:.1f}" == "1.5" and found.one_percent[0] == 0
    assert "it is seen in five of six with 40,000" in text
    rods = kf.models.uniform_chain(4)
    inverse = kf.mass_matrix_inverse(rods, np.linspace(-1, 1, 4))
    tests = kf.cross_check(rods, np.linspace(-1, 1, 4), samples=2000, claimed={"a": inverse}).tests
    assert limits(inverse, 40_000, len(tests)).one_percent == (5, 6)
