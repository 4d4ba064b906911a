"""The memory of modules through a whole step: where every byte is, and since when.

An own tracker, for FSDP2, DDP and plain modules. A dispatch mode sees every storage that
an operator returns, weak references see it go, and hooks see the modules: all of it goes
into a log of deltas and boundaries (`log.py`), at a cost that does not grow with the
number of modules. Who held what at which module's boundary is computed from the log
later, by the plugin.

    session.py      what is installed while a window is open, and taken off again
    dispatch.py     what operators return          resizing.py    storages resized in place
    ledger.py       living storages, their bytes and what they are for
    stack.py        active modules, forward and backward (backward.py: hooks on tensors)
    fsdp.py         FSDP2: its boundaries and what it allocates (fsdp_units.py: its state)
    parameters.py   everybody else's, and optimizer states
    capture.py      a window's part of the log, as a capture

The sizes are those of storages, rounded as CUDA's allocator does: what torch calls
active bytes, without its reserve, fragmentation, workspaces and NCCL's own buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.modules.info import INFO

if TYPE_CHECKING:
    from collector.config import RecordConfig
    from collector.functions.contract import Kind, Sink

__all__ = ["INFO", "open_kind"]


def open_kind(config: RecordConfig, sink: Sink) -> Kind:
    """Open the tracker; it does nothing before a model is attached and a call begins."""
    from collector.modules.kind import ModulesKind

    return ModulesKind(config.modules, sink)
