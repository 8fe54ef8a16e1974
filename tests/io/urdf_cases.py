"""Small URDF texts for the tests of kfdyn.io."""

INERTIAL = (
    '<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.5 0.7"/><mass value="{mass}"/>'
    '<inertia ixx="0.5" ixy="0.02" ixz="-0.03" iyy="0.6" iyz="0.01" izz="0.4"/></inertial>'
)


def link(name, mass=None):
    return f'<link name="{name}">' + (INERTIAL.format(mass=mass) if mass else "") + "</link>"


def joint(name, kind, parent, child, inside=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.3 0.1 -0.2" rpy="0.2 0.4 -0.6"/>{inside}</joint>'
    )


def robot(*parts, name="test"):
    """One element per line, so that line numbers can be told: <robot> is line 1, the first part line 2."""
    return "\n".join([f'<robot name="{name}">', *parts, "</robot>"])


LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'

# Every joint type, a branch, a link without inertial, unnormalised and default axes, a rotated inertial.
ALL_JOINTS = robot(
    link("base", 3.0),
    link("arm", 2.0),
    link("slider", 1.5),
    link("flange"),
    link("tool", 0.5),
    link("puck", 0.7),
    link("drone", 0.9),
    link("wheel", 0.4),
    joint("turn", "revolute", "base", "arm", f'<axis xyz="0 2 2"/>{LIMIT}<dynamics damping="0.1" friction="0.2"/>'),
    joint("slide", "prismatic", "arm", "slider", LIMIT),
    joint("bolt", "fixed", "slider", "flange"),
    joint("weld", "fixed", "flange", "tool"),
    joint("plane", "planar", "tool", "puck", '<axis xyz="0 0 1"/>'),
    joint("fly", "floating", "arm", "drone"),
    joint(
        "roll", "continuous", "base", "wheel", '<axis xyz="0 0 -3"/><mimic joint="turn" multiplier="2" offset="0.1"/>'
    ),
)
