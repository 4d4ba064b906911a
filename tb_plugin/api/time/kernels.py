"""Response about the kernels of a trace."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memboard.tb_plugin.api.base import RunSummary
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.time.profile import ProfileChoice


class KernelsResponse(Struct, frozen=True):
    """Route `/kernels` (run, source, by, sort, text, top): the table of kernels."""

    run: RunSummary
    choice: ProfileChoice
    by: Literal["name", "properties"]
    table: TableRows
    """Also how many rows there are, and how much of their time used tensor cores."""
