"""Filter and score of a series whose transition is constant, sparse and known beforehand, with one output.

What the engine does for any tree, with what such a series spares: no model is packed for every set of variances, F is
a list of its entries that are not 0 (24 of 169 for a trend with twelve seasons), and the score is summed on the way.
"""

from kfdyn.sweeps import choice, down, either, local, loop, root, sweep, when


@sweep
def filter_chain(n, rows, at, F, H, h_step, Q, P0, noise, y, start, seen, e, G, D, work):
    """Filter rows of y; fills e = D^-½ε, the gains and D; returns the step whose D is not positive, or −1.

    ``at`` holds row and column of each entry of F; ``h_step`` is 0 where all steps share H. ``start`` (rows, n) are the
    means of step 0; ``work`` is for :func:`filter_work` numbers.
    """
    steps, entries = seen.size, F.size
    P, M, z, u = work.matrix(0, n, n), work.matrix(n * n, n, n), work.part(2 * n * n), work.part(2 * n * n + rows * n)
    turned = work.part(2 * n * n + rows * n + n)
    failed = local(-1)
    for i in loop(n * n):
        P.part(0)[i] = P0[i]
    for i in loop(rows * n):
        z[i] = start[i]
    for k in loop(steps, until=failed):
        h, g = H.part(k * h_step), G.part(k * n)
        for there in either(seen[k]):
            if there:
                d = local(noise)
                for i in loop(n):
                    u[i] = dot(n, P.part(i * n), h)
                    d += h[i] * u[i]
                failed.set(choice(d > 0.0, -1, k))
                for i in loop(n):
                    g[i] = u[i] / d
                    for j in loop(i + 1):
                        s = P[i, j] - g[i] * u[j]
                        P[i, j] = s
                        P[j, i] = s
                D[k] = d
                scale = 1.0 / root(d)
                for v in loop(rows):
                    mean = z.part(v * n)
                    eps = y[v * steps + k] - dot(n, h, mean)
                    e[v * steps + k] = eps * scale
                    for i in loop(n):
                        mean[i] = mean[i] + g[i] * eps
            else:
                D[k] = 1.0
                for i in loop(n):
                    g[i] = 0.0
                for v in loop(rows):
                    e[v * steps + k] = 0.0
        for _ in when(k + 1 < steps):
            for i in loop(n * n):
                M.part(0)[i] = 0.0
            for l in loop(entries):  # M = F P
                i, j, value = at[2 * l], at[2 * l + 1], F[l]
                for b in loop(n):
                    M[i, b] = M[i, b] + value * P[j, b]
            for a in loop(n):  # P = M F* + Q
                for b in loop(n):
                    u[b] = Q[a * n + b]
                for l in loop(entries):
                    i, j = at[2 * l], at[2 * l + 1]
                    u[i] = u[i] + F[l] * M[a, j]
                for b in loop(a + 1):
                    P[a, b] = u[b]
                    P[b, a] = u[b]
            for v in loop(rows):
                mean = z.part(v * n)
                for i in loop(n):
                    turned[i] = 0.0
                for l in loop(entries):
                    i, j = at[2 * l], at[2 * l + 1]
                    turned[i] = turned[i] + F[l] * mean[j]
                for i in loop(n):
                    mean[i] = turned[i]
    return failed


def filter_work(n, rows):
    """Numbers that :func:`filter_chain` works in."""
    return 2 * n * n + rows * n + 2 * n


@sweep
def score_chain(n, rows, at, F, H, h_step, seen, e, G, D, squares, Lambdas, sums, work):
    """Smooth rows of e = D^-½ε and sum the score: Σλλ* and ΣΛ over steps 1 …, the same of step 0, Σa² and ΣC.

    ``squares`` and ``Lambdas`` hold two matrices each, ``sums`` two numbers, all 0 at first; ``work`` is for
    :func:`score_work` numbers.
    """
    steps, entries = seen.size, F.size
    Lambda, M = work.matrix(0, n, n), work.matrix(n * n, n, n)
    lam, w, turned = work.part(2 * n * n), work.part(2 * n * n + rows * n), work.part(2 * n * n + rows * n + n)
    for i in loop(n * n):
        Lambda.part(0)[i] = 0.0
    for i in loop(rows * n):
        lam[i] = 0.0
    for k in down(steps):
        h, g = H.part(k * h_step), G.part(k * n)
        for _ in when(seen[k]):
            precision = 1.0 / D[k]
            scale = root(precision)
            for v in loop(rows):
                own = lam.part(v * n)
                a = e[v * steps + k] * scale - dot(n, g, own)
                sums[0] = sums[0] + a * a
                for i in loop(n):
                    own[i] = own[i] + h[i] * a
            c = local(0.0)
            for i in loop(n):
                w[i] = dot(n, Lambda.part(i * n), g)
                c += g[i] * w[i]
            sums[1] = sums[1] + c + precision
            for i in loop(n):  # Λ = τ̄*Λ⁺τ̄ + H*D⁻¹H
                for j in loop(i + 1):
                    s = Lambda[i, j] - h[i] * w[j] - w[i] * h[j] + (c + precision) * h[i] * h[j]
                    Lambda[i, j] = s
                    Lambda[j, i] = s
        place = choice(k > 0, 0, n * n)
        square, total = squares.matrix(place, n, n), Lambdas.matrix(place, n, n)
        for i in loop(n):
            for j in loop(n):
                total[i, j] = total[i, j] + Lambda[i, j]
        for v in loop(rows):
            own = lam.part(v * n)
            for i in loop(n):
                for j in loop(n):
                    square[i, j] = square[i, j] + own[i] * own[j]
        for _ in when(k > 0):
            for i in loop(n * n):
                M.part(0)[i] = 0.0
            for a in loop(n):  # M = Λ F
                for l in loop(entries):
                    i, j = at[2 * l], at[2 * l + 1]
                    M[a, j] = M[a, j] + Lambda[a, i] * F[l]
            for i in loop(n * n):
                Lambda.part(0)[i] = 0.0
            for l in loop(entries):  # Λ⁺ = F* M
                i, j, value = at[2 * l], at[2 * l + 1], F[l]
                for b in loop(n):
                    Lambda[j, b] = Lambda[j, b] + value * M[i, b]
            for i in loop(n):
                for j in loop(i):
                    Lambda[j, i] = Lambda[i, j]
            for v in loop(rows):
                own = lam.part(v * n)
                for i in loop(n):
                    turned[i] = 0.0
                for l in loop(entries):
                    i, j = at[2 * l], at[2 * l + 1]
                    turned[j] = turned[j] + F[l] * own[i]
                for i in loop(n):
                    own[i] = turned[i]


def score_work(n, rows):
    """Numbers that :func:`score_chain` works in."""
    return 2 * n * n + rows * n + 2 * n


def dot(n, x, y):
    """x* y."""
    s = local(0.0)
    for i in loop(n):
        s += x[i] * y[i]
    return s
