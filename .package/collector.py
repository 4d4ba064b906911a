"""MemBoard under the name that its first users imported: all of it is `memboard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import memboard

if TYPE_CHECKING:
    from memboard import *  # noqa: F403  # at run time each name is loaded when used

__all__ = list(memboard.__all__)


def __getattr__(name: str) -> Any:
    return getattr(memboard, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
