"""Fitting an outward tree by its score: the rate of Brownian motion has a closed form."""

import numpy as np

import kfdyn as kf


def test_the_fitted_rate_is_that_of_the_contrasts():
    tree = kf.Phylogeny.from_newick("(((A:1,B:1):0.5,(C:1.2,D:0.7):0.4):0.3,(E:1,F:1.1):0.9);")
    y = tree.traits(dict(zip("ABCDEF", [1.0, 1.4, 0.3, 0.8, -0.5, -1.2])))
    fit = kf.fit(lambda theta: tree.brownian(np.exp(theta[0])), [0.0], y)
    contrasts = 5  # six tips, one of them for the flat root
    assert fit.converged
    assert np.isclose(np.exp(fit.params[0]), tree.brownian().smooth(y).quadratic / contrasts, rtol=1e-6)
    assert np.isclose(fit.stderr[0], np.sqrt(2.0 / contrasts), rtol=1e-4)
