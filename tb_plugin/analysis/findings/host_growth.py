"""The finding about host memory that grows: of training processes, or of their workers.

All processes of a host share what is left of its memory, and of the control group's limit.
The forecast counts that alone, and what all ranks of the host take together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import agreeing, capitalized, counted
from memboard.tb_plugin.analysis.findings.growth import GROWTH_RULE, SOON
from memboard.tb_plugin.analysis.findings.text import num_bytes, of_rank, size_text
from memboard.tb_plugin.analysis.series.growth import RankGrowth
from memboard.tb_plugin.api.findings import Advice, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.api.findings import Evidence


PINNED_SHARE: Final = 0.3
"""Of what a process grew by: pinned memory that grew by as much is named as its source."""


@dataclass(frozen=True, slots=True)
class HostRoom:
    """What is left of a host's memory, and who takes it; bytes."""

    host: str
    left: float
    """Of the machine's memory, or of the control group's limit: the smaller rest."""
    limit: float | None
    """The control group's limit, where its rest is the smaller one."""
    bytes_per_step: float
    """What all growing ranks of the host and their workers take together."""
    num_ranks: int

    @property
    def steps_left(self) -> float:
        return max(0.0, self.left) / self.bytes_per_step

    @property
    def text(self) -> str:
        """What is left, and of what."""
        of = "the host's memory"
        if self.limit is not None:
            of = f"the control group's {size_text(self.limit)}"
        if self.left <= 0:
            return f"nothing is left of {of}"
        return f"the {size_text(self.left)} that is left of {of}"


@dataclass(frozen=True, slots=True)
class GrowingProcess(RankGrowth):
    """The process of one rank, or its dataloader workers."""

    room: HostRoom | None
    """None: what is left was not recorded."""
    num_workers: int | None = None
    """Dataloader workers, the most at a time; None: not recorded."""
    pinned_rise: float | None = None
    """What pinned memory grew by for sure; None: not recorded."""

    @property
    def is_soon(self) -> bool:
        """Whether it is worth a warning."""
        return self.room is None or self.room.steps_left <= SOON * self.num_steps


def growing_processes(
    processes: Sequence[GrowingProcess], *, workers: bool
) -> Finding | None:
    """Resident memory that grows: of those that do, the one whose host is full first."""
    if not processes:
        return None
    first = min(
        processes,
        key=lambda process: (
            process.room.steps_left if process.room is not None else float("inf"),
            -process.slope,
        ),
    )
    whose = f"The dataloader workers of rank {first.rank}"
    grows = f"{whose} grow" if workers else f"The process of rank {first.rank} grows"
    sentence = (
        f"{grows} {size_text(first.slope)} of host memory per step,"
        f" {size_text(first.rise)} over the last {counted(first.num_steps, 'step')}."
    )
    if len(processes) > 1:
        more = len(processes) - 1
        verb = "they grow" if workers else agreeing(more, "it grows", "they grow")
        sentence += f" On {counted(more, 'more rank')}, {verb} as well."
    short = f"{'Grow' if workers else 'Grows'} {size_text(first.slope)} per step"
    if first.room is not None:
        sentence += _forecast(first, first.room)
        full_step = first.last_step + round(first.room.steps_left)
        short += f"; the host's memory is used up at about step {full_step:,}"
    key = "growing_workers" if workers else "growing_host"
    advice = _of_workers(first) if workers else _of_process(first)
    return Finding(
        id=f"{key}-{first.rank}",
        key=key,
        severity="warning" if first.is_soon else "info",
        title="Dataloader workers grow" if workers else "Host memory grows",
        sentence=sentence,
        short=f"{short}.",
        rank=first.rank,
        cost=first.rise,
        evidence=tuple(_evidence(first)),
        advice=tuple(advice),
        place=of_rank("timeline", first.rank),
        rule=f"{GROWTH_RULE}, and by at least a tenth of its first value, beside a device"
        " a quarter (before step 100 it must double)",
    )


def _forecast(first: GrowingProcess, room: HostRoom) -> str:
    steps = round(room.steps_left)
    at_step = f"at about step {first.last_step + steps:,}"
    after = f"{counted(steps, 'step')} after the last recorded one"
    who = "At this pace" if room.left > 0 else "By now"
    if room.num_ranks > 1 or room.bytes_per_step > 1.01 * first.slope:
        who = (
            f"{counted(room.num_ranks, 'rank')} on {room.host or 'this host'} and"
            f" {agreeing(room.num_ranks, 'its', 'their')} workers together take"
            f" {size_text(room.bytes_per_step)} per step:"
            f" {'at this pace' if room.left > 0 else 'by now'}"
        )
        who = capitalized(who)
    if room.left <= 0:
        return f" {who} {room.text}."
    return f" {who} {room.text} will be used up {at_step}, {after}."


def _evidence(first: GrowingProcess) -> Iterator[Evidence]:
    scope = f"rank {first.rank}"
    yield num_bytes("growth", "growth per step", first.slope, scope)
    yield num_bytes("rise", "growth in these steps", first.rise, scope)
    yield num_bytes("peak", "peak", first.peak, scope, sure=False)
    if first.pinned_rise:
        label = "growth of pinned memory"
        yield num_bytes("pinned", label, first.pinned_rise, scope, sure=False)
    room = first.room
    if room is not None:
        of = f"host {room.host}" if room.host else "its host"
        yield num_bytes("left", "host memory left", room.left, of)
        label = "growth per step of all its ranks"
        yield num_bytes("host_growth", label, room.bytes_per_step, of)


_TRACE: Final = (
    "Compare two snapshots of tracemalloc taken some hundred steps apart: it names the"
    " lines of Python that allocated what was not freed. memray (memray run --native)"
    " also shows what libraries allocate."
)


def _of_process(first: GrowingProcess) -> Iterator[Advice]:
    pinned = first.pinned_rise
    if pinned is not None and pinned >= PINNED_SHARE * first.rise:
        yield Advice(
            "Pinned memory grows: reuse pinned buffers instead of calling pin_memory for"
            " each batch or checkpoint, and drop references to those no longer copied"
            " from. torch does not return freed pinned memory to the system.",
            pinned,
            "bytes",
            ("pinned",),
        )
    yield Advice(
        "Find the Python objects that live on: lists, dicts and caches that gain an entry"
        " per step or key, logged values and histories, CPU tensors with their graph,"
        f" saved exceptions. {_TRACE}",
        first.rise,
        "bytes",
        ("growth",),
    )
    if pinned is None:
        yield Advice(
            "If the program pins memory, compare torch.cuda.host_memory_stats() over some"
            " steps: pinned memory was not recorded."
        )
    if first.num_workers is None:
        yield Advice(
            "If dataloaders have workers (num_workers > 0), check whether those grow"
            " too: they were not recorded."
        )


def _of_workers(first: GrowingProcess) -> Iterator[Advice]:
    yield Advice(
        "Store samples in arrays or files: each worker that reads lists of Python"
        " objects copies their memory bit by bit. Without persistent_workers it is freed"
        " after each epoch.",
        first.rise,
        "bytes",
        ("growth",),
    )
    yield Advice(
        "If the dataset keeps what it loads (a cache, open files), bound it. To see the"
        " lines, run with num_workers=0 under tracemalloc, or with memray run"
        " --follow-fork."
    )
