"""Numbers of findings: in sentences, and as the evidence that a finding rests on.

Numbers are in the unit that fits, to three significant digits, as on the page.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import SHOWN_UNIT, fixed, in_unit
from memboard.tb_plugin.api.findings import Evidence, PageName, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.findings import Quantity

STEPS: Final = "the profiled steps"
"""The scope of most evidence of traces."""

_MAX_NAMED: Final = 6
_LABEL: Final = re.compile(r"(.+):(\d+) (\S.*)")
"""A line as `analysis.categories.frames` writes it."""


def size_text(num_bytes: float) -> str:
    """A size in the unit that fits, or in the one chosen: `78.3 GiB`, `512 B`."""
    shown = SHOWN_UNIT.get()
    if shown != "auto":
        return in_unit(num_bytes, shown)
    size = abs(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 999.5 or unit == "TiB":
            break
        size /= 1024
    digits = 0 if unit == "B" else max(0, 3 - len(str(int(size))))
    # Halves go up, as on the page.
    size = math.copysign(size + 1e-9, num_bytes)
    return f"{fixed(size, digits, group=False)} {unit}"


def share_text(share: float) -> str:
    """A share in per cent: `94.8 %`; never 100 where something is missing."""
    pct = 100 * share
    if 99.95 <= pct < 100:
        return "99.9 %"
    return f"{fixed(pct, 0 if pct >= 99.95 else 1, group=False)} %"


def duration_text(seconds: float) -> str:
    """A duration in the unit that fits: `38.0 ms`, `1.24 s`."""
    size = abs(seconds)
    if size == 0:
        return "0 s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if size * factor >= 1 or unit == "µs":
            break
    value = size * factor
    digits = max(0, 3 - len(str(int(value))))
    value = math.copysign(value, seconds)
    return f"{fixed(value, digits, group=False)} {unit}"


def quantity_text(value: float, unit: Quantity) -> str:
    """A number with its unit."""
    if unit == "bytes":
        return size_text(value)
    if unit == "seconds":
        return duration_text(value)
    return f"{fixed(value, 1, group=False)} %" if unit == "percent" else fixed(value)


def joined(texts: Sequence[str]) -> str:
    # `a, b and c`
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def some_of(ranks: Sequence[int]) -> str:
    """`1, 2 and 3`; of many the first, and how many more there are, which is never one."""
    most = _MAX_NAMED if len(ranks) > _MAX_NAMED + 1 else len(ranks)
    named = [str(rank) for rank in ranks[:most]]
    left = len(ranks) - len(named)
    return joined([*named, *([f"{left:,} more"] if left else [])])


def let_go_text(beginning: str, *, trains: bool = True) -> str:
    """What to do about memory that is retained; `trains`: tensors may have a graph."""
    copies = (
        "detached copies on the host, not tensors with their graph"
        if trains
        else "copies on the host"
    )
    return (
        f"{beginning}: where results are collected there, store numbers (.item()) or {copies}; bound"
        " or clear every list or cache that gains an entry per batch or key."
    )


def pools_text(beginning: str) -> str:
    """The same of memory in private pools, which no list or cache need hold."""
    return (
        f"{beginning} in private memory pools: capture CUDA graphs for fewer shapes (pad inputs"
        " to a few lengths) and delete those that are no longer replayed; of a"
        " torch.cuda.MemPool, drop the tensors that were made in it."
    )


def lines_text(labels: Sequence[str]) -> str:
    """Lines in short: those of one function together, in the order they come."""
    together: dict[tuple[str, str], list[str]] = {}
    for label in labels:
        match = _LABEL.fullmatch(label)
        key = (match[1], match[3]) if match else (label, "")
        together.setdefault(key, []).append(match[2] if match else "")
    places = []
    for (file, function), lines in together.items():
        if not function:
            places.append(file)
        elif len(lines) == 1:
            places.append(f"{file}:{lines[0]} {function}")
        else:
            places.append(f"{function} in {file}, lines {joined(lines)}")
    return "; ".join(places) if len(places) != len(labels) else joined(places)


def at_lines(labels: Sequence[str]) -> str:
    """` at model.py:128 forward`; empty where no line is known."""
    return f" at {lines_text(labels)}" if labels else ""


PART_TEXT: Final[dict[str, str]] = {
    "dataloader": "the wait for the dataloader",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "the optimizer",
    "zero_grad": "zero_grad",
    "checkpoint": "the checkpoint",
    "eval": "the evaluation",
    "communication": "communication",
    "other": "untimed work",
}
"""Parts of a step as they are called in a sentence."""


def percent(
    key: str,
    label: str,
    share: float,
    scope: str = STEPS,
    caveat: str = "",
    *,
    sure: bool = True,
) -> Evidence:
    """A share; `sure`: the finding was made by it."""
    return Evidence(key, label, 100 * float(share), "percent", scope, caveat, sure)


def seconds(
    key: str, label: str, value: float, scope: str, *, sure: bool = False
) -> Evidence:
    return Evidence(key, label, float(value), "seconds", scope, decisive=sure)


def num_bytes(
    key: str, label: str, value: float, scope: str, *, sure: bool = True
) -> Evidence:
    return Evidence(key, label, float(value), "bytes", scope, decisive=sure)


def count(
    key: str, label: str, value: int, scope: str = "the trace", *, sure: bool = True
) -> Evidence:
    """How many there are; `sure`: the finding was made by it."""
    return Evidence(key, label, float(value), "count", scope, decisive=sure)


def of_rank(page: PageName, rank: int) -> Place:
    """Where a rank is shown."""
    return Place(page, f"Show rank {rank}", rank=rank)
