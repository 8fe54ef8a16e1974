"""What the score adds to the smoother: products of each node, no recursion (THEORY section 10)."""

from kfdyn.sweeps import choice, down, local, loop, size, span, sweep, when

_FEW = 4  # rows whose code is written one after the other instead of as a loop


@sweep(tags=1)
def score_of_maps(tags, parent, state, output, phi, phi_at, H_at, Q_at, Lambda, P_plus, G, d_phi_at, d_phi, d_H, work):
    """Fill the part of ∂ℓ/∂φ and ∂ℓ/∂H that does not depend on T, for every node.

    ::

        −Y(k),  Y = Λ(p) φ P⁺(k)          and          −(G* − K*Y),  K = φ G

    The second is −(C H − G*Λ⁺)P with C = D⁻¹ + G*Λ⁺G, since HP = DG* and P = P⁺ + GDG*: nothing is inverted. ``tags``
    are the sizes that all nodes share, or None; ``work`` holds :func:`work_size` numbers. 4n³ + O(n²m) flops a
    node.
    """
    for k in loop(parent.size):
        n, m = size(tags[0], state[k + 1] - state[k]), size(tags[1], output[k + 1] - output[k])
        gain, own = G.matrix(H_at[k], n, m), d_H.matrix(H_at[k], m, n)
        for a in span(m):
            for j in span(n):
                own[a, j] = -gain[j, a]
        p = parent[k]
        for _ in when(p >= 0):
            r = size(tags[0], state[p + 1] - state[p])
            step, above = phi.matrix(phi_at[k], r, n), Lambda.matrix(Q_at[p], r, r)
            W, Y = work.matrix(0, r, n), d_phi.matrix(d_phi_at[k], r, n)
            P = P_plus.matrix(Q_at[k], n, n)
            for i in rows_of(r):
                combine(n, W.part(i * n), above.part(i * r), step, r)
                for j in span(n):  # P⁺ is symmetric, so its rows are its columns
                    Y[i, j] = -dot(n, W.part(i * n), P.part(j * n))
            for a in span(m):
                for i in rows_of(r):
                    s = column_dot(n, step.part(i * n), gain, a)
                    for j in span(n):
                        own[a, j] = own[a, j] - s * Y[i, j]


def combine(n, out, x, A, r):
    """out = x* A, the rows of A combined."""
    if isinstance(n, int) and isinstance(r, int):  # in registers
        sums = [0.0] * n
        for l in range(r):
            weight = x[l]
            sums = [s + weight * A[l, j] for j, s in enumerate(sums)]
        for j, s in enumerate(sums):
            out[j] = s
        return
    for j in loop(n):
        out[j] = 0.0
    for l in loop(r):
        for j in loop(n):
            out[j] = out[j] + x[l] * A[l, j]


def dot(n, x, y):
    """x* y."""
    if isinstance(n, int):
        total = 0.0
        for l in range(n):
            total = total + x[l] * y[l]
        return total
    s = local(0.0)
    for l in loop(n):
        s += x[l] * y[l]
    return s


def column_dot(n, x, A, a):
    """x* times column a of A."""
    if isinstance(n, int):
        total = 0.0
        for j in range(n):
            total = total + x[j] * A[j, a]
        return total
    s = local(0.0)
    for j in loop(n):
        s += x[j] * A[j, a]
    return s


def rows_of(n):
    """A loop over rows, written out where they are few."""
    return span(n) if isinstance(n, int) and n <= _FEW else loop(n)


def work_size(n):
    """Numbers that :func:`score_of_maps` works in, with at most n states to a node."""
    return n * n


@sweep(tags=1)
def inverse_blocks(tags, parent, state, output, phi, phi_at, H_at, Q_at, R_at, seen, L, G, Lambda, out, work):
    """Fill C(k) = D⁻¹ + G*Λ⁺G = D⁻¹ + K*Λ(p)K, K = φ G, for every node; D⁻¹ of what is seen. 4n²m flops a node.

    ``tags`` are the sizes that all nodes share, or None; ``work`` holds :func:`inverse_work` numbers.
    """
    for k in loop(parent.size):
        n, m = size(tags[0], state[k + 1] - state[k]), size(tags[1], output[k + 1] - output[k])
        block, factor = out.matrix(R_at[k], m, m), L.matrix(R_at[k], m, m)
        for b in span(m):
            row = work.part(0)
            for a in span(m):
                row[a] = choice((a == b) & seen[output[k] + b], 1.0, 0.0)
            solve(factor, row, m)
            for a in span(m):
                block[a, b] = row[a]
        p = parent[k]
        for _ in when((p >= 0) & (m > 0)):
            r = size(tags[0], state[p + 1] - state[p])
            step, above = phi.matrix(phi_at[k], r, n), Lambda.matrix(Q_at[p], r, r)
            gain, K, V = G.matrix(H_at[k], n, m), work.matrix(0, m, r), work.part(m * r)
            for a in span(m):
                for i in span(r):
                    K[a, i] = column_dot(n, step.part(i * n), gain, a)
            for a in span(m):
                for i in span(r):
                    V[i] = dot(r, above.part(i * r), K.part(a * r))
                for b in span(m):
                    block[b, a] = block[b, a] + dot(r, K.part(b * r), V)


def solve(L, x, m):
    """x ← (L L*)⁻¹ x in place."""
    for i in loop(m):
        s = local(x[i])
        for j in loop(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]
    for i in down(m):
        s = local(x[i])
        for j in loop(m, i + 1):
            s -= L[j, i] * x[j]
        x[i] = s / L[i, i]


def inverse_work(n, m):
    """Numbers that :func:`inverse_blocks` works in, with at most n states and m outputs to a node."""
    return n * m + n + m


@sweep
def add_outer(tags, heights, widths, at, size_of, rows, scale, left, left_at, right, right_at, share, base, out):
    """Put β b(k) + c x(k) y*(k) into the blocks of every node and row; x and y lie at their places in their rows.

    ``heights`` and ``widths`` are the sizes of the blocks, which lie at ``at`` in rows of ``size_of`` numbers; ``tags``
    are the sizes where all nodes share them. ``base`` is the same for all rows, β is ``share``; None stands for what is
    there already.
    """
    left_size, right_size = left.size // rows, right.size // rows
    for b in loop(rows):
        for k in loop(heights.size):
            for _ in when((heights[k] > 0) & (widths[k] > 0)):
                h, w = size(tags[0], heights[k]), size(tags[1], widths[k])
                block = out.matrix(b * size_of + at[k], h, w)
                before = block if base is None else base.matrix(at[k], h, w)
                x, y = left.part(b * left_size + left_at[k]), right.part(b * right_size + right_at[k])
                for i in rows_of(h):
                    c = scale * x[i]
                    for j in span(w):
                        block[i, j] = (before[i, j] if base is None else share * before[i, j]) + c * y[j]
