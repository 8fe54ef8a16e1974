import pytest

import kfdyn.io as kio
from kfdyn.errors import ModelError
from kfdyn.io import xml_reader


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<sdf/>", "neither URDF nor MJCF; convert it"),
        ("<mujocoinclude/>", "load the file that includes it"),
        ("<svg/>", "URDF begins with <robot>, MJCF with <mujoco>"),
        ("<html/>", "<string>: is an HTML page, no robot; save the file itself"),
        ("<!DOCTYPE html><html><body>404<br></body></html>", "is an HTML page"),
        (b"\xef\xbb\xbf\n<!-- saved -->\n<!doctype HTML><p>", "is an HTML page"),
        ("<robot", "<string>:1: not well-formed XML"),
        ("<robot>\n<link>\n</robot>", "<string>:3: not well-formed XML.*mismatched tag"),
        ("<robot/><robot/>", "not well-formed XML"),
        ("<robot name='\ud800'/>", "lone surrogate"),
        (b"<robot name='\xff'/>", "<bytes>:1: not well-formed XML"),
        (b"", "not well-formed XML.*no element"),
        (b'<?xml version="1.0" encoding="shift_jis"?><robot/>', "save the file as UTF-8"),
        (b'<?xml version="1.0" encoding="klingon"?><robot/>', "save the file as UTF-8"),
        (None, "needs a path or a string of XML, got NoneType"),
        ("\0", "neither a path nor XML"),
    ],
)
def test_what_is_no_robot(text, message):
    with pytest.raises(ModelError, match=message):
        kio.load(text)


def test_a_model_of_mujoco_has_a_door_of_its_own():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ModelError, match=r"got MjModel; kf\.io\.from_mujoco_model takes one"):
        kio.load(model)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError):
        kio.load(tmp_path / "absent.urdf")
    with pytest.raises(ModelError, match="not a regular file"):
        kio.load(tmp_path)
    with pytest.raises(ModelError, match="not a regular file"):
        kio.load("/dev/zero")
    large = tmp_path / "large.urdf"
    with large.open("wb") as file:  # sparse: it takes no room
        file.seek(xml_reader.MAX_BYTES + 10)
        file.write(b">")
    with pytest.raises(ModelError, match="larger than 64 MiB"):
        kio.load(large)


def test_lines_are_counted_across_pieces(monkeypatch):
    monkeypatch.setattr(xml_reader, "CHUNK", 7)
    elements = list(
        xml_reader.read_elements(b"<a>\n<b>\n<c x='1'/><d/>\n</b>\n\n<e/></a>", "text", lambda tag: tag != "d")
    )
    assert [(e.tag, e.line) for e in elements] == [("a", 1), ("b", 2), ("e", 6)]
    assert [(e.tag, e.attributes, e.line) for e in elements[1].children] == [("c", {"x": "1"}, 3)]


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "entities are not read"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><robot/>', "entities are not read"),
        ('<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>', "entities are not read"),
        ("<!DOCTYPE mujoco><mujoco/>", "entities are not read"),
        ('<robot name="&a;"/>', "not well-formed XML.*undefined entity"),
        ("<robot>" + "<link>" * 400, "nested deeper than 256"),
        ("<mujoco><worldbody>" + "<body>" * 400, "nested deeper than 256"),
        ('<robot name="' + "a" * (3 << 20) + '"/>', "longer than 1 MiB"),
        ("<robot " + " ".join(f'a{i}=">"' for i in range(200_000)) + "/>", "longer than 1 MiB"),
        ("<robot><!--" + "-a" * (2 << 20) + "--></robot>", "longer than 1 MiB"),
        (
            '<robot><link name="a">' + "<inertial/>" * 20_000 + "</link></robot>",
            "more than 10000 elements in one <link>",
        ),
        (
            '<robot><link name="a"><inertial><mass value="' + "1" * 10_000 + '"/>' + "</inertial></link></robot>",
            "is not a number",
        ),
    ],
    ids=range(12),
)
def test_hostile_text_is_refused(text, message):
    with pytest.raises(ModelError, match=message):
        kio.load(text)


def test_too_many_elements_and_links(monkeypatch):
    from kfdyn.io.urdf import urdf_elements

    text = "<robot>" + "".join(f'<link name="{i}"/>' for i in range(300)) + "</robot>"
    monkeypatch.setattr(urdf_elements, "MAX_LINKS", 200)
    with pytest.raises(ModelError, match="more than 200 links"):
        kio.load(text)
    monkeypatch.setattr(xml_reader, "MAX_ELEMENTS", 100)
    with pytest.raises(ModelError, match="more than 100 elements"):
        kio.load(text)


def deep(n, kind="continuous"):
    parts = ['<robot name="deep"><link name="0"/>']
    for i in range(1, n + 1):
        parts.append(
            f'<link name="{i}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
            f'</inertial></link><joint name="{i}" type="{kind}"><parent link="{i - 1}"/><child link="{i}"/></joint>'
        )
    return "".join(parts) + "</robot>"


def test_deep_chains_do_not_recurse():
    n = 1500  # beyond Python's recursion limit
    system = kio.load(deep(n))
    assert system.n_bodies == n
    assert kio.load(kio.save_urdf(system)).n_bodies == n
    assert "1000: 1001" in kio.describe(system, most=n)
    (body,) = kio.load(deep(n, "fixed"), floating_base=True).bodies
    assert body.inertia[3, 3] == n


@pytest.mark.slow
def test_a_hundred_thousand_links_deep():
    assert kio.load(deep(100_000)).n_bodies == 100_000
    looped = deep(100_000).replace(
        "</robot>", '<joint name="x" type="fixed"><parent link="9"/><child link="0"/></joint></robot>'
    )
    with pytest.raises(ModelError.__base__, match="loop"):
        kio.load(looped)
