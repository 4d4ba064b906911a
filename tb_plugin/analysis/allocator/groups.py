"""Groups by which allocations are coloured and stacked: one for each of them.

Groups are of the whole history of a device, so that they stay the same wherever one
looks. Of many (lines, modules, streams, pools) the `MAX_NAMED` that hold most when most
is active have groups of their own, then those that held most bytes for most events; the
others share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.allocator.live import live_rows
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.frames import NO_STACK, stack_label
from memboard.tb_plugin.api.memory.blocks import NamedGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks
    from memboard.tb_plugin.api.memory.modules import CategoryGroup


FOLDED: Final = cast(
    "tuple[CategoryGroup, ...]", tuple(dict.fromkeys(FOLDS_INTO.values()))
)
"""Categories that have a colour, in the order in which they lie on each other."""

MAX_NAMED: Final = 11

SITE_SHARE: Final = 0.05
"""Of what is active at the peak: a line of no category that holds as much has a name."""

OTHERS: Final = "others"
OUTSIDE: Final = "outside any forward"

AGE_STEPS_US: Final = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
AGE_LABELS: Final = (
    "under 1 ms",
    "1 to 10 ms",
    "10 to 100 ms",
    "0.1 to 1 s",
    "1 to 10 s",
    "10 to 100 s",
    "over 100 s",
)
EVENT_STEPS: Final = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
EVENT_LABELS: Final = (
    "under 10 events",
    "10 to 100 events",
    "100 to 1,000 events",
    "1,000 to 10,000 events",
    "10,000 to 100,000 events",
    "0.1 to 1 million events",
    "over 1 million events",
)
FROM_BEFORE: Final = "from before the recording"


@dataclass(frozen=True, slots=True)
class Groups:
    """A group for each allocation."""

    of_life: npt.NDArray[np.uint16]
    groups: tuple[NamedGroup, ...]


def by_category(category: Ints) -> Groups:
    """By the category that gives the colour; `category`: index in `CATEGORIES`."""
    fold = np.array(
        [FOLDED.index(FOLDS_INTO[category]) for category in CATEGORIES], np.uint16
    )
    groups = tuple(NamedGroup(category, category, category) for category in FOLDED)
    return Groups(fold[category], groups)


def with_site(
    categories: Groups, lives: Lifetimes, stacks: Stacks, peak: int
) -> Groups:
    """Categories, and apart from what is unknown the line that holds most of it.

    The group of that line lies on top; there is none where it holds too little.
    """
    unknown = FOLDED.index("unknown")
    rows = live_rows(lives, peak)
    own = rows[(categories.of_life[rows] == unknown) & (lives.stack[rows] >= 0)]
    frames = stacks.user_frame[lives.stack[own]]
    is_known = frames != NOTHING
    if not is_known.any():
        return categories
    bytes_by_frame = np.bincount(
        frames[is_known], lives.size[own[is_known]].astype(np.float64)
    )
    frame = int(bytes_by_frame.argmax())
    if bytes_by_frame[frame] < SITE_SHARE * float(lives.size[rows].sum()):
        return categories
    of_stack = np.append(stacks.user_frame == frame, False)  # the last: without a stack
    is_site = (categories.of_life == unknown) & of_stack[lives.stack]
    stack = int(of_stack.argmax())
    site = NamedGroup(
        _line_key(stacks, stack), stack_label(stacks, stack), "unknown", stack=stack
    )
    of_life = np.where(is_site, len(categories.groups), categories.of_life)
    return Groups(of_life.astype(np.uint16), (*categories.groups, site))


def one_group(num_lives: int) -> Groups:
    return Groups(
        np.zeros(num_lives, np.uint16), (NamedGroup("all", "all allocations"),)
    )


def by_stack(lives: Lifetimes, stacks: Stacks, peak: int, num_events: int) -> Groups:
    """By the line that stands for the stack."""
    line: dict[str, int] = {}
    of_stack = np.empty(len(stacks) + 1, np.int64)
    example: list[int] = []
    for stack in range(len(stacks)):
        key = _line_key(stacks, stack)
        number = of_stack[stack] = line.setdefault(key, len(line))
        if number == len(example):
            example.append(stack)
    names = [
        NamedGroup(key, stack_label(stacks, stack), stack=stack)
        for key, stack in zip(line, example, strict=True)
    ]
    of_stack[-1] = line.setdefault(NO_STACK, len(line))
    if len(names) < len(line):
        names.append(NamedGroup(NO_STACK, NO_STACK))
    return _largest(lives, of_stack[lives.stack], names, peak, num_events)


def by_module(
    lives: Lifetimes, of_stack: Ints, labels: Sequence[str], peak: int, num_events: int
) -> Groups:
    """By the module whose forward allocated; `of_stack`: row of `labels`, or NOTHING."""
    names = [NamedGroup(label, label) for label in labels]
    names.append(NamedGroup("outside", OUTSIDE))
    rows = np.append(of_stack, NOTHING)  # the last: where no stack looks
    module = rows[lives.stack]
    module = np.where(module < 0, len(labels), module)
    return _largest(lives, module, names, peak, num_events)


def by_row(
    lives: Lifetimes, row: Ints, labels: Sequence[str], peak: int, num_events: int
) -> Groups:
    """By stream or pool; `row`: of `labels`, or NOTHING where it was not recorded."""
    names = [NamedGroup(str(number), label) for number, label in enumerate(labels)]
    names.append(NamedGroup("unknown", "not recorded"))
    rows_or_none = np.where(row < 0, len(labels), row)
    return _largest(lives, rows_or_none, names, peak, num_events)


def by_age(lives: Lifetimes, time_us: Ints | None, num_events: int) -> Groups:
    """By how long each lived, or has lived at the end of the history.

    `time_us` of each event, ascending; None: counted in events.
    """
    born, gone = lives.born, np.minimum(lives.gone, max(num_events - 1, 0))
    if time_us is not None and num_events:
        age = time_us[gone] - time_us[np.maximum(born, 0)]
        steps, labels = np.array(AGE_STEPS_US), AGE_LABELS
    else:
        age = gone - np.maximum(born, 0)
        steps, labels = np.array(EVENT_STEPS), EVENT_LABELS
    # The oldest lie lowest: they are what a picture stands on.
    place = len(labels) - np.searchsorted(steps, age, "right")
    of_life = np.where(born < 0, 0, place).astype(np.uint16)
    groups = [NamedGroup("before", FROM_BEFORE)]
    groups += [NamedGroup(label, label) for label in reversed(labels)]
    return Groups(of_life, tuple(groups))


def _line_key(stacks: Stacks, stack: int) -> str:
    frame = int(stacks.user_frame[stack])
    if frame == NOTHING:
        return stack_label(stacks, stack)
    return f"{stacks.filename[frame]}:{int(stacks.line[frame])} {stacks.name[frame]}"


def _largest(
    lives: Lifetimes,
    number: Ints,
    names: Sequence[NamedGroup],
    peak: int,
    num_events: int,
) -> Groups:
    """Groups of the largest, and one of all others, where there are more."""
    weight = np.zeros((2, len(names)))
    rows = live_rows(lives, peak)
    np.add.at(weight[0], number[rows], lives.size[rows].astype(np.float64))
    events = np.minimum(lives.gone, num_events) - np.maximum(lives.born, 0)
    np.add.at(weight[1], number, lives.size.astype(np.float64) * events)
    occurs = np.flatnonzero(np.bincount(number, minlength=len(names)))
    order = occurs[np.lexsort((occurs, -weight[1][occurs], -weight[0][occurs]))]
    named = order[:MAX_NAMED]
    groups = [names[row] for row in named.tolist()]
    place = np.full(len(names), len(groups), np.uint16)
    place[named] = np.arange(len(named))
    if len(order) > len(named):
        groups.append(NamedGroup(OTHERS, counted(len(order) - len(named), "other")))
    return Groups(place[number], tuple(groups))
