"""What is told where a package of an extra is missing."""

import sys

import pytest

import kfdyn as kf
from kfdyn.explore import Explorer
from kfdyn.extras import needed

MJCF = '<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'


def formula():
    return kf.symbolic.mass_matrix(kf.models.double_pendulum())


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("sympy", "symbolic", lambda: formula().symbols),
        ("sympy", "symbolic", lambda: formula().cse()),
        ("sympy", "symbolic", lambda: formula().expand()),
        ("mujoco", "mujoco", lambda: kf.load(MJCF)),
        ("viser", "explore", lambda: Explorer(kf.models.pendulum(), port=0)),
    ],
)
def test_the_extra_is_named(package, extra, use, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf'needs {package}: pip install "\.\[{extra}\]" in the folder'):
        use()


def test_a_formula_is_exported_without_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert formula().counts.multiply > 0
    for language in ("numpy", "c", "jax"):
        assert "mass_matrix" in kf.symbolic.export(formula(), language)


def test_a_package_that_lacks_something_itself_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "half_installed.py").write_text("import its_own_dependency\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_own_dependency"):
        needed("half_installed", "some", "somebody")
