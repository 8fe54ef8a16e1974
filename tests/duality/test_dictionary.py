"""The dictionary: its code exists, its numbers are those of the mechanics."""

import numpy as np
import pytest
from rich.console import Console

import kfdyn as kf
from kfdyn.duality.atlas import Result
from kfdyn.duality.dictionary import DICTIONARY, dictionary_table, fill
from kfdyn.errors import KfdynError

ARM, Q, V, TAU = kf.models.puma560(), np.linspace(-1, 1, 6), np.ones(6), np.arange(6.0)


def test_every_name_can_be_imported():
    named = [entry for entry in DICTIONARY if entry.code]
    assert len(named) >= len(DICTIONARY) - 2
    for entry in named:
        assert Result("", "", "", entry.code).resolve() is not None


def test_numbers_are_those_of_the_robot():
    """Against the mechanics' own doors, and a hinge's articulated inertia from the mass matrix."""
    rows = {row[0]: row[-1] for row in fill(ARM, Q, V, TAU, body=ARM.body_names[2]) if row[0]}
    assert float(rows["a"]) == pytest.approx(kf.forward_dynamics(ARM, Q, V, TAU)[2], rel=1e-3)
    assert float(rows["T(k)"]) == TAU[2]
    assert float(rows["𝓜⁻¹"]) == pytest.approx(np.linalg.inv(kf.mass_matrix(ARM, Q))[2, 2], rel=1e-3)
    # D(k) of a chain is the Schur complement of 𝓜 over the outboard hinges
    mass_matrix = kf.mass_matrix(ARM, Q)
    outboard = mass_matrix[3:, 3:]
    D = mass_matrix[2, 2] - mass_matrix[2, 3:] @ np.linalg.solve(outboard, mass_matrix[3:, 2])
    assert float(rows["D"]) == pytest.approx(D, rel=1e-3)


def test_table_with_and_without_numbers():
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as page:
        console.print(dictionary_table())
        console.print(dictionary_table(fill(ARM, Q), "PUMA"))
    assert "articulated body inertia" in page.get()
    assert "this robot" in page.get()


def test_unknown_body_is_named():
    with pytest.raises(KfdynError, match="no body 'hand'"):
        fill(ARM, Q, body="hand")


def test_hinges_of_any_size_have_numbers():
    system = kf.models.humanoid()
    for name in system.body_names:
        assert all(isinstance(row[-1], str) for row in fill(system, system.neutral(), body=name))
