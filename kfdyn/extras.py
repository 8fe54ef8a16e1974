"""Import optional packages when first needed, and tell the cure where one is missing."""

from importlib import import_module
from typing import Any


def needed(package: str, extra: str, what: str) -> Any:
    """Import a package of an extra, or say which extra has it.

    Parameters
    ----------
    package : str
        Name of the package.
    extra : str
        The extra of kfdyn that installs it.
    what : str
        Who needs it, to begin the sentence with.

    Returns
    -------
    module

    Raises
    ------
    ModuleNotFoundError
        Where it is not installed.

    Examples
    --------
    >>> needed("math", "arithmetic", "a root").sqrt(4.0)
    2.0
    >>> needed("abacus_of_pearls", "abacus", "counting")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: counting needs abacus_of_pearls: pip install ".[abacus]" in the folder of kfdyn's sources
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        cure = f'pip install ".[{extra}]" in the folder of kfdyn\'s sources'
        raise ModuleNotFoundError(f"{what} needs {package}: {cure}", name=package) from None
