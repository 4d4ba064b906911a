"""Code that a setting names: dotted names, the callables they lead to, and back."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config import RecordConfig

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")

UNCHANGED: Final = "collector.config_code.unchanged"
"""The dotted name of `unchanged`."""


def unchanged(value: Any) -> Any:
    """Return what is given: a pack or unpack function that does nothing."""
    return value


def is_dotted(text: str) -> bool:
    """Whether `text` is written like `package.module.function`."""
    return _DOTTED.fullmatch(text) is not None


def code_name(code: Any) -> str:
    """The dotted name of a callable; where it has none, what it is, in `<>`.

    A lambda or an inner function has `<lambda>` or `<locals>` in its name: it can be
    recorded so, but not imported again.
    """
    if isinstance(code, str):
        return code
    owner = getattr(code, "__module__", None)
    name = getattr(code, "__qualname__", None)
    if isinstance(owner, str) and isinstance(name, str):
        return f"{owner}.{name}"
    return f"<{type(code).__module__}.{type(code).__qualname__}>"


def can_be_imported(name: str) -> bool:
    """Whether another process can import what `code_name` gave."""
    return is_dotted(name) and not name.startswith("__main__.")


def resolve(code: str | Callable[..., Any], path: str) -> Callable[..., Any]:
    """The callable that a setting names, its module imported where it must be.

    Args:
        code: a dotted name, or the callable itself.
        path: the setting's key, for the error.

    Raises:
        ConfigError: the module does not import, the name is not in it, or it cannot be
            called; names the key and the remedy.
    """
    if callable(code):
        return code
    found = _imported(code, path)
    if callable(found):
        return found  # type: ignore[no-any-return]  # nothing is known of it but this
    raise ConfigError(
        f"'{path}' names {code}, which is a {type(found).__name__} and cannot be"
        " called. Name a function."
    )


def check_code(config: RecordConfig) -> None:
    """Import what the sections that are switched on name.

    Raises:
        ConfigError: as `resolve`.
    """
    from collector.config import settings

    for path, setting in settings().items():
        section = path.partition(".")[0]
        if setting.takes_code and getattr(getattr(config, section), "enabled", True):
            value = config.leaf(path)
            for code in value if setting.many else (value,):
                if code is not None:
                    resolve(code, path)


def _imported(name: str, path: str) -> Any:
    """What a dotted name leads to: modules as far as there are, then attributes."""
    parts = name.split(".")
    found: Any = _module(parts[0], name, path)
    for end in range(1, len(parts)):
        owner, part = ".".join(parts[:end]), parts[end]
        if isinstance(found, ModuleType) and not hasattr(found, part):
            _module(f"{owner}.{part}", name, path)
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(
                f"'{path}' names {name}, but {owner} has no '{part}'."
                f"{_like(part, found)} Correct the name, or remove it."
            ) from None
    return found


def _module(module: str, name: str, path: str) -> Any:
    """Import one module; None where a package that is there has none of this name."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        if missing and "." in module:
            return None  # its absence is told as that of an attribute, with its likes
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ConfigError(
            f"'{path}' names {name}, which cannot be imported ({reason}). Install its"
            " package or put its folder on PYTHONPATH, or correct the name."
        ) from error


def _like(word: str, owner: Any) -> str:
    import difflib

    near = difflib.get_close_matches(word, dir(owner), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
