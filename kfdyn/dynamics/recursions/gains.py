"""Gains of a linear feedback, one for each error or all of a matrix."""

from kfdyn.sweeps.control_flow import if_else, loop, loop_vars


def add_gains(size, dense, gains, error, rate, out):
    """out += Kp error + Kd rate; gains (2, size), or (2, size, size) if dense."""
    for full in if_else(dense != 0):
        for i in loop(size):
            total = loop_vars(out[i])
            if full:
                for j in loop(size):
                    pull = gains[i * size + j] * error[j] + gains[(size + i) * size + j] * rate[j]
                    total.set(total.get() + pull)
            else:
                total.set(total.get() + (gains[i] * error[i] + gains[size + i] * rate[i]))
            out[i] = total.get()
