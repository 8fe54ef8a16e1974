"""Write the page of robots: every public file that was loaded, its size, and how far kfdyn is from its peers.

.venv/bin/python docs/robots_table.py > docs/robots.md
"""

import sys
from importlib.metadata import version
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "external"))

from robot_agreement import bullet_robots, example_robots, mjcf_models, with_mujoco, with_pinocchio

HEAD = """# Robots beside Pinocchio and MuJoCo

`kfdyn.load` reads URDF with its own reader and MJCF through MuJoCo's compiler. Below is every file of the packages
example-robot-data {example}, pybullet {bullet}, gymnasium {gymnasium} and dm_control {dm} in which something moves, and
the largest relative difference, over two random states, from Pinocchio {pin} (URDF) or MuJoCo {mujoco} (MJCF): of the
mass matrix, of inverse dynamics, of forward dynamics. URDF files were loaded with a fixed and a floating base; the
table has the larger difference. The page is written by `docs/robots_table.py`.

Forward dynamics by two eliminations may differ by rounding times the condition number of the mass matrix, given in the
last column; where it stands out (icub), that is why.

## Where the peers and kfdyn differ

| file or feature | peer | kfdyn | who is right |
|---|---|---|---|
| romeo_laas_small | Pinocchio reads it | refuses it, with link and line, unless loaded with\
 `indefinite_inertia="warn"`, as for the table below | the file is wrong: `LHipPitch_link` and others have a negative\
 moment of inertia about their mass centre, which no body has and no covariance is. Mass matrix and inverse dynamics\
 agree. Forward dynamics has no answer either way, as its grippers have no mass |
| singular mass matrix: romeo, plane, tray, ... | Pinocchio divides by zero or by rounding errors | forward dynamics\
 raises and names the hinge; mass matrix and inverse dynamics agree | kfdyn: there is no acceleration to return |
| planar joint whose axis is not z | Pinocchio moves it in the x-y plane | moves it in the plane normal to the axis |\
 kfdyn: so says the format |
| lower limit above the upper: cube_no_rotation | Pinocchio keeps both | unlimited, with a warning | Bullet means\
 "unlimited" by it; the dynamics are not concerned |
| several root links | Pinocchio refuses | a forest, with a warning | the format asks for one; a forest is harmless |
| tendons and their equality constraints | MuJoCo has them | reported by a warning, not modelled |\
 compared is the smooth dynamics without them |
| joint equalities, `connect`, `weld` | MuJoCo has them, soft | [obeyed](loops.md) when loaded, unless with\
 `mimic="free"` | the table compares the tree without them, which both have |
"""


def row(found):
    forward = "singular: raises" if found.forward is None else f"{found.forward:.0e}"
    condition = f"{found.condition:.0e}" if found.forward is not None else ""
    return [
        found.name,
        found.n_bodies,
        found.nv,
        f"{found.mass_matrix:.0e}",
        f"{found.inverse:.0e}",
        forward,
        condition,
    ]


def table(rows):
    yield "| robot | bodies | dofs | mass matrix | inverse | forward | condition |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for cells in rows:
        yield "| " + " | ".join(map(str, cells)) + " |"


def larger(pair):
    """The worse of the two bases; sizes are those of the fixed base if anything moves on it."""
    pair = [found for found in pair if found is not None]
    if not pair:
        return None
    first = pair[0]
    forward = None if any(f.forward is None for f in pair) else max(f.forward for f in pair)
    return first._replace(
        mass_matrix=max(f.mass_matrix for f in pair),
        inverse=max(f.inverse for f in pair),
        forward=forward,
        condition=max(f.condition for f in pair),
    )


def urdf_rows(files):
    for file in files:
        found = larger([with_pinocchio(file, base) for base in (False, True)])
        if found is not None:
            yield row(found)


def mjcf_rows(files):
    for file in files:
        found = with_mujoco(file)
        if found is not None:
            yield row(found._replace(name=f"{file.parent.name}/{file.stem}"))


def main():
    packages = {"example": "example-robot-data", "bullet": "pybullet", "gymnasium": "gymnasium", "dm": "dm_control"}
    packages |= {"pin": "pin", "mujoco": "mujoco"}
    print(HEAD.format(**{key: version(name) for key, name in packages.items()}))
    for title, rows in (
        ("URDF: example-robot-data", urdf_rows(example_robots())),
        ("URDF: pybullet", urdf_rows(bullet_robots())),
        ("MJCF: gymnasium and dm_control", mjcf_rows(mjcf_models())),
    ):
        print(f"## {title}\n")
        print("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
