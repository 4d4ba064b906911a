"""Findings about steps in words: one sentence each, and what to try.

Durations are in the unit that fits, to three significant digits, as on the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.pages.verdict.words import share_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tb_plugin.analysis.ranks.stragglers import Straggler
    from tb_plugin.analysis.series.step_findings import Growing, Periodic, Waiting

PART_WORDS: Final[dict[str, str]] = {
    "dataloader": "the wait for the dataloader",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "the optimizer",
    "zero_grad": "zero_grad",
    "checkpoint": "the checkpoint",
    "eval": "the evaluation",
    "communication": "communication",
    "other": "what no part explains",
}
_MOST_NAMED: Final = 6

_STRAGGLER_ADVICE: Final[dict[str, str]] = {
    "dataloader": "Compare that host's disk, CPU load and number of dataloader workers"
    " with the others' (see Host); check that its shard of the data is no larger.",
    "forward": "Check that rank's batches (longest sequences?) and its GPU's clock and"
    " temperature (see Host).",
    "backward": "Check that rank's batches (longest sequences?) and its GPU's clock and"
    " temperature (see Host).",
    "optimizer": "Check whether that rank holds more parameters than the others.",
    "checkpoint": "Write checkpoints from all ranks (sharded), or asynchronously.",
    "other": "Record a torch profile of that rank: what takes its time is outside the"
    " parts that are timed.",
}
_PERIODIC_ADVICE: Final[dict[str, str]] = {
    "checkpoint": "Save less often, or asynchronously"
    " (torch.distributed.checkpoint.async_save).",
    "eval": "Evaluate less often, or on fewer batches.",
    "dataloader": "Prefetch more (prefetch_factor), keep workers alive"
    " (persistent_workers=True), and look for a shard that is opened at that pace.",
    "other": "Look for what runs at that pace outside the timed parts: logging,"
    " garbage collection (gc.freeze, gc.disable), a callback.",
}


def duration_words(seconds: float) -> str:
    """A duration in the unit that fits: `38.0 ms`, `1.24 s`."""
    size = abs(seconds)
    if size == 0:
        return "0 s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if size * factor >= 1 or unit == "µs":
            break
    value = size * factor
    digits = max(0, 3 - len(str(int(value))))
    sign = "-" if seconds < 0 else ""
    return f"{sign}{value:.{digits}f} {unit}"


def straggler_words(one: Straggler) -> str:
    """`rank 12: dataloader +38.0 ms`; what it has more of than the middle rank."""
    if one.part:
        return f"rank {one.rank}: {one.part} +{duration_words(one.part_excess_seconds)}"
    if one.excess_seconds > 0:
        return f"rank {one.rank}: step +{duration_words(one.excess_seconds)}"
    return f"rank {one.rank}: as fast as the others"


def waiting_finding(
    found: Waiting, ranks: Sequence[int], step_seconds: float
) -> api.StepFinding:
    """Most ranks wait for their data."""
    worst = ranks[found.worst_row]
    middle = "on the rank in the middle" if len(ranks) > 1 else f"on rank {worst}"
    return api.StepFinding(
        key="dataloader_bound",
        sentence=f"Steps wait for the dataloader: {share_words(found.share)} of the"
        f" step's time, {duration_words(found.seconds)} of"
        f" {duration_words(step_seconds)}, {middle}.",
        advice=(
            (
                "Give the DataLoader more workers (num_workers), let them run ahead"
                " (prefetch_factor), and keep them between epochs"
                " (persistent_workers=True)."
            ),
            "Move work out of the dataset: decode and tokenize once, before training.",
        ),
        rank=worst,
        step=None,
        seconds_per_step=found.seconds,
        evidence=(
            _percent("waiting", "Waits for the dataloader", found.share, decisive=True),
            _seconds("waits", "Per step", found.seconds, middle),
            _percent(
                "worst",
                "On the rank that waits most",
                found.worst_share,
                f"rank {worst}",
            ),
        ),
    )


def straggler_finding(
    late: Sequence[Straggler],
    hosts: Mapping[int, str],
    step_seconds: float,
    num_ranks: int,
) -> api.StepFinding:
    """Some ranks, the worst one first, are slower than all others."""
    worst = late[0]
    cost = _cost(worst)
    who = _who(late, hosts)
    part = worst.part or "other"
    where = f", in {PART_WORDS[part]}" if worst.part else ""
    beyond = f"{duration_words(cost)} per step ({share_words(cost / step_seconds)})"
    held = (
        " Their steps take equally long: the others wait for it."
        if worst.by_part
        else ""
    )
    verb = "is" if len(late) == 1 else "are"
    at_most = "" if len(late) == 1 else "up to "
    return api.StepFinding(
        key="straggler",
        sentence=f"{who} {verb} slower than the other {num_ranks - len(late):,}:"
        f" {at_most}{beyond} more than the rank in the middle{where}.{held}",
        advice=(_STRAGGLER_ADVICE.get(part, _STRAGGLER_ADVICE["other"]),),
        rank=worst.rank,
        step=None,
        seconds_per_step=cost,
        evidence=(
            _seconds(
                "excess",
                f"Longer in {PART_WORDS[part]}" if worst.by_part else "Longer step",
                cost,
                f"rank {worst.rank}, median over steps",
                decisive=True,
            ),
            _percent(
                "slowest",
                "Slowest of all",
                worst.slowest_share,
                f"rank {worst.rank}, share of steps",
            ),
            _seconds("step", "Step of the rank in the middle", step_seconds, "median"),
        ),
    )


def periodic_finding(found: Periodic, rank: int) -> api.StepFinding:
    """Every n-th step is slow."""
    more = found.seconds - found.usual_seconds
    why = ""
    if found.part:
        why = (
            f"; what is longer then is {PART_WORDS[found.part]}"
            f" (+{duration_words(found.part_seconds)})"
        )
    return api.StepFinding(
        key="slow_every_n",
        sentence=f"Every {found.every:,}th step is slow: {duration_words(found.seconds)}"
        f" instead of {duration_words(found.usual_seconds)}{why}.",
        advice=(_PERIODIC_ADVICE.get(found.part, _PERIODIC_ADVICE["other"]),),
        rank=rank,
        step=found.first,
        seconds_per_step=more / found.every,
        evidence=(
            api.VerdictEvidence(
                key="slow_steps",
                label="Slow steps at that distance",
                value=float(found.num_slow),
                unit="count",
                scope=f"rank {rank}",
                caveat="",
                decisive=True,
            ),
            _seconds("slow", "Slow step", found.seconds, "median"),
            _seconds("usual", "Usual step", found.usual_seconds, "median"),
        ),
    )


def growing_finding(found: Growing) -> api.StepFinding:
    """Steps take ever longer."""
    more = found.last_seconds - found.first_seconds
    why = f", mostly in {PART_WORDS[found.part]}" if found.part else ""
    return api.StepFinding(
        key="growing",
        sentence=f"Steps take ever longer: {duration_words(found.first_seconds)} at the"
        f" start, {duration_words(found.last_seconds)} at the end of"
        f" {found.num_steps:,} steps{why}.",
        advice=(
            (
                "Look for what grows with the steps: a list that keeps tensors (see the"
                " growth of memory on the Overview), logs, a cache without a bound."
            ),
            (
                "Check the GPU's clock and temperature (see Host): a device that gets hot"
                " gets slow."
            ),
        ),
        rank=None,
        step=None,
        seconds_per_step=more,
        evidence=(
            _seconds(
                "first", "At the start", found.first_seconds, "behind the warm-up"
            ),
            _seconds("last", "At the end", found.last_seconds, "the last quarter"),
            _seconds(
                "growth",
                "Growth per 1,000 steps",
                1000 * found.seconds_per_step,
                "median over the ranks",
                decisive=True,
            ),
        ),
    )


def _who(late: Sequence[Straggler], hosts: Mapping[int, str]) -> str:
    """`Rank 12 on node3`, `3 ranks on node3 (12, 13, 14)`."""
    names = {hosts.get(one.rank, "") for one in late}
    on = f" on {min(names)}" if len(names) == 1 and min(names) else ""
    if len(late) == 1:
        return f"Rank {late[0].rank}{on}"
    named = ", ".join(str(one.rank) for one in late[:_MOST_NAMED])
    more = ", ..." if len(late) > _MOST_NAMED else ""
    return f"{len(late):,} ranks{on} ({named}{more})"


def _cost(one: Straggler) -> float:
    return one.part_excess_seconds if one.by_part else one.excess_seconds


def _seconds(
    key: str, label: str, value: float, scope: str, *, decisive: bool = False
) -> api.VerdictEvidence:
    return api.VerdictEvidence(key, label, value, "seconds", scope, "", decisive)


def _percent(
    key: str,
    label: str,
    share: float,
    scope: str = "the rank in the middle",
    *,
    decisive: bool = False,
) -> api.VerdictEvidence:
    return api.VerdictEvidence(key, label, 100 * share, "percent", scope, "", decisive)
