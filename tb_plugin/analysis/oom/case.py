"""One error with all that is known of it: what rules judge, and words are made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tb_plugin.analysis.oom.error import filled
from tb_plugin.api.findings import Advice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.oom.error import OomFacts
    from tb_plugin.analysis.oom.holders import Holder
    from tb_plugin.analysis.oom.holdings import Holding


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is known."""

    facts: OomFacts
    device: int | None = None
    is_out_of_memory: bool = True
    """False: the process ended otherwise, and nothing has to be explained."""
    replayed: bool = False
    """The state at the error was replayed from a history; else only a report says it."""
    parsed: bool = False
    """Numbers were read from the exception's text, and are rounded."""
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
    """The line of the user's own that asked for it."""
    asked_in: str = ""
    """`forward`, `backward`, `optimizer`: where the request came from; empty: none."""
    holdings: tuple[Holding, ...] = ()
    """Kinds of things that hold much, the largest first."""
    trains: bool = True
    """False: nothing in the history is of a training, so no advice is of one."""
    makes_model: bool = False
    """The request came of making or loading a model."""
    world_size: int = 1
    capacity_is_given: bool = False
    """Nothing recorded the device's size: the user named it."""

    @property
    def scope(self) -> str:
        """Of what and when the numbers are."""
        where = "the device" if self.device is None else f"device {self.device}"
        return f"{where}, at the {'error' if self.is_out_of_memory else 'end'}"

    @property
    def round_word(self) -> str:
        """What memory grew over: `step`, or `round` where nothing marks them as steps."""
        growth = self.facts.growth
        is_unmarked = growth is not None and growth.by in ("stacks", "memory")
        return "round" if is_unmarked else "step"

    def with_report(self, report: Case) -> Case:
        """A replayed state, with what only the report of the same error knows."""
        return replace(
            self,
            facts=filled(self.facts, report.facts),
            is_out_of_memory=report.is_out_of_memory,
            expandable=self.expandable
            if report.expandable is None
            else report.expandable,
            stack=self.stack or report.stack,
            asked_at=self.asked_at or report.asked_at,
            asked_in=self.asked_in or report.asked_in,
        )


Cause: TypeAlias = Literal[
    "really_full",
    "fragmented",
    "growth",
    "single_giant",
    "imbalance",
    "non_torch",
    "fitting_block_free",
    "private_pools",
    "pending_free",
    "process_limit",
    "unsure",
]

NAMES: Final[dict[Cause, str]] = {
    "really_full": "really full",
    "fragmented": "fragmentation",
    "growth": "memory retained across steps",
    "single_giant": "a single giant allocation",
    "imbalance": "imbalance between ranks",
    "non_torch": "memory outside torch",
    "fitting_block_free": "a fitting block was free",
    "private_pools": "free memory in private pools",
    "pending_free": "freed memory waiting for another stream",
    "process_limit": "a limit on this process",
    "unsure": "cause not known",
}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause, or what is too small to be it."""

    cause: Cause
    num_bytes: int
    """What it took: the heaviest major one leads."""
    is_major: bool
    why: str
    """The end of the sentence, where it leads."""
    rule: str
    decisive: tuple[str, ...] = ()
    """Keys of the evidence it is told by."""
    advice: tuple[Advice, ...] = ()
    """What to try where it leads."""
    beside: tuple[Advice, ...] | None = None
    """The same where another cause leads; None: no other."""
    holds: bool = True
    """Without it the request would have been served."""


MAJOR: Final = 0.1
"""Of the room: what is smaller is made up for by the next longer batch."""
MAJOR_FREE: Final = 0.05
"""The same of free blocks, which are known exactly: allocators rarely do better."""
MINOR: Final = 0.02
"""Of the room, from which on what made no difference is named all the same."""


def weighed(taken: int, missing: int, room: int) -> tuple[bool, bool] | None:
    """Of memory that something took: whether it is major, and whether it holds.

    None: it is too little to be named.
    """
    if taken >= missing:
        return taken >= MAJOR * room, True
    return (False, False) if taken >= MINOR * room else None


def advice_of(
    text: str, num_bytes: float | None, *because: str, setting: str = ""
) -> Advice:
    """Something to try that saves so many bytes at most; None: that cannot be told."""
    gain = None if num_bytes is None else float(num_bytes)
    return Advice(text, gain, "bytes", because, setting)
