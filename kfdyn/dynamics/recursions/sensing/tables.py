"""A program as the sweeps see it: at which node which readings enter, and in which order its unknowns are eliminated.

Everything that is fixed to a body stands in the body's own (turned) axes, made once by
``sensors.solver.program``; a sweep only turns it. Readings of a body's acceleration in
information form are one constant matrix a body.
"""

from kfdyn.multibody.recursions.spatial import Spatial
from kfdyn.sweeps.algebra import Mat3, Vec3
from kfdyn.sweeps.entry import Given, Parameter
from kfdyn.sweeps.records import Record, Table

#: Kinds of rows: generalised force of a dof, its acceleration; a component of a force, or of a motion, at a frame.
TORQUE, ACCELERATION, FORCE, MOTION = 0, 1, 2, 3

#: How a node is eliminated: by its order, whatever it has; one dof with one row of its own; the same where nothing is
#: known of accelerations there or outboard (J = 0, A symmetric), and where that holds for its parent, too.
GENERAL, PAIR, QUIET, QUIET_PARENT = 0, 1, 2, 3

#: A node's part of the program, by body t: first and last of its rows, of what is known of its own dofs, of readings of
#: its acceleration and of its pushes; where its unknowns and its pivots begin, where 𝒦⁻¹ is kept, where
#: the covariance of its rows and the constants of its acceleration's readings are; how it is eliminated; its
#: row of WIDE; where the covariance of its unknowns is told.
NODE = Record(
    rows=int, rows_end=int, own=int, own_end=int, seen=int, seen_end=int, push=int, push_end=int, unknowns=int,
    inverse=int, R=int, inform=int, way=int, wide=int, joint=int,
)  # fmt: skip

#: A row: kind; its dof; which reading; where its row of S in the body's axes is, if it reads a force;
#: of a motion its row of K, and what ω brings by the products xx, xy, xz, yy, yz, zz.
ROW = Record(kind=int, at=int, reading=int, S=int)

#: What is known of a dof's acceleration in information form: one reading; its weights with the others of its piece
#: (``count`` numbers from ``weight`` on), which begins at ``first``.
OWN = Record(dof=int, reading=int, first=int, count=int, weight=int)

#: A push: one component of an external force; ``of`` 0–5 at a frame in its axes, 6–11 in the world's; else alike.
PUSH = Record(of=int, frame=int, reading=int, first=int, count=int, weight=int)

#: A node that is eliminated in general: how many unknowns there are before q̈ and m (``left``), how many of all are
#: eliminated (``gone``) and carried on (``kept``); ``order``: rows to begin with, the eliminated, the kept. Where
#: values, the message of the kept and their X are, constants of (u, u), natural scales of all; whether the growth
#: of entries is watched; first and last of its loads, flat forces, children and rows of loops.
WIDE = Record(
    left=int, gone=int, kept=int, order=int, values=int, store=int, beside=int, inner=int, scale=int, watched=int,
    load=int, load_end=int, loose=int, loose_end=int, child=int, child_end=int, end=int, end_end=int,
)  # fmt: skip

#: γ of unknown ``to`` has −weight times a reading; a flat force is unknown ``to``; a child, and where its T is.
LOAD, LOOSE, CHILD = Record(to=int, reading=int, weight=int), Record(to=int, push=int), Record(wide=int, T=int)

#: A row of a loop at one of its ends: its force and its multiplier among the unknowns, and its row of ``ends``.
END = Record(nu=int, mu=int, at=int)

FRAME = Record(R=Mat3, p=Vec3)

#: What an unknown is, w = −(X_α α' + X_λ g + X_γ).
SOLVED = Record(alpha=Spatial, lam=Spatial, gamma=float)

#: Constants of the readings of a body's acceleration, body's axes: K*R⁻¹K (21); what ω brings, −K*R⁻¹ times offsets,
#: by the products xx, xy, xz, yy, yz, zz of ω (6 × 6); K*R⁻¹, six for every reading.
MATRIX, TURNING, WEIGHTS = 0, 21, 57

#: A pivot that is this part of what it was when the order was chosen shows that the order is wrong.
SHRUNK = 1e-6

#: Where in the numbers the growth of entries is that an elimination may bring, and the natural scales of (α, λ).
GROWTH, UNITS = 0, 1

#: A program behind one address: sizes, tables and numbers.
TABLES = Table(
    **dict.fromkeys(("n_rows", "n_unknowns", "n_inverse", "most", "n_values", "n_store", "n_beside"), int),
    **dict.fromkeys(("nodes", "rows", "own", "seen", "push"), (int,)),
    **dict.fromkeys(("frames", "numbers", "scale", "pivots"), (float,)),
    **dict.fromkeys(("wide", "loads", "loose", "inner_nodes", "places", "loop_ends"), (int,)),
)

#: What the entries take beside states: where the program is, and what arrays are sized by.
PROGRAM = [Parameter(name, "n") for name in ("program", "n_readings", "n_ends")]

#: Rows of loops on the accelerations of bodies, in the world's axes, and their drift.
LOOPS = [Given("ends", ("n_ends", 6)), Given("drift", ("n_ends",))]

#: What they answer; ``n_x`` bodies have external forces told, all or none.
ANSWERS = [
    *(Given(name, ("nv",)) for name in ("a", "tau")), *(Given(name, ("n", 6)) for name in ("alpha", "f")),
    Given("x", ("n_x", 6)),
]  # fmt: skip
