"""The route of one allocation: everything that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin.analysis.allocator.live import siblings
from tb_plugin.analysis.allocator.versions import versions
from tb_plugin.analysis.categories.attribution import EVIDENCE
from tb_plugin.analysis.snapshots.snapshot import INACTIVE, NOTHING
from tb_plugin.api.allocations import AllocationBlockResponse
from tb_plugin.pages.histories.asked import MomentQuery, of_history
from tb_plugin.pages.histories.history import moment_of, moment_words
from tb_plugin.server.errors import NotFoundError
from tb_plugin.server.parameters import Whole

if TYPE_CHECKING:
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.jobs.open_history import OpenDevice, OpenHistory

_MAX_TEXT: Final = 1000


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
            f"Device {device.number} has {len(lives):,}; they count from 0.",
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
    return AllocationBlockResponse(
        device=device.number,
        life=life,
        name=f"b{_hex(lives.addr[life])[2:]}_{version}",
        address=_hex(lives.addr[life]),
        size_bytes=float(lives.size[life]),
        is_rounded=rounded,
        block_bytes=float(block_bytes),
        born=None if born < 0 else moment_words(device, born),
        freed=moment_words(device, freed) if 0 <= freed < num else None,
        gone=moment_words(device, gone) if 0 <= gone < num else None,
        stream=_or_none(device.replay.stream[life]),
        pool=_or_none(device.replay.pool[life]),
        stack=None if stack < 0 else stack,
        category=category,  # type: ignore[arg-type]  # one of these words
        evidence=EVIDENCE[int(attribution.evidence[life])],
        tensor=_tensor(history, int(attribution.tensor[life])),
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
    lives, blocks = device.lives, device.replay.device.blocks
    size = int(lives.size[life])
    if int(lives.gone[life]) == device.num_events:
        at = np.flatnonzero(
            (blocks.address == lives.addr[life]) & (blocks.state != INACTIVE)
        )
        if len(at):
            return int(blocks.size[at[0]]), int(lives.born[life]) < 0
    return device.replay.segments.rounding.size(size), False


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


def _text(history: OpenHistory, rows: Ints, event: int) -> str:
    row = int(rows[event]) if event >= 0 else NOTHING
    return history.snapshot.texts[row][:_MAX_TEXT] if row >= 0 else ""


def _or_none(row: int) -> int | None:
    return None if row < 0 else int(row)
