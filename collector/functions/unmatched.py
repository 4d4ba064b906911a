"""Names in the settings `functions` of which no call was ever seen.

A function is called by its own name, so a module in front of it, or a slip of the pen,
makes a setting that does nothing: that must not pass in silence.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any, Final

from collector.functions.contract import WHOLE_STEP
from collector.functions.kinds import ALL, names
from collector.sources.contract import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.config.sections import FunctionsConfig
    from collector.core.warn_once import Troubles

    Note = Callable[[SourceInfo, str, str, str], None]
    """Says that something is recorded, or why it is not."""

_LISTS: Final = ("default", "device", "host", "history", "modules")
_MAX_NAMED: Final = 10


def tell_missing(functions: FunctionsConfig, troubles: Troubles) -> None:
    """Say at once which names lead into a module that has no such thing."""
    for name in _named(functions):
        found = _missing(name)
        if found is not None:
            troubles.tell(
                f"function {name}",
                "'%s' in functions: the module %s has no '%s'. Correct the name; a"
                " function is called by its own, without its module.",
                name,
                *found,
            )


def tell_unmatched(
    functions: FunctionsConfig, seen: Iterable[str], note: Note, troubles: Troubles
) -> None:
    """Say at the end which names no call had; `seen`: those that calls had."""
    called = [name for name in seen if name != WHOLE_STEP]
    for name in _named(functions):
        if any(names((name,), function) for function in called):
            continue
        own = name.rpartition(".")[2]
        near = difflib.get_close_matches(own, called, n=1, cutoff=0.6)
        remedy = f"Did you mean '{near[0]}'? " if near else ""
        remedy += "Decorate the function with collector.profiled, or use a span with"
        remedy += " memory=True; calls inside of compiled code are not seen."
        if called:
            remedy += f" Called were: {', '.join(called[:_MAX_NAMED])}."
        reason = f"no call of a function '{name}' was seen, which functions names"
        note(SourceInfo(name=f"function {name}", cost=""), "absent", reason, remedy)
        troubles.tell(f"function {name} unseen", "%s. %s", reason, remedy)


def _named(functions: FunctionsConfig) -> list[str]:
    if not functions.enabled:
        return []
    every = [name for held in _LISTS for name in getattr(functions, held)]
    return [name for name in dict.fromkeys(every) if name not in (ALL, WHOLE_STEP)]


def _missing(name: str) -> tuple[str, str] | None:
    """The imported module that a dotted name begins with, and what it does not have."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is None:
            continue
        at: Any = module
        for part in parts[length:]:
            at = getattr(at, part, None)
            if at is None:
                return module.__name__, ".".join(parts[length:])
        return None
    return None
