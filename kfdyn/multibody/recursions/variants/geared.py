"""Trees whose hinges are geared: the recursions of trees, run in the coordinates that couplings leave.

    q_tree = X q + offset,   v_tree = X v,   a_tree = X a,   X constant                         THEORY section 12

Where hinges follow polynomials, q_tree = f(q), X = f'(q) and a_tree = X a + Ẋv; such a robot has tables of its own, and
entries, written by the same functions. What a tree answers dof by dof is dual to its rates, so that X leads back: J X,
X*tau, X*𝓜X. No recursion is written again for this: around that of the tree its q, v and a are expanded, and its
answers narrowed, in the same workspace.
"""

from sys import float_info

from kfdyn.multibody.recursions.given import changed
from kfdyn.multibody.recursions.hinges import zeros
from kfdyn.multibody.recursions.robot import ROBOT, soundness
from kfdyn.multibody.recursions.workspace import Workspace, entry_around
from kfdyn.sweeps.control_flow import down, if_, loop, loop_vars
from kfdyn.sweeps.entry import Options
from kfdyn.sweeps.functions import minimum
from kfdyn.sweeps.memory import clear
from kfdyn.sweeps.records import Table
from kfdyn.sweeps.values import where

#: The tables of a tree; sizes of q and v that couplings leave; and X, rows for positions before those for rates. Row i
#: has terms starts[i] … of ``columns`` and ``ratios``; positions have offsets. Then the tree of the coordinates that
#: are left, each on the world: how they move is told by it alone.
GEARED = Table(
    **ROBOT.fields, own_nq=int, own_nv=int, starts=(int,), columns=(int,), ratios=(float,), offsets=(float,),
    own_n=int, own_index=(int,), own_real=(float,), own_screws=(float,),
)  # fmt: skip

#: The same where hinges follow polynomials: how many terms X has; where the coefficients of each begin, and of which q
#: it is a polynomial.
CAMS = Table(**GEARED.fields, terms=int, powers=(int,), leads=(int,), coefficients=(float,))

#: The largest double.
LARGEST = float_info.max

#: Results that are symmetric matrices.
SYMMETRIC = ("matrix", "by_a")

#: And what is a diagonal of one, of which nothing else is known or wanted.
DIAGONAL = ("load",)

_OWN = {"nq": "own_nq", "nv": "own_nv"}


def coordinates(robot):
    """Return the coordinates that couplings leave, as :mod:`.displacement` looks at a robot."""
    own = {name: getattr(robot, f"own_{name}") for name in ("n", "nq", "nv", "index", "real", "screws")}
    return changed(robot, own=None, **own)


class Expansion:
    """X of a robot; where hinges follow polynomials, X at some q, kept with its slope in what ``take`` gives."""

    def __init__(self, robot, take=None):
        self.robot, self.curved = robot, hasattr(robot, "coefficients")
        self.slopes = self.bends = None
        if self.curved and take is not None:
            self.slopes, self.bends = take(robot.terms), take(robot.terms)

    def terms(self, i):
        """Over column and ratio of the terms of row i."""
        robot = self.robot
        ratios = robot.ratios if self.slopes is None else self.slopes
        for s in loop(robot.starts[i + 1], robot.starts[i]):
            yield robot.columns[s], ratios[s]

    def lead(self, q):
        """Let X be that at q, if it depends on it."""
        if self.curved:
            robot = self.robot
            for s in loop(robot.terms, robot.starts[robot.nq]):
                _, slope, bend = self._polynomial(s, q)
                self.slopes[s], self.bends[s] = robot.ratios[s] + slope, bend

    def _polynomial(self, s, q):
        """p, p' and p'' of term s at q, by Horner's scheme; 0 where it has no polynomial."""
        robot = self.robot
        x, first, end, none = q[robot.leads[s]], robot.powers[s], robot.powers[s + 1], zeros(robot).x
        p, slope, bend = loop_vars(none), loop_vars(none), loop_vars(none)
        for k in down(end, first):
            bend.set(bend.get() * x + slope.get())
            slope.set(slope.get() * x + p.get())
            p.set(p.get() * x + robot.coefficients[k])
        return p.get(), slope.get(), 2.0 * bend.get()

    def positions(self, q, out):
        """X q + offset, or f(q); 1, or −1 where one of these is more than a double holds, and then 0. X is led to q."""
        robot, fine = self.robot, loop_vars(zeros(self.robot).x + 1.0)
        if self.slopes is not None:
            self.lead(q)
        for i in loop(robot.nq):
            x = self._row(i, q, robot.ratios) + robot.offsets[i]
            if self.curved:
                total = loop_vars(x)
                for s in loop(robot.starts[i + 1], robot.starts[i]):
                    total.set(total.get() + self._polynomial(s, q)[0])
                x = total.get()
            holds = abs(x) <= LARGEST
            out[i] = where(holds, x, 0.0)
            fine.set(where(holds, fine.get(), -1.0))
        return fine.get()

    def rates(self, v, out):
        """X v."""
        for i in loop(self.robot.nv):
            out[i] = self._row(self.robot.nq + i, v, self.robot.ratios if self.slopes is None else self.slopes)

    def add_drift(self, v, out):
        """Add Ẋv."""
        robot = self.robot
        for i in loop(robot.nv):
            total, row = loop_vars(out[i]), robot.nq + i
            for s in loop(robot.starts[row + 1], robot.starts[row]):
                speed = v[robot.columns[s]]
                total.set(total.get() + (self.bends[s] * speed) * speed)
            out[i] = total.get()

    def _row(self, i, given, ratios):
        robot, total = self.robot, loop_vars(zeros(self.robot).x)
        for s in loop(robot.starts[i + 1], robot.starts[i]):
            total.set(total.get() + ratios[s] * given[robot.columns[s]])
        return total.get()

    def rows(self, J, count, out):
        """J X of so many rows J; one of them is a force, X*tau."""
        nv, own = self.robot.nv, self.robot.own_nv
        clear(out, count * own)
        for i in loop(nv):
            for column, ratio in self.terms(self.robot.nq + i):
                for r in range(count):
                    out[r * own + column] += ratio * J[r * nv + i]

    def diagonal(self, squares, out):
        """The diagonal of X*MX, of a diagonal M."""
        clear(out, self.robot.own_nv)
        for i in loop(self.robot.nv):
            for column, ratio in self.terms(self.robot.nq + i):
                out[column] += (ratio * ratio) * squares[i]

    def matrix(self, M, out, symmetric):
        """X*MX, symmetric to the bit where M is: entries that mirror each other get what they get at the same time.

        Of a symmetric M only what is on and below the diagonal is read.
        """
        nq, nv, own = self.robot.nq, self.robot.nv, self.robot.own_nv
        clear(out, own * own)
        for i in loop(nv):
            for j in loop(i + 1):
                entry = M[i * nv + j]
                mirrored = entry if symmetric else M[j * nv + i]
                for column, ratio in self.terms(nq + i):
                    for other, by in self.terms(nq + j):
                        term = (ratio * by) * entry
                        out[column * own + other] += term
                        for _ in if_(i != j):
                            out[other * own + column] += term if symmetric else (ratio * by) * mirrored


class Kept:
    """Answers of a recursion, kept in a workspace."""

    given = True

    def __init__(self, numbers):
        self.numbers = numbers

    def __getitem__(self, i):
        return self.numbers[i]

    def __setitem__(self, i, value):
        self.numbers[i] = value

    def copy(self, numbers, count):
        """Take the numbers where they are: they are in the same workspace, and stay until they are looked at."""
        if numbers is not self:
            self.numbers = numbers


class Around(Workspace):
    """A recursion over a tree, given to an ``entry``, and the workspace around its own.

    ``tree`` is the row as that recursion sees it.
    """

    def __init__(self, entry, robot, row, work):
        super().__init__(robot, row, work)
        self.entry, self.X = entry, Expansion(robot, self.take)
        sizes = {"nq": robot.nq, "nv": robot.nv}
        self.expanded = {x.name: self.take(sizes[x.tail[0]]) for x in entry.given if x.tail in (("nq",), ("nv",))}
        self.kept, self.narrowed = {}, {}
        for about in entry.results:
            if "nv" in about.tail:
                count, own = (_product(about.tail, nv) for nv in (robot.nv, robot.own_nv))
                self.kept[about.name], self.narrowed[about.name] = Kept(self.take(count)), self.take(own)
        self.tree = changed(row, late=None, **self.expanded, **self.kept)

    @property
    def size(self):
        """The size of both workspaces, in numbers."""
        return self.taken + self.entry.workspace.size(self.robot, self.tree)

    def begin(self):
        """Prepare what stays from row to row."""
        self.entry.workspace.start(self.robot, self.tree, self.rest)

    def run(self):
        """Expand, run, narrow; positive where all went well."""
        for about in self.entry.given:
            if about.name in self.expanded:
                given, out = getattr(self.row, about.name), self.expanded[about.name]
                out.given = given.given
                if about.tail == ("nq",):
                    fine = self.X.positions(given, out)
                elif about.name == "a" and self.X.curved:  # without an acceleration there is still Ẋv
                    out.given = True
                    clear(out, self.robot.nv)
                    for _ in if_(given.given):
                        self.X.rates(given, out)
                    self.X.add_drift(self.row.v, out)
                else:
                    for _ in if_(given.given):
                        self.X.rates(given, out)
        swept = self.entry.recursion(self.robot, self.tree, self.rest)
        for about in self.entry.results:
            if about.name in self.kept:
                numbers, out = self.kept[about.name], self.narrowed[about.name]
                if about.tail == ("nv", "nv"):
                    self.X.matrix(numbers, out, about.name in SYMMETRIC)
                elif about.name in DIAGONAL:
                    self.X.diagonal(numbers, out)
                else:
                    self.X.rows(numbers, _product(about.tail[:-1]), out)
                getattr(self.row, about.name).copy(out, _product(about.tail, self.robot.own_nv))
        return fine if swept is None else minimum(fine, swept)


def _product(tail, nv=1):
    count = 1
    for extent in tail:
        count = count * (nv if extent == "nv" else extent)
    return count


#: No hinge with a quaternion is geared: its columns stay side by side.
_is_sound = soundness(lambda robot, i: robot.columns[robot.starts[i]])


def own(about):
    """Return an argument or an answer in the coordinates that couplings leave."""
    return about._replace(tail=tuple(_OWN.get(x, x) for x in about.tail), sound=about.sound and _is_sound)


def geared(entry):
    """The same entry for robots with couplings.

    One of the arrays that it is given is q. Whatever it answers with the robot's dofs must be dual to rates: forces,
    rows of Jacobians, and matrices that lead from rates to forces. Accelerations are not.
    """
    given, results = ([own(about) for about in some] for some in (entry.given, entry.results))
    options = Options(block=entry.options.block, unroll=entry.options.unroll)
    return entry_around(entry, Around, "geared", GEARED, given, results, options)


def curved(entry):
    """The same entry of couplings for robots whose hinges follow polynomials."""

    def run(robot, row, work):
        return entry.recursion(robot, row, work)

    run.__name__, run.__module__ = f"curved_{entry.name}", entry.recursion.__module__
    return type(entry)(run, CAMS, [*entry.parameters, *entry.given], entry.results, entry.workspace, entry.options)


def for_couplings(entry, kind):
    """The same entry for robots with couplings: "geared" where X is constant, "curved" for polynomials."""
    constant = entry if entry.table is GEARED else geared(entry)
    return constant if kind == "geared" else curved(constant)
