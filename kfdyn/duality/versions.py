"""Versions of the packages that a cross-check rests on."""

from __future__ import annotations


def versions() -> dict[str, str]:
    """Versions of the packages that a cross-check rests on, where they are installed.

    Examples
    --------
    >>> list(versions())[:2]
    ['kfdyn', 'python']
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from kfdyn import __version__

    found = {"kfdyn": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "filterpy", "pin", "mujoco"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
