"""Response about the kernels of a trace."""

from __future__ import annotations

from typing import Literal

from memboard.tb_plugin.api.time.profile import ProfileTable


class KernelsResponse(ProfileTable, frozen=True):
    """Route `/kernels` (run, source, by, columns, sort, text, top): the table of kernels."""

    by: Literal["name", "properties"]
