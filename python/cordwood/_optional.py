"""Imports optional packages, which users install as extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHY_LEN_MAX = 200
"""If a package fails to import, the error quotes at most this many characters of the message."""


def imported(name: str, need: str, extra: str, *, without: str = "") -> Any:
    """Imports a module from a package that an extra installs.

    Args:
        name: The name of the module.
        need: Why the module is needed. The message starts with this text.
        extra: The name of the extra.
        without: The features that work without the package, as text that starts with a semicolon.

    Raises:
        ModuleNotFoundError: The package is not installed.
        ImportError: The package is installed but cannot be imported.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        text = f"{need} the package {package}: pip install 'cordwood[{extra}]'{without} ({error})"
        raise ModuleNotFoundError(text, name=error.name) from error
    except Exception as error:
        # Importing a package may raise any exception, for example because of an incompatible numpy. The exception's
        # message may span many lines.
        from textwrap import shorten

        why = shorten(str(error), _WHY_LEN_MAX, placeholder=" ...")
        text = f"{need} the package {package}, which is installed, but cannot be imported{without}"
        raise ImportError(f"{text} ({type(error).__name__}: {why})", name=package) from error
