"""Response about the kernels of a trace."""

from __future__ import annotations

from typing import Literal

from tb_plugin.api.base import Columns, F64Column, I32Column, RunSummary, U8Column
from tb_plugin.api.profile import ProfileChoice


class KernelsResponse(Columns, frozen=True):
    """Route `/kernels` (run, source, by, sort, text, top): the table of kernels."""

    run: RunSummary
    choice: ProfileChoice
    by: Literal["name", "properties"]
    name: tuple[str, ...]
    operator: tuple[str, ...]
    """That launched it; empty where unknown, or where `by` is name; so are the next."""
    grid: tuple[str, ...]
    block: tuple[str, ...]
    registers: I32Column
    """Per thread; -1: not known."""
    shared_memory_bytes: F64Column
    num_calls: F64Column
    total_ms: F64Column
    min_us: F64Column
    mean_us: F64Column
    max_us: F64Column
    blocks_per_sm: F64Column
    """Mean, weighted by time; NaN: not said."""
    occupancy: F64Column
    """Est. achieved; 0 to 1."""
    uses_tensor_cores: U8Column
    is_communication: U8Column
    num_rows: int
    total_all_ms: float
    tensor_core_ms: float
    has_kernels: bool
