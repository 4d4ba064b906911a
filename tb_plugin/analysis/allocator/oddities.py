"""What of a device's history contradicts itself, found by replaying it.

It is drawn as it comes out all the same; here it is counted, in words that go on "The
file holds 3 ...". What could not even be a number of its kind was set right before, and
is counted in `Snapshot.oddities`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tb_plugin.analysis.arrays import distinct
from tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tb_plugin.analysis.allocator.replay import Replay
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot


def oddities_of(replay: Replay) -> Mapping[str, int]:
    """By what it is, in words: how often; only what there is."""
    found = {**dict(_of_end(replay.device)), **dict(_of_lives(replay))}
    found["frees of segments, or parts of them, that were not there"] = (
        replay.spans.num_lost
    )
    found["moments at which more was given back to the device than was reserved"] = (
        replay.reserved.num_below_zero
    )
    found["moments at which more was freed than lived"] = _num(
        replay.active.after < 0
    ) + (replay.active.first < 0)
    return {what: count for what, count in found.items() if count}


def _of_end(device: DeviceSnapshot) -> Iterator[tuple[str, int]]:
    """Of the segments and blocks at the end, which are in order of address."""
    segments, blocks = device.segments, device.blocks
    ends = segments.address + segments.total_size
    yield "segments that overlap", _num(ends[:-1] > segments.address[1:])
    begins, behind = blocks.address, blocks.address + blocks.size
    same = blocks.segment[1:] == blocks.segment[:-1]
    yield "blocks that overlap", _num(same & (behind[:-1] > begins[1:]))
    outside = begins < segments.address[blocks.segment]
    outside |= behind > ends[blocks.segment]
    yield "blocks that reach out of their segment", _num(outside)


def _of_lives(replay: Replay) -> Iterator[tuple[str, int]]:
    """Of allocations that no event ended."""
    lives, blocks = replay.lives, replay.device.blocks
    addr = lives.addr[lives.gone == replay.num_events]
    places = distinct(addr)
    yield "allocations at an address that was still in use", len(addr) - len(places)
    if len(blocks):
        shown = blocks.address[blocks.state != INACTIVE]
        what = "allocations that nothing freed, and that no block at the end is of"
        yield what, _num(~np.isin(places, shown))


def _num(wrong: Ints) -> int:
    return int(np.count_nonzero(wrong))
