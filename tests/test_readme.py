"""The README's example runs as printed, prints what the README says, and is right."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def example():
    """The example's standard output and its variables."""
    (source,) = blocks("python")
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "README.md", "exec"), names)
    return out.getvalue(), names


def test_the_example_prints_what_the_readme_shows(example):
    (shown,) = blocks("text")
    assert example[0] == shown


def test_the_example_is_right(example):
    """Against the conditional normal distribution of the five flows, written out."""
    phi = np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1.0]])
    mean = phi @ [10, 20, 5, 30, 5]
    cov = 4 * phi @ phi.T
    seen = [0, 2, 3, 4]
    error = np.array([12.0, 38.0, 29.0, 75.0]) - mean[seen]
    mass_matrix = cov[np.ix_(seen, seen)] + 0.25 * np.eye(4)
    gain = cov[:, seen] @ np.linalg.inv(mass_matrix)
    smooth, filt = example[1]["smooth"], example[1]["filt"]
    np.testing.assert_allclose([x[0] for x in smooth.x], mean + gain @ error, rtol=1e-12)
    np.testing.assert_allclose([S[0, 0] for S in smooth.S], np.diag(cov - gain @ cov[seen]), rtol=1e-12)
    logdet = np.linalg.slogdet(2 * np.pi * mass_matrix)[1]
    llf = -0.5 * (error @ np.linalg.solve(mass_matrix, error) + logdet)
    np.testing.assert_allclose(filt.llf, llf, rtol=1e-13)


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"make ([a-z-]+)", "".join(blocks("sh"))):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_the_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_every_public_name_has_its_place_in_the_reference():
    import kfdyn as kf
    from kfdyn import errors, estimation
    from kfdyn.estimation import consistency, dense

    listed = re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = [name.rpartition(".")[2] for name in listed]
    assert len(listed) == len(set(listed))
    public = {*estimation.__all__, *consistency.__all__, *dense.__all__}
    public |= {name for name, value in vars(errors).items() if isinstance(value, type)}
    public |= {name for name in kf.__all__ if name != "__version__"}
    assert public - set(listed) == set()
