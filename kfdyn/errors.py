"""The package's exceptions: every one is a ``ValueError`` that names the culprit and the cure."""


class KfdynError(ValueError):
    """Base class of all errors raised on bad input."""


class TreeError(KfdynError):
    """A parent list that is no forest: a loop, an index out of range, two parents."""


class ShapeError(KfdynError):
    """An array whose shape does not fit the model it is used with."""


class ModelError(KfdynError):
    """A model entry that is not what it must be: not finite, not symmetric, not positive semi-definite."""


class SingularError(KfdynError):
    """An innovations covariance D(k) that is not positive definite.

    Attributes
    ----------
    node, output : int or None
        Where it happened, for callers that know a better name for the node.
    """

    def __init__(self, message: str, node: int | None = None, output: int | None = None) -> None:
        super().__init__(message)
        self.node = node
        self.output = output
