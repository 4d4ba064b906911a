"""One file per route: index, readers and analysis in, a dataclass of `api` out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_FUNCTIONS: Final = {"stragglers": "stragglers_view"}


def view_of(name: str) -> Callable[..., Any]:
    """What makes the answer of a route: the function that is called like its module.

    Imported when it is first asked for: what stands between a start and its first
    picture is all that a start pays for.
    """
    module = import_module(f"tb_plugin.views.{name}")
    found: Callable[..., Any] = getattr(module, _FUNCTIONS.get(name, name))
    return found
