"""What a rejected, or a mended, claim is told: the reason that applies, with names and numbers."""

import json
import warnings

import numpy as np
import pytest

import kfdyn as kf
from kfdyn.errors import ModelError

ARM, Q = kf.models.puma560(), np.full(6, 0.3)
INVERSE = np.linalg.inv(kf.mass_matrix(ARM, Q))
FIRST, SECOND = ARM.hinge_names[:2]


def claim(matrix, name="a", samples=2000):
    return kf.cross_check(ARM, Q, samples=samples, claimed={name: matrix})


def asymmetric(part):
    wrong = INVERSE.copy()
    wrong[0, 1] += part * np.sqrt(wrong[0, 0] * wrong[1, 1])
    return wrong


def test_nothing_claimed_to_vary_is_rejected_without_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = claim(np.zeros((6, 6)))
        assert report.status == "REJECTED"
        said = json.loads(report.to_json())
        report.save_figures(tmp_path)
    assert said["status"] == "REJECTED"
    assert all(error is None for _, error in said["convergence"])
    assert "variance between -" not in report.verdict()


@pytest.mark.parametrize("part", [1e-9, 1e-7, 1e-5])
def test_an_asymmetry_that_no_sample_sees_is_mended_with_a_note(part):
    report = claim(asymmetric(part))
    assert report.passed, report.verdict()
    assert f"made symmetric: ({FIRST}, {SECOND}) and its mirror differ by {part:.1g}" in report.verdict()
    matrix = report.findings["a"].covariance
    np.testing.assert_array_equal(matrix, matrix.T)
    assert report.claimed["a"][1] is not None


def test_an_ulp_of_single_precision_is_mended():
    single = INVERSE.astype(np.float32)
    single[0, 1] = np.nextafter(single[1, 0], np.float32(np.inf))
    assert claim(single.astype(float)).passed


def test_an_asymmetry_that_samples_see_is_named():
    wrong = asymmetric(0.3)
    report = claim(wrong)
    assert not report.passed
    (said,) = [line for line in report.rejected if line.startswith("covariance of a")]
    assert (
        f"not symmetric: {wrong[0, 1]:.12g} at ({FIRST}, {SECOND}), {wrong[1, 0]:.12g} at ({SECOND}, {FIRST})" in said
    )
    assert "finite" not in said
    assert "p = 0 after Holm" in said


def test_a_matrix_that_single_precision_cannot_hold_is_told_so():
    """Condition 5e7: rounding moves one direction by a quarter, and no single entry is to blame."""
    chain = kf.models.uniform_chain(60)
    q = chain.neutral()
    inverse = np.linalg.inv(kf.mass_matrix(chain, q))
    report = kf.cross_check(chain, q, samples=3000, claimed={"a": inverse.astype(np.float32)})
    assert not report.passed
    assert "float32 cannot hold this matrix: its rounding, 1e-07, times the condition number, " in report.verdict()
    assert "should differ by" not in report.verdict()
    assert kf.cross_check(chain, q, samples=3000, claimed={"a": inverse}).passed


def test_an_entry_off_in_single_precision_still_is_blamed():
    wrong = INVERSE.copy()
    wrong[0, 1] = wrong[1, 0] = wrong[0, 1] + 0.5 * np.sqrt(wrong[0, 0] * wrong[1, 1])
    said = claim(wrong.astype(np.float32)).verdict()
    assert "cannot hold" not in said


def test_the_mass_matrix_in_place_of_its_inverse_is_recognised():
    assert "it is 𝓜, not 𝓜⁻¹" in claim(kf.mass_matrix(ARM, Q)).verdict()
    assert "it is 𝓜⁻¹, not 𝓜" in claim(INVERSE, "T").verdict()
    assert "it is" not in claim(INVERSE).verdict()


def test_entries_have_names():
    said = claim(3 * INVERSE).rejected
    (entries,) = [line for line in said if line.startswith("entries of a")]
    assert "entry (" in entries
    assert all(name in ARM.hinge_names for name in entries.split("entry (")[1].split(")")[0].split(", "))


@pytest.mark.parametrize(("option", "cure"), [("claimed", "claimed={'a': Minv}"), ("peers", "peers={'mine': Minv}")])
def test_a_matrix_without_a_name(option, cure):
    with pytest.raises(ModelError, match="not a mapping") as error:
        kf.cross_check(ARM, Q, samples=500, **{option: INVERSE})
    assert cure in str(error.value)


def test_truth_must_be_a_model():
    with pytest.raises(ModelError, match=r"truth is a System; .*as_estimation"):
        kf.cross_check(ARM, Q, samples=500, truth=ARM)


def test_a_whole_float_is_a_count():
    one, other = kf.cross_check(ARM, Q, samples=1e3), kf.cross_check(ARM, Q, samples=1000)
    assert one.samples == other.samples == 1000 and type(one.samples) is int
    assert one.convergence.tolist() == other.convergence.tolist()
    for samples in (0.5, 0, -3.0, True, np.nan, np.inf):
        with pytest.raises(ModelError, match=r"whole number, 1 or more$"):
            kf.cross_check(ARM, Q, samples=samples)


def test_zeros_are_repeated_number_by_number():
    report = kf.cross_check(ARM, np.zeros(6), np.zeros(6), samples=500)
    words = report.recipe().split("q = ")[1].split(";")[0].split()
    assert [float(word) for word in words] == [0.0] * 6
    assert "v = " + " ".join(words) + ";" in report.recipe()


def test_what_was_interrupted_is_repeated_as_far_as_it_came(monkeypatch):
    from kfdyn.duality import monte_carlo

    whole = monte_carlo.stream

    def stop(plan, samples, client):
        for at, chunk in enumerate(whole(plan, samples, client)):
            if at == 1:
                raise KeyboardInterrupt
            yield chunk

    with monkeypatch.context() as patch:
        patch.setattr(monte_carlo, "stream", stop)
        partial = kf.cross_check(ARM, Q, samples=100_000)
    assert partial.status == "PARTIAL"
    words = partial.recipe().split("seed 0, ")[1].split(" samples")[0]
    again = kf.cross_check(ARM, Q, samples=int(words.replace(",", "")))
    assert again.samples == partial.samples
    assert [t.p_value for t in again.tests] == [t.p_value for t in partial.tests]


def test_the_exact_gap_is_printed_beside_what_samples_see():
    """A wrong sign in a small entry passes the samples; the package knows the exact matrix, and says so."""
    wrong, deviations = INVERSE.copy(), np.sqrt(np.diag(INVERSE))
    part = np.abs(INVERSE / np.outer(deviations, deviations))
    i, j = divmod(int(np.argmin(part)), 6)
    wrong[i, j] = wrong[j, i] = -wrong[i, j]
    report = claim(wrong)
    assert report.passed
    said = f"the exact 𝓜⁻¹ differs from it by {2 * part[i, j]:.2g} of the two deviations at ("
    assert said in report.verdict() and "Samples alone judge" in report.verdict()
    assert ARM.hinge_names[i] in report.verdict() and ARM.hinge_names[j] in report.verdict()
    assert "at most, which is rounding" in claim(INVERSE).verdict()
    assert "at most, which is rounding" in claim(INVERSE.astype(np.float32)).verdict()


def test_another_order_of_rows_is_recognised():
    order = np.array([2, 0, 1, 5, 4, 3])
    said = claim(INVERSE[np.ix_(order, order)]).verdict()
    assert f"with rows and columns in another order: {', '.join(ARM.hinge_names[k] for k in order)}" in said
    assert "another order" not in claim(1.1 * INVERSE).verdict()


def test_linear_before_angular_is_recognised():
    robot = kf.models.free_flyer()
    q = robot.random_configuration(np.random.default_rng(0))
    swapped = np.r_[3:6, 0:3, 6 : robot.nv]
    for name, exact in (("a", kf.mass_matrix_inverse(robot, q)), ("T", kf.mass_matrix(robot, q))):
        report = kf.cross_check(robot, q, samples=2000, claimed={name: exact[np.ix_(swapped, swapped)]})
        assert "with [linear; angular] where [angular; linear] is wanted" in report.verdict()


def test_the_figure_of_a_rejection_does_not_say_that_it_is_a_covariance():
    title = claim(3 * INVERSE).plot().get_suptitle()
    assert "rejected" in title and "is a covariance" not in title
    assert "is a covariance" in claim(INVERSE).plot().get_suptitle()
