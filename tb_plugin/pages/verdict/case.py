"""One error with all that is known of it, as its words, evidence and advice take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.oom.error import OomFacts
    from tb_plugin.analysis.oom.holders import Holder
    from tb_plugin.analysis.oom.holdings import Holding
    from tb_plugin.analysis.oom.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Case:
    """What is known."""

    facts: OomFacts
    verdict: Verdict
    device: int | None
    replayed: bool
    """The state at the error was replayed from a history; else only a report says it."""
    is_out_of_memory: bool = True
    """False: the process ended otherwise, and nothing has to be explained."""
    parsed: bool = False
    """Numbers are from the exception's text, and rounded."""
    expandable: bool | None = None
    """Whether segments are expandable."""
    holders: tuple[Holder, ...] = ()
    live_bytes: int | None = None
    """What the holders are shares of."""
    by_category: Mapping[str, int] = field(default_factory=dict)
    """Live bytes by category as pages colour it; empty where it is not known."""
    stack: tuple[str, ...] = ()
    """Of the request, innermost frame first."""
    asked_at: str = ""
    """The line that asked for it."""
    asked_in: str = ""
    """`forward`, `backward`, `optimizer`: where the request came from; empty: none."""
    world_size: int = 1
    holdings: tuple[Holding, ...] = ()
    """Kinds of things that hold much, the largest first."""
    trains: bool = True
    """False: nothing in the history is of a training, so no advice is of one."""
    makes_model: bool = False
    """The request came of making or loading a model."""
    capacity_is_given: bool = False
    """Nothing recorded the device's size: the user named it."""

    @property
    def scope(self) -> str:
        """Of what and when the numbers are."""
        where = "the device" if self.device is None else f"device {self.device}"
        return f"{where}, at the {'error' if self.is_out_of_memory else 'end'}"
