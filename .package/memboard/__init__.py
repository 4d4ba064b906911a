"""MemBoard by its own name: `import memboard as mb`. All of it is the package `collector`.

    import memboard as mb
    with mb.record("runs/exp1", model=model, optimizer=optimizer) as rec:
        for batch in loader:
            ...
            rec.step()

The wheel installs this folder as `memboard`, beside `collector` and `tb_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import memboard as mb

if TYPE_CHECKING:
    from memboard.collector import *  # noqa: F403  # at run time each name is loaded when used

try:
    __all__ = list(collector.__all__)
except AttributeError:  # some other `collector` comes first
    from memboard.tb_plugin.command import hidden_by

    raise ImportError(
        hidden_by() or "MemBoard's package 'collector' is damaged"
    ) from None


def __getattr__(name: str) -> Any:
    return getattr(collector, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
