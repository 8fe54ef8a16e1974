"""What the command line says of input that cannot be right: one line, with the cause that applies."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import kfdyn as kf
from kfdyn import cli
from kfdyn.errors import ModelError

PENDULUM = ["check", "builtin:double_pendulum", "--samples", "2000"]


def said(capsys, *argv):
    """Exit status and the text on standard error, argparse's too."""
    try:
        status = cli.main(list(argv))
    except SystemExit as end:
        status = end.code
    return status, capsys.readouterr().err


def test_zeros_as_a_claim_are_rejected_in_json_too(tmp_path, capsys):
    np.save(tmp_path / "zeros.npy", np.zeros((2, 2)))
    assert cli.main([*PENDULUM, "--q", "neutral", "--minv", str(tmp_path / "zeros.npy"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "REJECTED"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (["--q", "nan", "0"], "--q holds nan, which is not finite; give 2 numbers"),
        (["--q", "0", "-inf"], "--q holds -inf, which is not finite; give 2 numbers"),
        (["--v", "nan", "zero"], "--v 'nan,zero': give 2 numbers, 'zero' or 'random'"),
        (["--q", "0.1", "neutral"], "--q '0.1,neutral': give 2 numbers, 'neutral' or 'random'"),
        (["--q", "a", "b"], "--q 'a,b': give 2 numbers, 'neutral' or 'random'"),
    ],
)
def test_states_that_are_no_numbers(state, words, capsys):
    status, error = said(capsys, *PENDULUM, *state)
    assert status == 2
    assert words in error


def test_the_recipe_of_zeros_is_taken_by_the_command_line(capsys):
    recipe = kf.cross_check(kf.models.double_pendulum(), [0, 0], [0, 0], samples=2000).recipe()
    q, v = (re.search(rf"{name} = ([^;]*);", recipe)[1].split() for name in "qv")
    assert cli.main([*PENDULUM, "--q", *q, "--v", *v]) == 0
    assert "--samples" in said(capsys, "check", "builtin:pendulum", "--samples", "0")[1]
    assert "'-5' is not a whole number, 1 or more" in said(capsys, "check", "builtin:pendulum", "--samples=-5")[1]
    assert "'1e99' is too large" in said(capsys, "check", "builtin:pendulum", "--samples", "1e99")[1]


LINK = '<link name="{}"><inertial><mass value="{}"/><inertia ixx="{}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
LINK += "</inertial></link>"
JOINT = '<joint name="{}" type="continuous"><parent link="{}"/><child link="{}"/>{}</joint>'


def test_cures_are_options_of_the_command_line(tmp_path, capsys):
    """The functions' arguments are not what somebody at a prompt can give."""
    file = tmp_path / "negative.urdf"
    parts = ['<link name="base"/>', LINK.format("rod", 1, -0.5), JOINT.format("j", "base", "rod", "")]
    file.write_text(f'<robot name="r">{"".join(parts)}</robot>')
    status, error = said(capsys, "check", str(file))
    assert status == 2 and "--indefinite-inertia warn" in error and "indefinite_inertia" not in error
    status, error = said(capsys, "check", "builtin:four_bar", "--q", "1", "1", "1", "--samples", "100")
    assert status == 2 and "as --q random draws it" in error and "kf.assemble" not in error


def test_a_coupled_hinge_without_mass_is_named(tmp_path, capsys):
    """Of several hinges at one node: the joint, and not the node and its covariance Q."""
    file = tmp_path / "light.urdf"
    parts = ['<link name="base"/>', LINK.format("a", 1, 1), '<link name="b"/>', '<link name="c"/>']
    parts += [JOINT.format("j", "base", "a", ""), JOINT.format("k", "a", "b", "")]
    parts += [JOINT.format("l", "b", "c", '<mimic joint="k"/>')]
    file.write_text(f'<robot name="r">{"".join(parts)}</robot>')
    status, error = said(capsys, "check", str(file), "--samples", "100")
    assert status == 2 and "'k'" in error and "mass" in error and "node" not in error


def test_files_that_hold_no_matrix(tmp_path, capsys):
    np.savez(tmp_path / "many.npz", a=np.eye(2))
    (tmp_path / "broken.npy").write_bytes(b"no array")
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    (tmp_path / "bytes.dat").write_bytes(bytes(range(128, 256)))
    (tmp_path / "empty.txt").write_text("\n")
    for name, words in (
        ("many.npz", "is an archive of arrays (.npz); give"),
        ("broken.npy", "holds no matrix of numbers; give"),
        ("cut.npy", "holds no matrix of numbers; give"),
        ("bytes.dat", "holds no matrix of numbers, nor any text; give"),
        ("empty.txt", "is empty; give"),
    ):
        status, error = said(capsys, *PENDULUM, "--q", "neutral", "--minv", str(tmp_path / name))
        assert status == 2
        assert words in error
        assert "pickle" not in error and "codec" not in error


def test_a_matrix_from_a_device_without_end_and_from_a_pipe(tmp_path, capsys):
    if not Path("/dev/zero").exists() or not Path("/dev/fd").exists():
        pytest.skip("no such devices here")
    check = ["check", "builtin:pendulum", "--samples", "2000", "--q", "neutral", "--minv"]
    status, error = said(capsys, *check, "/dev/zero")
    assert status == 2 and "/dev/zero: larger than 256 MiB" in error
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**10)}
    with open(tmp_path / "liar.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    status, error = said(capsys, *check, str(tmp_path / "liar.npy"))
    assert status == 2 and "holds no matrix of numbers; give" in error
    read, write = os.pipe()
    os.write(write, b"1.0\n")  # the pendulum's: a unit mass on a rod of unit length
    os.close(write)
    assert cli.main([*check, f"/dev/fd/{read}"]) == 0
    os.close(read)


@pytest.mark.parametrize(("option", "symbol"), [("--minv", "𝓜⁻¹"), ("--mass-matrix", "𝓜")])
def test_a_matrix_that_does_not_fit_is_called_by_its_file(option, symbol, tmp_path, capsys):
    """Whoever named a file knows nothing of the keyword that it goes to."""
    file = tmp_path / "mine.npy"
    for matrix, words in (
        (np.eye(3), "has shape (3, 3), but the model's is (2, 2)"),
        (np.full((2, 2), "one"), "holds <U3, not real numbers"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "has nan at (0, 1); give finite numbers"),
    ):
        np.save(file, matrix)
        status, error = said(capsys, *PENDULUM, "--q", "neutral", option, str(file))
        assert status == 2
        assert error == f"kfdyn: {symbol} of {str(file)!r} {words}\n"


def test_links_that_are_all_fixed(tmp_path, capsys):
    (tmp_path / "post.urdf").write_text('<robot name="post"><link name="post"/></robot>', encoding="utf-8")
    for command in ("info", "check"):
        status, error = said(capsys, command, str(tmp_path / "post.urdf"))
        assert status == 2
        assert "--floating-base" in error


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--port", "99999999"], "there is no port 99999999; name one from 0 (any) to 65535 by --port"),
        (["--port", "0", "--host", "nohost.invalid"], "name an address of this machine by --host"),
    ],
)
def test_where_the_explorer_cannot_be(option, words, capsys):
    pytest.importorskip("viser")
    status, error = said(capsys, "explore", "builtin:pendulum", "--no-browser", *option)
    assert status == 2
    assert words in error


def test_smaller_messages():
    with pytest.raises(ModelError, match="n = 0 bodies for trees = 1; give one body or more for each tree"):
        kf.models.random_tree(0)
    for size in (1e200, 1e-200, 5e-324):  # an axis is a direction
        np.testing.assert_allclose(
            kf.Hinge.revolute([0, size, 0]).screws, kf.Hinge.revolute([0, 1, 0]).screws, rtol=1e-15
        )
    with pytest.raises(ModelError, match="is no axis"):
        kf.Hinge.revolute([0, np.inf, 0])
