"""The route of stacks: every stack of a history, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.api.allocations import StacksResponse
from tb_plugin.contract.wire import i32, u8
from tb_plugin.pages.histories.asked import HistoryQuery, of_history

if TYPE_CHECKING:
    from tb_plugin.jobs.open_history import OpenHistory

MAX_STACKS: Final = 200_000
MAX_FRAMES: Final = 4_000_000
_MAX_TEXT: Final = 1000


@of_history("stacks", HistoryQuery)
def stacks(history: OpenHistory, _query: HistoryQuery) -> StacksResponse:
    """All stacks, as far as they are not too many."""
    found = history.snapshot.stacks
    within = int(np.searchsorted(found.start, MAX_FRAMES, "right")) - 1
    num_stacks = max(0, min(len(found), MAX_STACKS, within))
    num_frames = int(found.start[num_stacks]) if len(found.start) else 0
    place: dict[str, int] = {}
    names = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in found.name]
    files = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in found.filename]
    modules = history.modules
    labels = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in modules.labels]
    of_label = np.array([*labels, -1], np.int64)  # the last: where none looks
    return StacksResponse(
        strings=tuple(place),
        name=i32(names),
        filename=i32(files),
        line=i32(found.line),
        kind=u8(history.frame_kinds),
        start=i32(found.start[: num_stacks + 1]),
        frame=i32(found.frame[:num_frames]),
        user_frame=i32(history.user_frames[:num_stacks]),
        module=i32(of_label[modules.of_stack[:num_stacks]]),
        num_stacks=len(found),
    )
