"""The sweeps of the square-root form: arrays triangularised from the right by reflections (THEORY section 14)."""

from kfdyn.estimation.recursions.reflections import absorb_in_lanes
from kfdyn.sweeps import absolute, choice, down, either, local, loop, no, real, root, size, span, sweep, when
from kfdyn.sweeps.values import Place

_EPS = 2.220446049250313e-16

#: A pivot of elimination below that part of its variance may be rounding of 0.
REGULAR = 1e-13


@sweep
def gather_roots(
    tag, order, parent, state, output, phi, phi_at, H, H_at, Q_at, R, R_root, R_at, seen, before_at,
    P_root, P_plus_root, before, P, P_plus, D, L, G, work, outputs,
):  # fmt: skip
    """Fill P, P⁺, D and their roots, and G, of every node, leaves to roots.

    ::

        [ R^½   H P^½ ]      [ D^½      0     ]
        [  0    P^½   ]  →   [ G D^½   P⁺^½   ]          P(p)^½ ← [ P(p)^½   φ P⁺^½ ]

    ``P_root`` arrives as a copy of Q^½; all roots of P, Q, R and D are lower triangular, P⁺^½ is square. ``before``
    keeps P(p)^½ as each child found it. Rows that are not seen are zero in R^½, and left out: identity in L, zero in G.
    Returns −1, or the number of the output (stacked) whose innovation is no more than rounding. ``work`` holds
    :func:`gather_work` numbers; ``tag`` and ``outputs`` are sizes that all nodes share, or None.
    4n³ + O(n²m) flops a node.
    """
    failed = local(-1)
    for step in loop(order.size, until=failed):
        k = order[step]
        n, m = size(tag, state[k + 1] - state[k]), size(outputs, output[k + 1] - output[k])
        S, own = P_root.matrix(Q_at[k], n, n), P_plus_root.matrix(Q_at[k], n, n)
        factor, gain = L.matrix(R_at[k], m, m), G.matrix(H_at[k], n, m)
        maps, noise = H.matrix(H_at[k], m, n), R_root.matrix(R_at[k], m, m)
        F, scale = work.matrix(0, m, n), work.part(m * n)
        P_k = P.matrix(Q_at[k], n, n)
        square(n, P_k, S)
        for i in span(n):
            for j in span(n):
                own[i, j] = S[i, j]
            for a in loop(m):
                gain[i, a] = 0.0
        for a in loop(m):
            there = seen[output[k] + a]
            total = local(0.0)
            for b in loop(m):
                factor[a, b] = noise[a, b]
                total += noise[a, b] * noise[a, b]
            combine(n, n, F, a, 0, maps, S)
            for i in span(n):
                total += maps[a, i] * maps[a, i] * P_k[i, i]
            for j in span(n):
                F[a, j] = choice(there, F[a, j], 0.0)
            scale[a] = 4.0 * _EPS * root(total)
        absorb(m, n, factor, F, n, gain, own)
        for a in loop(m):
            there = seen[output[k] + a]
            for _ in when(there & no(factor[a, a] > scale[a] * real(n + m))):
                failed.set(choice(failed < 0, output[k] + a, failed))
        for _ in when(failed < 0):
            innovations(n, m, maps, P_k, R.matrix(R_at[k], m, m), seen.part(output[k]), factor,
                        D.matrix(R_at[k], m, m), work)  # fmt: skip
            divide(n, m, gain, factor)
        square(n, P_plus.matrix(Q_at[k], n, n), own)
        p = parent[k]
        for _ in when(p >= 0):
            r = size(tag, state[p + 1] - state[p])
            above, kept = P_root.matrix(Q_at[p], r, r), before.matrix(before_at[k], r, r)
            for i in loop(r):
                for j in span(r):
                    kept[i, j] = above[i, j]
            moved = work.matrix(0, r, n)
            multiply(r, n, n, moved, phi.matrix(phi_at[k], r, n), own)
            absorb(r, n, above, moved, 0, None, None)
    return failed


def innovations(n, m, H, P, R, seen, L, D, work):
    """D = L L* of what is seen and H P H* + R of the rest; L gets ones on the diagonal of the rest."""
    for a in loop(m):
        for _ in when(no(seen[a])):
            L[a, a] = 1.0
        for i in span(n):
            s = local(0.0)
            for j in span(n):
                s += P[i, j] * H[a, j]
            work[i] = s
        for b in loop(a + 1):
            s, t = local(R[a, b]), local(0.0)
            for i in span(n):
                s += H[b, i] * work[i]
            for c in loop(b + 1):
                t += L[a, c] * L[b, c]
            D[a, b] = choice(seen[a] & seen[b], t, s)
            D[b, a] = choice(seen[a] & seen[b], t, s)


def divide(n, m, G, L):
    """G ← G L⁻¹ row by row."""
    for i in span(n):
        for a in down(m):
            s = local(G[i, a])
            for b in loop(m, a + 1):
                s -= G[i, b] * L[b, a]
            G[i, a] = s / L[a, a]


def square(n, out, C):
    """out = C C*, exactly symmetric."""
    for i in span(n):
        for j in span(i + 1) if isinstance(n, int) else loop(i + 1):
            s = local(0.0)
            for l in span(n):
                s += C[i, l] * C[j, l]
            out[i, j] = s
            out[j, i] = s


def gather_work(n, m):
    """Numbers that :func:`gather_roots` works in, with at most n states and m outputs to a node."""
    return max(n, m) * n + m + n + 1


@sweep
def scatter_roots(
    tag, order, parent, state, phi, phi_at, Q_at, before_at, step_at, first, P_plus_root, before,
    after, back, aside, S, S_root, current, work,
):  # fmt: skip
    """Fill the roots of the smoothed covariances of every node, roots to leaves, and what the states need.

    A parent's state is a sum to which its children were added one after the other. With s the sum after child k and s'
    the sum before::

        [ P(s')^½   φ P⁺^½ ]      [ P(s)^½   0  ]
        [    0      P⁺^½   ]  →   [   Y      Z  ]     x(k):   root [Y Γ, Z],   P(s)^½ Γ = S(s)^½
        [ P(s')^½     0    ]      [   Y'     Z' ]     s':     root [Y'Γ, Z']

    ``after`` keeps P(s)^½, ``back`` Y and ``aside`` Y'; ``first`` tells children before which there was no other.
    ``S_root`` is empty where covariances are not wanted, ``current`` is room for the roots of the sums. ``work`` holds
    :func:`scatter_work` numbers. Sums of squares alone: nothing cancels. Some 13n³ flops a node.
    """
    for step in down(order.size):
        k = order[step]
        n = size(tag, state[k + 1] - state[k])
        p = parent[k]
        own = P_plus_root.matrix(Q_at[k], n, n)
        for _ in when((p < 0) & (S_root.size > 0)):
            lower(n, n, S_root.matrix(Q_at[k], n, n), own, work)
        for _ in when(p >= 0):
            r = size(tag, state[p + 1] - state[p])
            total, kept = after.matrix(before_at[k], r, r), before.matrix(before_at[k], r, r)
            F, pivot = work.matrix(0, r, n), work.part(r * n)
            C = work.matrix(r * n + r, n + r, r)  # the rows of x(k), and of the sum before it
            E = work.matrix(r * n + r + (n + r) * r, n + r, n)
            rest = work.part(r * n + r + (n + r) * (n + r))
            multiply(r, n, n, F, phi.matrix(phi_at[k], r, n), own)
            copy(r, r, total, 0, kept)
            for i in span(n):
                for j in span(r):
                    C[i, j] = 0.0
            copy(n, n, E, 0, own)
            for alone in either(first[k]):
                if alone:
                    absorb(r, n, total, F, n, C, E)
                else:
                    copy(r, r, C, n, kept)
                    for i in span(r):
                        for j in span(n):
                            E[n + i, j] = 0.0
                    absorb(r, n, total, F, n + r, C, E)
                    aside_k = aside.matrix(before_at[k], r, r)
                    for i in span(r):
                        for j in span(r):
                            aside_k[i, j] = C[n + i, j]
            copy(n, r, back.matrix(step_at[k], n, r), 0, C)
            for _ in when(S_root.size > 0):
                sums, gamma = current.matrix(Q_at[p], r, r), rest.matrix(0, r, r)
                pivots(r, total, pivot)
                solve_rows(r, total, pivot, sums, gamma)
                space, mine = rest.part(r * r), S_root.matrix(Q_at[k], n, n)
                for regular in either(smallest(r, pivot) != 0.0):
                    rooted(n, r, n, regular, mine, space, C, gamma, E, 0, pivot)
                    for _ in when(no(first[k])):
                        rooted(r, r, n, regular, sums, space, C, gamma, E, n, pivot)
        for _ in when(S_root.size > 0):
            square(n, S.matrix(Q_at[k], n, n), S_root.matrix(Q_at[k], n, n))
            here, found = current.matrix(Q_at[k], n, n), S_root.matrix(Q_at[k], n, n)
            for i in loop(n):
                for j in span(n):
                    here[i, j] = found[i, j]


def scatter_work(n):
    """Numbers that :func:`scatter_roots` works in, with at most n states to a node."""
    return 9 * n * n + n


@sweep
def smooth_states(tag, order, parent, state, before_at, step_at, first, after, back, aside, rows, z, z_plus, x, work):
    """Fill x̂ = z⁺ + Y g, P(s)^½ g = ŝ − z(s), for all rows, roots to leaves; ``work`` holds Σn + most n numbers.

    ``work`` carries x̂ − z of the sums. 4n² flops a node and row.
    """
    total = state[order.size]
    for b in loop(rows):
        at = b * total
        gap, g = work.part(0), work.part(total)
        for step in down(order.size):
            k = order[step]
            n, s = size(tag, state[k + 1] - state[k]), state[k]
            p = parent[k]
            for i in loop(n):
                x[at + s + i] = z_plus[at + s + i]
            for _ in when(p >= 0):
                r = size(tag, state[p + 1] - state[p])
                above = gap.part(state[p])
                solve_vector(r, after.matrix(before_at[k], r, r), above, g)
                Y = back.matrix(step_at[k], n, r)
                for i in loop(n):
                    total_i = local(z_plus[at + s + i])
                    for j in span(r):
                        total_i += Y[i, j] * g[j]
                    x[at + s + i] = total_i
                for _ in when(no(first[k])):
                    Y2 = aside.matrix(before_at[k], r, r)
                    for i in loop(r):
                        sum_i = local(0.0)
                        for j in span(r):
                            sum_i += Y2[i, j] * g[j]
                        above[i] = sum_i
            for i in loop(n):
                gap[s + i] = x[at + s + i] - z[at + s + i]


def absorb(r, c, S, F, extra, C, E):
    """[S F] → [S' 0] by reflections from the right, S (r, r) lower triangular, F (r, c); rows [C E] go along.

    Reflection i touches column i of S and all of F, since S has nothing to the right of it. The largest number of row i
    is first brought to column i: so each column keeps digits in proportion to its own size, not to the largest one's
    (Cox and Higham 1998). Diagonals come out positive or 0. What is left of F is not to be used.
    """
    if Place.builder is not None and all(isinstance(x, int) for x in (r, c, extra)) and c > 0:
        absorb_in_lanes(r, c, S, F, extra, C, E)
        return
    for i in span(r):
        norm, most, best = local(0.0), local(absolute(S[i, i])), local(-1)
        for j in span(c):
            size_j = absolute(F[i, j])
            best.set(choice(size_j > most, j, best))
            most.set(choice(size_j > most, size_j, most))
        for _ in when(best >= 0):
            swap(r, i, best, S, F, i)
            if C is not None:
                swap(extra, i, best, C, E, 0)
        for j in span(c):
            norm += F[i, j] * F[i, j]
        d = S[i, i]
        for _ in when(norm > 0.0):
            length = root(d * d + norm)
            head = d + choice(d < 0.0, -length, length)
            factor = 1.0 / (length * (length + absolute(d)))
            sign = choice(d < 0.0, 1.0, -1.0)  # of what the reflection makes of the diagonal entry
            for l in after_(r, i):
                reflect(c, S, F, l, i, head, factor, sign, F)
            if C is not None:
                for l in span(extra):
                    reflect(c, C, E, l, i, head, factor, sign, F)
            S[i, i] = length
            for j in span(c):
                F[i, j] = 0.0
        for _ in when(no(norm > 0.0) & (d < 0.0)):
            for l in loop(r, i):
                S[l, i] = -S[l, i]
            if C is not None:
                for l in span(extra):
                    C[l, i] = -C[l, i]


def swap(rows, i, j, S, F, start):
    """Exchange column i of S and column j of F."""
    for l in loop(rows, start):
        kept = S[l, i]
        S[l, i] = F[l, j]
        F[l, j] = kept


def reflect(c, S, F, l, i, head, factor, sign, v):
    """Row l of [S F] reflected along (head, v of row i), and its column i turned by the sign."""
    s = local(S[l, i] * head)
    for j in span(c):
        s += F[l, j] * v[i, j]
    t = s * factor
    S[l, i] = sign * (S[l, i] - t * head)
    for j in span(c):
        F[l, j] = F[l, j] - t * v[i, j]


def multiply(r, n, c, out, A, B):
    """out = A B for A (r, n), B (n, c)."""
    for i in loop(r):
        combine(n, c, out, i, 0, A, B)


def combine(n, c, out, i, start, A, B, skip=0):
    """Row i of out, from column ``start`` on: row skip + i of A times B (n, c); in registers where sizes are known."""
    if isinstance(n, int) and isinstance(c, int):
        sums = [0.0] * c
        for l in range(n):
            weight = A[skip + i, l]
            sums = [s + weight * B[l, j] for j, s in enumerate(sums)]
        for j, s in enumerate(sums):
            out[i, start + j] = s
        return
    for j in loop(c):
        out[i, start + j] = 0.0
    for l in loop(n):
        weight = A[skip + i, l]
        for j in loop(c):
            out[i, start + j] = out[i, start + j] + weight * B[l, j]


def copy(r, c, out, start, A):
    """Rows of A (r, c) to the rows of out from ``start`` on."""
    for i in span(r):
        for j in span(c):
            out[start + i, j] = A[i, j]


def rooted(rows, r, n, regular, out, space, C, gamma, E, start, pivot):
    """out ← the root of [E, C Γ][E, C Γ]*, of the rows of C and E from ``start`` on.

    A column of C without a pivot says nothing of the sum, so it stays as unknown as it was: it is written beside the
    others as it stands, unless all are regular.
    """
    width = n + r if regular else n + 2 * r
    F = space.matrix(0, rows, width)
    for i in span(rows):
        for j in span(n):
            F[i, j] = E[start + i, j]
        combine(r, r, F, i, n, C, gamma, start)
        if not regular:
            for j in span(r):
                F[i, n + r + j] = choice(pivot[j] == 0.0, C[start + i, j], 0.0)
    lower(rows, width, out, F, None)


def lower(r, c, S, F, work):
    """S ← the lower triangular root of F F*, F (r, c); F is destroyed, unless there is room to copy it to."""
    if work is not None:
        copy(r, c, work.matrix(0, r, c), 0, F)
        F = work.matrix(0, r, c)
    for i in span(r):
        for j in span(r):
            S[i, j] = 0.0
    absorb(r, c, S, F, 0, None, None)


def pivots(r, S, pivot):
    """One over the diagonal of a lower triangular S; 0 where that is no more than rounding of its row."""
    for i in span(r):
        most = local(absolute(S[i, i]))
        for l in span(i) if isinstance(i, int) else loop(i):
            most.set(choice(absolute(S[i, l]) > most, absolute(S[i, l]), most))
        good = absolute(S[i, i]) > 32.0 * _EPS * real(r) * most
        pivot[i] = choice(good, 1.0 / choice(good, S[i, i], 1.0), 0.0)


def smallest(r, pivot):
    """The smallest of the pivots, none of which is negative."""
    least = local(1.0)
    for i in span(r):
        least.set(choice(pivot[i] < least, pivot[i], least))
    return least


def solve_rows(r, S, pivot, B, X):
    """X with S X = B, B lower triangular (r, r): in the range of S, where that is singular."""
    for i in span(r):
        if isinstance(r, int):
            row = [B[i, j] for j in range(r)]
            for l in range(i):
                weight = S[i, l]
                row = [x - weight * X[l, j] for j, x in enumerate(row)]
            for j, x in enumerate(row):
                X[i, j] = x * pivot[i]
        else:
            for j in loop(r):
                s = local(B[i, j])
                for l in loop(i):
                    s -= S[i, l] * X[l, j]
                X[i, j] = s * pivot[i]


def solve_vector(r, S, b, x):
    """x with S x = b, as :func:`solve_rows`."""
    for i in span(r):
        s, most = local(b[i]), local(absolute(S[i, i]))
        for l in span(i) if isinstance(i, int) else loop(i):
            s -= S[i, l] * x[l]
            most.set(choice(absolute(S[i, l]) > most, absolute(S[i, l]), most))
        good = absolute(S[i, i]) > 32.0 * _EPS * real(r) * most
        x[i] = choice(good, s / choice(good, S[i, i], 1.0), 0.0)


def after_(n, i):
    """A loop over the rows after row i."""
    return range(i + 1, n) if isinstance(n, int) and isinstance(i, int) else loop(n, i + 1)


@sweep
def cholesky_roots(at, sizes, blocks, roots, doubtful):
    """Fill lower triangular roots of covariances; marks blocks with a pivot that may be rounding, and counts them.

    A pivot of 0 with nothing below it is an exact root of zeros.
    """
    count = local(0)
    for k in loop(sizes.size):
        n = sizes[k]
        A, L = blocks.matrix(at[k], n, n), roots.matrix(at[k], n, n)
        bad = local(0)
        for j in loop(n):
            s = local(A[j, j])
            for l in loop(j):
                s -= L[j, l] * L[j, l]
            good = s > REGULAR * A[j, j]
            bad.set(choice(no(good) & ((s != 0.0) | (A[j, j] != 0.0)), 1, bad))
            pivot = root(choice(good, s, 1.0))
            L[j, j] = choice(good, pivot, 0.0)
            for i in loop(n, j + 1):
                t = local(A[i, j])
                for l in loop(j):
                    t -= L[i, l] * L[j, l]
                bad.set(choice(no(good) & (t != 0.0), 1, bad))
                L[i, j] = choice(good, t / pivot, 0.0)
                L[j, i] = 0.0
        doubtful[k] = bad != 0
        count += bad
    return count
