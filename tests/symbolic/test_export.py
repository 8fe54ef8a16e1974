"""Exported functions, compiled or imported, are the package's to 1e-12; they say what they are."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from test_formulas import FORMULAS, agree, states

import kfdyn as kf
from kfdyn import symbolic

ARMS = {"puma": kf.models.puma560, "stanford": kf.models.stanford_arm}


def compiled(formula, folder):
    """The formula by the C compiler, as a function of arrays."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = folder / f"{formula.name}.c"
    source.write_text(symbolic.export(formula, "c"), encoding="utf-8")
    library = folder / f"{formula.name}.so"
    subprocess.run(
        [compiler, "-std=c99", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True
    )
    function = getattr(ctypes.CDLL(str(library)), formula.name)

    def call(*arguments):
        out = np.empty(formula.shape)
        function(*(x.ctypes.data_as(ctypes.c_void_p) for x in (*map(np.ascontiguousarray, arguments), out)))
        return out

    return call


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("arm", ARMS)
def test_c(arm, name, tmp_path):
    system = ARMS[arm]()
    formula = getattr(symbolic, name)(system)
    call = compiled(formula, tmp_path)
    arguments = states(system)[: FORMULAS[name]]
    mine = np.stack([call(*one) for one in zip(*arguments)])
    agree(mine, getattr(kf, name)(system, *arguments))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mass_matrix_inverse", "forward_dynamics"])
def test_jax(name):
    jax = pytest.importorskip("jax")
    system = kf.models.puma560()
    formula = getattr(symbolic, name)(system)
    arguments = states(system)[: FORMULAS[name]]
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        names = {}
        exec(symbolic.export(formula, "jax"), names)
        agree(np.asarray(names[name](*arguments)), getattr(kf, name)(system, *arguments))
    finally:
        jax.config.update("jax_enable_x64", was)


@pytest.mark.slow
def test_jax_differentiates_what_was_exported():
    """∂a/∂tau of the exported forward dynamics is the mass matrix's inverse."""
    jax = pytest.importorskip("jax")
    system = kf.models.double_pendulum()
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        names = {}
        exec(symbolic.export(symbolic.forward_dynamics(system), "jax"), names)
        q, v, tau = (x[0] for x in states(system))
        agree(
            np.asarray(jax.jacfwd(names["forward_dynamics"], argnums=2)(q, v, tau)), kf.mass_matrix_inverse(system, q)
        )
    finally:
        jax.config.update("jax_enable_x64", was)


def test_numpy_broadcasts_and_says_what_it_is():
    system = kf.models.puma560()
    names = {}
    source = symbolic.export(symbolic.forward_dynamics(system), "numpy", name="puma")
    exec(source, names)
    q, v, tau = states(system, 4)
    agree(names["puma"](q[:, None], v, tau[0]), kf.forward_dynamics(system, q[:, None], v, tau[0]))
    doc = names["puma"].__doc__
    assert "Joint accelerations of PUMA 560" in doc
    assert "5 divisions" in doc
    assert "kfdyn" not in source.replace("written by kfdyn.symbolic", "")  # needs nothing of the package


@pytest.mark.parametrize("language", ["numpy", "c", "jax"])
def test_parameters_are_an_argument(language):
    formula = symbolic.mass_matrix(kf.models.double_pendulum(), parameters=True)
    source = symbolic.export(formula, language)
    assert "parameters" in source
    assert "m2 = 1.0" in source


def test_what_is_no_formula():
    with pytest.raises(kf.errors.ModelError, match=r"formula must be one of kf\.symbolic's"):
        symbolic.export(np.eye(2))


HOSTILE = [
    'a"""\nran.append(1)\n    r"""',
    "a */ int ran = 1; /* b",
    'a\\"""',
    'ends in a quote"',
    "\u202eback\x00\u2028\\",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_name_in_a_file_stays_a_name(name, tmp_path):
    """A robot file is data: no letter of it is run, in the docstring or the comment of what is exported."""
    system = kf.System(kf.models.pendulum().bodies, name=name)
    formula, ran = symbolic.bias_forces(system), []
    names = {"ran": ran}
    source = symbolic.export(formula)
    exec(source, names)
    assert not ran
    agree(names["bias_forces"](np.array([0.5]), np.zeros(1)), kf.bias_forces(system, [0.5], [0.0]))
    shown = "".join(x if x.isprintable() else ascii(x)[1:-1] for x in name)
    assert (
        names["bias_forces"].__doc__.splitlines()[0].startswith(f"Coriolis, centrifugal and gravity forces of {shown},")
    )
    assert all(x.isprintable() or x == "\n" for x in source)
    text = symbolic.export(formula, "c")
    assert text.count("/*") == text.count("*/") == 1
    agree(compiled(formula, tmp_path)(np.array([0.5]), np.zeros(1)), kf.bias_forces(system, [0.5], [0.0]))


def test_a_hostile_urdf_is_exported_and_not_run():
    text = kf.save_urdf(kf.models.pendulum()).replace(
        'name="pendulum"', 'name="&quot;&quot;&quot;&#10;    ran.append(1)&#10;    &quot;&quot;&quot;"', 1
    )
    names = {"ran": []}
    system = kf.load(text)
    assert '"""\n    ran' in system.name
    exec(symbolic.export(symbolic.mass_matrix(system)), names)
    names["mass_matrix"](np.zeros(1))
    assert names["ran"] == []
