"""MemBoard: see what filled your GPUs, on every rank, after the crash too.

    import memboard as mb
    with mb.record("runs/exp1", model=model, optimizer=optimizer) as rec:
        for batch in loader:
            ...
            rec.step()

`memboard.collector` records inside training, `memboard.tb_plugin` reads in TensorBoard and
on the command line, `memboard.integrations` has callbacks for trainers. The recording part
is this module's: names are loaded when first used (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memboard import collector

if TYPE_CHECKING:
    from memboard.collector import *  # noqa: F403  # at run time each name is loaded when used

__all__ = list(collector.__all__)


def __getattr__(name: str) -> Any:
    return getattr(collector, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
