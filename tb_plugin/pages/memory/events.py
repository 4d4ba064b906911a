"""The routes of the allocator's events, and of one allocation: all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, get_args

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.collector.format.snapshots.tags import annotation_data, is_tag
from memboard.tb_plugin.analysis.allocator.listing.events import block_of, event_page
from memboard.tb_plugin.analysis.allocator.live import (
    block_name,
    siblings,
    version_of,
)
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import EVIDENCE
from memboard.tb_plugin.api.memory.blocks import AllocationBlockResponse
from memboard.tb_plugin.api.memory.segments import (
    AllocatorAction,
    AllocatorEventsResponse,
)
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Moment, Whole
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.event_table import event_table
from memboard.tb_plugin.facts.histories.opening import (
    DeviceNumber,
    HistoryQuery,
    MomentQuery,
)
from memboard.tb_plugin.server.views.history import of_history

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory

DEFAULT_COUNT: Final = 200
MAX_COUNT: Final = 2_000

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
    moment = device.num_events - 1 if query.moment is None else query.moment
    count = min(query.count or DEFAULT_COUNT, MAX_COUNT)
    page = event_page(device.replay, query.actions, query.e0 or 0, count, moment)
    return AllocatorEventsResponse(
        device=device.number,
        e0=page.first,
        num_events=device.num_events,
        row_of_moment=page.row_of_moment,
        table=event_table(device, page),
    )


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
    block_bytes, rounded = block_of(device.replay, life)
    segment_address, segment_bytes = _segment(device, life)
    stack = int(lives.stack[life])
    own_name, annotations = _annotations(device, life)
    return AllocationBlockResponse(
        device=device.number,
        life=life,
        name=block_name(lives.addr[life], version_of(lives, life)),
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
