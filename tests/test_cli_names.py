"""Names that would steer a terminal, a table or a figure are shown letter by letter; inertias that no body has."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

import kfdyn as kf
from kfdyn import cli
from kfdyn.duality import cross_check
from kfdyn.duality.dictionary import dictionary_table, fill
from kfdyn.spatial import spatial_inertia
from kfdyn.viz.text import literal, printable

#: Markup and emoji of rich, escape sequences of two kinds, a mark that turns the order of letters, half a formula.
HOSTILE = "[red]arm[/] :smile: \x1b[2J \x9b31m \u202etxt $x^$ \\$1 {0}"
SHOWN = "[red]arm[/] :smile: \ufffd[2J \ufffd31m \ufffdtxt $x^$ \\$1 {0}"
DANGEROUS = ("\x1b", "\x9b", "\u202e")


@pytest.fixture(scope="module")
def system():
    J = np.diag([0.1, 0.2, 0.3])
    hinge = kf.Hinge.revolute([0, 1, 0])
    return kf.System(
        [
            kf.Body(HOSTILE, spatial_inertia(1.0, [0.1, 0, 0.2], J), hinge),
            kf.Body("hand", spatial_inertia(1.0, [0, 0.1, 0.2], J), hinge, HOSTILE, position=[0, 0, 1]),
        ],
        name=HOSTILE,
    )


@pytest.fixture(scope="module")
def report(system):
    return cross_check(system, [0.1, 0.2], samples=500, peers={HOSTILE: 2 * np.eye(2)})


def rendered(*what, **options):
    """As a user's own console prints it, markup and emoji on."""
    page = io.StringIO()
    Console(file=page, width=200, **options).print(*what)
    return page.getvalue()


@pytest.mark.parametrize("colour", [None, "truecolor"])
def test_a_report_shows_names_as_they_are(report, colour):
    page = rendered(report, color_system=colour, force_terminal=colour is not None)
    assert page.count(SHOWN) == 4  # the title, the peer, what the peer is rejected for, how to repeat the run
    if colour is None:
        assert not any(mark in page for mark in DANGEROUS)
    assert "\x1b[2J" not in page
    assert not any(mark in str(report) + report._repr_html_() for mark in DANGEROUS)


def test_the_dictionary_too(system):
    page = rendered(dictionary_table(fill(system, [0.1, 0.2], body=HOSTILE), title=HOSTILE), color_system=None)
    assert "[red]arm[/]" in page
    assert not any(mark in page for mark in DANGEROUS)


def test_json_gives_names_back_unchanged(report):
    content = json.loads(report.to_json())
    assert content["title"] == HOSTILE
    assert HOSTILE in {party["name"] for party in content["parties"]}


def test_figures_take_no_name_for_a_formula(report, tmp_path):
    paths = report.save_figures(tmp_path)  # an odd dollar, or $x^$, would stop mathtext
    assert {path.name for path in paths} >= {"cross_check.png", "inverse.png", "dictionary.png"}
    (title,) = [text for text in report.plot().texts if "inverse mass matrix" in text.get_text()] or [None]
    shown = report.plot().get_suptitle() if title is None else title.get_text()
    assert shown.startswith(literal(HOSTILE))


def test_control_characters_are_replaced_and_letters_are_not():
    assert printable("φ(p,k) → 𝓜⁻¹ é") == "φ(p,k) → 𝓜⁻¹ é"
    assert printable("a\nb", keep="\n") == "a\nb"
    assert printable("a\nb\r\t\x00\x7f\u2028") == "a\ufffdb" + 5 * "\ufffd"


URDF = """<robot name="[bold]$$[/bold]&#x9b;"><link name="base"/><link name="[red]rod"><inertial><mass value="1"/>
<inertia ixx="{}" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial></link>
<joint name="[/]turn" type="continuous"><parent link="base"/><child link="[red]rod"/><axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.mark.parametrize("command", ["check --samples 500", "identities", "dictionary", "info"])
def test_commands_print_names_as_they_are(command, tmp_path, capsys):
    file = tmp_path / "rude.urdf"
    file.write_text(URDF.format(0.1))
    name, *options = command.split()
    assert cli.main([name, str(file), *options]) == 0
    said = capsys.readouterr().out
    assert "[bold]$$[/bold]\ufffd" in said
    assert "\x9b" not in said


def test_an_inertia_that_no_body_has(tmp_path, capsys):
    """Refused; let in on request, it is described, but is no covariance that samples could be drawn from."""
    file = tmp_path / "odd.urdf"
    file.write_text(URDF.format(-0.1))
    assert cli.main(["info", str(file)]) == 2
    assert "negative" in capsys.readouterr().err
    assert cli.main(["info", str(file), "--indefinite-inertia", "warn"]) == 0
    assert "1 dof" in capsys.readouterr().out
    for command in ("identities", "check"):
        assert cli.main([command, str(file), "--indefinite-inertia", "warn"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "'[red]rod': its inertia has the negative eigenvalue -0.1" in said.err
