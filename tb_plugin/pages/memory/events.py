"""The routes of the allocator's events, and of one allocation: all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, get_args

import numpy as np

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.snapshots.tags import annotation_data, is_tag
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS, OOM, SNAPSHOT
from memboard.tb_plugin.analysis.allocator.live import siblings, versions
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import EVIDENCE
from memboard.tb_plugin.api.blocks import AllocationBlockResponse
from memboard.tb_plugin.api.segments import AllocatorAction, AllocatorEventsResponse
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Moment, Whole
from memboard.tb_plugin.contract.wire import f64, i32, u8
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import (
    DeviceNumber,
    HistoryQuery,
    MomentQuery,
    of_history,
)
from memboard.tb_plugin.pages.memory.blocks import US_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory

DEFAULT_COUNT: Final = 200
MAX_COUNT: Final = 2_000

WORDS: Final = (*ACTIONS, "unknown")
_WITHOUT_ADDRESS: Final = (OOM, SNAPSHOT)
_MAX_TEXT: Final = 1000
_MAX_ANNOTATIONS: Final = 20


class Actions(tuple[str, ...]):
    """Some actions of the allocator; of none at all every one is meant."""

    __slots__ = ()

    EXPECTED: ClassVar = "some of " + ", ".join(get_args(AllocatorAction))

    @classmethod
    def parse(cls, text: str) -> Actions:
        """Names with commas between them.

        Raises:
            ValueError: one of them is no action.
        """
        actions = cls(filter(None, text.split(",")))
        if not set(actions) <= set(get_args(AllocatorAction)):
            raise ValueError(f"not {cls.EXPECTED}")
        return actions


class EventsQuery(HistoryQuery, frozen=True):
    """Events of a device: `count` rows from row `e0`, and around a moment."""

    device: DeviceNumber | None = None
    moment: Moment | None = None
    e0: Whole | None = None
    count: Whole | None = None
    actions: Actions = Actions()


@of_history("allocator_events", EventsQuery)
def allocator_events(
    history: OpenHistory, query: EventsQuery
) -> AllocatorEventsResponse:
    """Events of a device, one after the other.

    Raises:
        NotFoundError: the history has no such device.
    """
    device = history.device(query.device)
    events, num = device.replay.device.events, device.num_events
    count = min(query.count or DEFAULT_COUNT, MAX_COUNT)
    moment = num - 1 if query.moment is None else query.moment
    if query.actions:
        matching = _rows_of(events.action, query.actions)
        num_rows, last = (
            len(matching),
            int(np.searchsorted(matching, moment, "right")) - 1,
        )
    else:
        matching, num_rows, last = None, num, min(moment, num - 1)
    first = max(0, min(query.e0 or 0, num_rows - 1))
    rows = np.arange(first, min(first + count, num_rows))
    if matching is not None:
        rows = matching[rows]
    action = events.action[rows].astype(np.int64)
    life = _lives(device, rows)
    version = np.full(len(rows), NOTHING)
    version[life >= 0] = versions(device.lives, life[life >= 0])
    is_oom = action == OOM
    free = events.device_free[rows]
    no_address = np.isin(action, _WITHOUT_ADDRESS)
    address = events.addr[rows].astype(np.int64).view(np.uint64).astype(np.float64)
    times = np.full(len(rows), np.nan)
    if events.time_us is not None:
        times = events.time_us[rows] / US_PER_MS
    return AllocatorEventsResponse(
        device=device.number,
        e0=first,
        num_events=num,
        num_rows=num_rows,
        row_of_moment=last,
        event=i32(rows),
        actions=WORDS,
        action=u8(np.where(action < 0, len(ACTIONS), action)),
        address=f64(np.where(no_address, np.nan, address)),
        version=i32(version),
        bytes=f64(events.size[rows]),
        stream=i32(events.stream[rows]),
        stack=i32(events.stack[rows]),
        life=i32(life),
        active=f64(device.active.at(rows)),
        reserved=f64(device.reserved.at(rows)),
        device_free=f64(np.where(is_oom & (free >= 0), free, np.nan)),
        time_ms=f64(times),
    )


def _rows_of(action: Ints, names: Sequence[str]) -> Ints:
    """Events of these actions; those that have no name here are `unknown`."""
    codes = [ACTIONS.index(word) if word in ACTIONS else NOTHING for word in names]
    return np.flatnonzero(np.isin(action, codes))


def _lives(device: OpenDevice, rows: Ints) -> Ints:
    """By event: the allocation that it begins or ends; NOTHING: none."""
    lives = device.lives
    lives_of_rows = np.full(len(rows), NOTHING, np.int64)
    if not len(rows):
        return lives_of_rows
    for column in (lives.gone, lives.freed, lives.born):
        near = np.flatnonzero((column >= rows[0]) & (column <= rows[-1]))
        place = np.searchsorted(rows, column[near])
        there = rows[place] == column[near]
        lives_of_rows[place[there]] = near[there]
    return lives_of_rows


class BlockQuery(MomentQuery, frozen=True):
    """One block of a device, at a moment of its life."""

    life: Whole | None = None


@of_history("allocation_block", BlockQuery)
def allocation_block(
    history: OpenHistory, query: BlockQuery
) -> AllocationBlockResponse:
    """One allocation's card.

    Raises:
        NotFoundError: the history has no such device or allocation.
    """
    device = history.device(query.device)
    lives, num = device.lives, device.num_events
    life = query.life
    if life is None or life >= len(lives):
        raise NotFoundError(
            "There is no such allocation.",
            "no life" if life is None else f"life={life}",
            f"It has {len(lives):,} on {device.title}; they count from 0.",
        )
    born, freed, gone = (int(of[life]) for of in (lives.born, lives.freed, lives.gone))
    moment = moment_of(device, query.moment, born)
    others = siblings(lives, life, moment)
    itself = born <= moment < gone
    attribution = device.attribution
    category = FOLDS_INTO[CATEGORIES[int(attribution.category[life])]]
    block_bytes, rounded = _block(device, life)
    segment_address, segment_bytes = _segment(device, life)
    stack = int(lives.stack[life])
    version = int(versions(lives, np.array([life]))[0])
    own_name, annotations = _annotations(device, life)
    return AllocationBlockResponse(
        device=device.number,
        life=life,
        name=f"b{_hex(lives.addr[life])[2:]}_{version}",
        address=_hex(lives.addr[life]),
        size_bytes=float(lives.size[life]),
        is_rounded=rounded,
        block_bytes=float(block_bytes),
        born=None if born < 0 else moment_words(device, born),
        freed=moment_words(device, freed) if freed < num else None,
        gone=moment_words(device, gone) if 0 <= gone < num else None,
        stream=_or_none(device.replay.stream[life]),
        pool=_or_none(device.replay.pool[life]),
        stack=None if stack < 0 else stack,
        category=category,  # type: ignore[arg-type]  # one of these words
        evidence=EVIDENCE[int(attribution.evidence[life])],
        tensor=_tensor(history, int(attribution.tensor[life])) or own_name,
        annotations=annotations,
        tag=_text(history, device.replay.device.events.tag, born),
        compile_context=_text(
            history, device.replay.device.events.compile_context, born
        ),
        num_siblings=others.num - itself,
        sibling_bytes=float(others.num_bytes - itself * int(lives.size[life])),
        num_ever=others.num_ever,
        segment_address=segment_address,
        segment_bytes=segment_bytes,
    )


def _hex(address: int) -> str:
    return f"0x{int(address) & (2**64 - 1):x}"


def _block(device: OpenDevice, life: int) -> tuple[int, bool]:
    """Bytes of its block, and whether only those are known."""
    block = device.replay.block_sizes(np.array([life]))
    is_rounded = bool(block.is_recorded[0]) and int(device.lives.born[life]) < 0
    return int(block.size[0]), is_rounded


def _segment(device: OpenDevice, life: int) -> tuple[str, float | None]:
    """The segment it was born in: where it begins, and how large it is."""
    span = int(device.replay.span[life])
    if span < 0:
        return "", None
    spans = device.replay.spans
    return _hex(spans.address[span]), float(spans.size[span])


def _tensor(history: OpenHistory, row: int) -> str:
    tensors = history.snapshot.tensors
    if tensors is None or row == NOTHING:
        return ""
    return tensors.name[row][:_MAX_TEXT]


def _annotations(device: OpenDevice, life: int) -> tuple[str, tuple[str, ...]]:
    """The name in an annotation of ours, and the texts of the program's own."""
    told, texts = device.replay.annotations, device.history.snapshot.texts
    annotations = [texts[row] for row in told.text[told.life == life].tolist()]
    names = [
        own[1] for text in annotations if (own := annotation_data(text)) is not None
    ]
    others = [text[:_MAX_TEXT] for text in annotations if not is_tag(text)]
    return "".join(names[-1:])[:_MAX_TEXT], tuple(others[:_MAX_ANNOTATIONS])


def _text(history: OpenHistory, rows: Ints, event: int) -> str:
    row = int(rows[event]) if event >= 0 else NOTHING
    return history.snapshot.texts[row][:_MAX_TEXT] if row >= 0 else ""


def _or_none(row: int) -> int | None:
    return None if row < 0 else int(row)
