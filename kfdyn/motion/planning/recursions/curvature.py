"""Products of costates and derivatives of accelerations, compiled: too small for a call each."""

from kfdyn.sweeps import loop, sweep


@sweep(tags=0)
def accelerations_pulled(a_q, a_v, a_in, pulls, out, n, times, steps):
    """λ*[∂a/∂q, ∂a/∂v, ∂a/∂τ] (3n) of rows, of which ``times`` one after the other belong to the λ (n) of each step.

    The derivatives are (rows, n, n) each, all flat.
    """
    for k in loop(steps):
        pull = pulls.part(k * n)
        for t in loop(times):
            row = k * times + t
            for place, slopes in enumerate((a_q, a_v, a_in)):
                A, told = slopes.part(row * n * n), out.part((3 * row + place) * n)
                for j in loop(n):
                    told[j] = 0.0
                for i in loop(n):
                    for j in loop(n):
                        told[j] = told[j] + pull[i] * A[i * n + j]
