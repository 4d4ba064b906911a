"""What replaying a device came to: all that its first picture needs and takes long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.allocator.lifetimes import Levels, Lifetimes
    from tb_plugin.analysis.allocator.reserved import Reserved
    from tb_plugin.analysis.categories.attribution import Attribution
    from tb_plugin.analysis.snapshots.marks import Marks

VERSION: Final = 1
"""To be raised when the same snapshot would come to anything else than before."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Of one device; made once, and kept beside the snapshot's tables."""

    lives: Lifetimes
    active: Levels
    allocated: Levels
    reserved: Reserved
    marks: Marks
    oddities: Mapping[str, int]
    attribution: Attribution | None
    """None: nobody asked for it."""
