"""The packages of the extras."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHY_LEN_MAX = 200
"""As much of the message of a package is repeated."""


def imported(name: str, need: str, extra: str, *, without: str = "") -> Any:
    """Imports a module of a package that one of the extras installs.

    Args:
        name: The name of the module.
        need: Who needs it: the start of the message.
        extra: The extra.
        without: What works without it, after a semicolon.

    Raises:
        ModuleNotFoundError: It is not installed.
        ImportError: It is installed, but cannot be imported.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        text = f"{need} the package {package}: pip install 'cordwood[{extra}]'{without} ({error})"
        raise ModuleNotFoundError(text, name=error.name) from error
    except Exception as error:
        # Whatever its own code raises, as with another release of numpy. Its message may have many lines.
        from textwrap import shorten

        why = shorten(str(error), _WHY_LEN_MAX, placeholder=" ...")
        text = f"{need} the package {package}, which is installed, but cannot be imported{without}"
        raise ImportError(f"{text} ({type(error).__name__}: {why})", name=package) from error
