"""A snapshot written as a pickle while it is made, in little memory.

Unpickled it equals `snapshot_events.snapshot` with the same sharing of frames. The file
has the opcodes, the memo and the frames of 64 KiB that `pickle.dump` gives a snapshot
of torch's. Events are put together from ready-made pieces, at some microseconds each.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from tests.simulate.allocator.blocks import NO_SITE
from tests.simulate.history.history import ACTIONS, OOM
from tests.simulate.snapshots.events import (
    event_of,
    histories_of,
    note_snapshot,
)
from tests.simulate.snapshots.form import (
    Form,
    annotations_of,
    segments_of,
    settings_of,
    stream_pointer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.history.history import History
    from tests.simulate.history.sites import Frame, Sites

PROTOCOLS: Final = (4, 5)
"""torch uses the interpreter's default: 4 up to Python 3.13, then 5."""

_FRAME_BYTES: Final = 64 * 1024
_BATCH: Final = 1000
"""Items between a mark and its APPENDS or SETITEMS, as in the standard library."""


def write_snapshot(
    file: IO[bytes],
    allocators: Sequence[CachingAllocator],
    sites: Sites,
    form: Form | None = None,
    *,
    protocol: int = 4,
) -> None:
    """Write the snapshot of one allocator per device.

    As torch does, it then notes in each history that a snapshot was taken.

    Raises:
        ValueError: the protocol is neither 4 nor 5.
        OSError: from the file.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"pickle protocol {protocol}: a snapshot has 4 or 5")
    form = form or Form()
    out = _Writer(file, sites, protocol)
    out.begin(b"}")
    out.raw(b"(")
    out.value("segments")
    out.begin(b"]")
    segments = [
        segment
        for device, allocator in enumerate(allocators)
        for segment in segments_of(allocator, device, partial(_Shared, device))
    ]
    out.items(segments)
    out.value("device_traces")
    out.begin(b"]")
    out.raw(b"(" if len(allocators) > 1 else b"")
    for device, allocator in enumerate(allocators):
        out.begin(b"]")
        if allocator.history is not None:
            out.events(device, allocator.history, form)
    out.raw(b"e" if len(allocators) > 1 else b"a")
    if form.has_times:
        out.value("allocator_settings")
        out.value(settings_of(allocators[0].settings, form.torch))
        out.value("external_annotations")
        out.value(annotations_of(histories_of(allocators)))
    out.raw(b"u.")
    out.flush()
    note_snapshot(allocators)


class _Shared(NamedTuple):
    """Stands for the list of frames of a capture at a site."""

    device: int
    capture: int
    site: int


class _Writer:
    """Opcodes of one pickle, in frames."""

    def __init__(self, file: IO[bytes], sites: Sites, protocol: int) -> None:
        self._file = file
        self._sites = sites
        self._buffer: list[bytes] = []
        self._num_buffered = 0
        self._num_memoized = 0
        self._texts: dict[str, bytes] = {}
        self._frames: dict[Frame, bytes] = {}
        self._lists: dict[tuple[int, int], bytes] = {}
        """By device and capture: what fetches its list of frames."""
        self._last_list = ((-1, -1), b"")
        """The capture that an event had last, and what fetches its list."""
        self._bodies: dict[int, bytes] = {}
        """By site: a new list of its frames, all of which were written before."""
        file.write(b"\x80" + bytes([protocol]))

    def raw(self, data: bytes) -> None:
        """Append opcodes that memoize nothing."""
        self._buffer.append(data)
        self._num_buffered += len(data)
        if self._num_buffered >= _FRAME_BYTES:
            self.flush()

    def begin(self, empty: bytes) -> bytes:
        """Append an empty list or dict; returns what fetches it again."""
        self.raw(empty + b"\x94")
        return self._memoize()

    def flush(self) -> None:
        """Write a frame of what was appended."""
        self._file.write(b"\x95" + struct.pack("<Q", self._num_buffered))
        self._file.writelines(self._buffer)
        self._buffer.clear()
        self._num_buffered = 0

    def value(self, value: Any) -> None:
        """Append plain data; of equal texts, and of one capture's frames, one copy."""
        kind = type(value)
        if kind is str:
            self._text(value)
        elif kind is int:
            self.raw(_integer(value))
        elif kind is dict:
            self.begin(b"}")
            self.raw(b"(")
            for key, inner in value.items():
                self.value(key)
                self.value(inner)
            self.raw(b"u")
        elif kind is _Shared:
            self._list(value)
        elif kind is tuple:
            first, second = value
            self.raw(_integer(first) + _integer(second) + b"\x86\x94")
            self._memoize()
        elif kind is bool:
            self.raw(b"\x88" if value else b"\x89")
        elif kind is float:
            self.raw(b"G" + struct.pack(">d", value))
        else:
            self.begin(b"]")
            self.items(value)

    def items(self, values: Sequence[Any]) -> None:
        """Append items to the list that was begun last."""
        self._append_all(len(values), values, self.value)

    def events(self, device: int, history: History, form: Form) -> None:
        """Append the events of a history to the list that was begun last."""
        pieces = _Pieces(self, device, history, self._sites, form)
        self._append_all(len(history), history.rows(), partial(self._event, pieces))

    def _append_all(
        self, number: int, values: Iterable[Any], write: Callable[[Any], None]
    ) -> None:
        """Write items in batches; one alone needs no mark."""
        for place, value in enumerate(values):
            if number > 1 and place % _BATCH == 0:
                self.raw(b"e(" if place else b"(")
            write(value)
        if number:
            self.raw(b"e" if number > 1 else b"a")

    def _event(self, pieces: _Pieces, row: Sequence[int]) -> None:
        """An event from ready-made pieces; the first with an action or site is not."""
        action, address, size, stream, time_us, capture, site, pool = row
        framed = site != NO_SITE and pieces.with_frames[action]
        head = pieces.heads[action]
        tail = pieces.tails.get((site, pool))
        body = self._bodies.get(site) if framed else b""
        if head is None or tail is None or body is None:
            self.value(pieces.event(row, framed=framed))
            pieces.learn(row, framed=framed)
            return
        data = [head, _integer(address), pieces.size, _integer(size), pieces.stream]
        data.append(_integer(stream_pointer(stream)))
        if pieces.time:
            data += (pieces.time, _integer(time_us))
        data.append(tail)
        num_memoized = self._num_memoized + pieces.num_memoized
        if framed:
            key = (pieces.device, capture)
            known = self._known_list(key)
            if known is None:
                self._last_list = (key, _get(num_memoized))
                num_memoized += 1
                known = body
            data += (pieces.frames, known)
        data.append(b"u")
        self._num_memoized = num_memoized
        self.raw(b"".join(data))

    def text_of(self, text: str) -> bytes:
        """What fetches a text that was appended before."""
        return self._texts[text]

    def _memoize(self) -> bytes:
        self._num_memoized += 1
        return _get(self._num_memoized - 1)

    def _text(self, text: str) -> None:
        known = self._texts.get(text)
        if known is not None:
            self.raw(known)
            return
        self.raw(_plain_text(text) + b"\x94")
        self._texts[text] = self._memoize()

    def _list(self, shared: _Shared) -> None:
        # All that have no frames share one empty list.
        key = (-1, 0) if shared.site == NO_SITE else (shared.device, shared.capture)
        known = self._known_list(key)
        if known is not None:
            self.raw(known)
            return
        self._lists[key] = self.frames(shared.site)

    def frames(self, site: int) -> bytes:
        """Append a new list of the frames of a site; returns what fetches it."""
        known = self._bodies.get(site)
        if known is not None:
            self.raw(known)
            return self._memoize()
        place = self.begin(b"]")
        frames = self._sites[site].frames
        if frames:
            self.raw(b"(" if len(frames) > 1 else b"")
            for frame in frames:
                self._frame(frame)
            self.raw(b"e" if len(frames) > 1 else b"a")
        gets = b"".join(map(self._frames.__getitem__, frames))
        inner = b"(" + gets + b"e" if len(frames) > 1 else gets and gets + b"a"
        self._bodies[site] = b"]\x94" + inner
        return place

    def _known_list(self, key: tuple[int, int]) -> bytes | None:
        """What fetches the list of a capture of a live block's, or of the last one."""
        known = self._lists.get(key)
        return (
            self._last_list[1] if known is None and key == self._last_list[0] else known
        )

    def _frame(self, frame: Frame) -> None:
        known = self._frames.get(frame)
        if known is not None:
            self.raw(known)
            return
        self._frames[frame] = self.begin(b"}")
        self.raw(b"(")
        for key, value in zip(frame._fields, frame, strict=True):
            self.value(key)
            self.value(value)
        self.raw(b"u")


class _Pieces:
    """What the events of one history are put together from."""

    def __init__(
        self,
        writer: _Writer,
        device: int,
        history: History,
        sites: Sites,
        form: Form,
    ) -> None:
        self.device = device
        self._writer = writer
        self._history = history
        self._sites = sites
        self._form = form
        self.with_frames = [form.has_frames(action) for action in ACTIONS]
        self.heads: list[bytes | None] = [None] * len(ACTIONS)
        """By action: up to the key of the address."""
        self.tails: dict[tuple[int, int], bytes] = {}
        """By site and pool: compile context, metadata and pool."""
        self.num_memoized = 1 + form.has_metadata + form.has_pool_ids
        """Objects that each event makes anew: its dict, a text and a pair of pool ids."""
        self.size = self.stream = self.time = self.frames = b""

    def event(self, row: Sequence[int], *, framed: bool) -> dict[str, Any]:
        """The event as a dict."""
        event = event_of(row, self._history, self._sites, self._form)
        if framed:
            event["frames"] = _Shared(self.device, row[5], row[6])
        return event

    def learn(self, row: Sequence[int], *, framed: bool) -> None:
        """Make the pieces of an event like this one, which was just written."""
        action, site, pool = row[0], row[6], row[7]
        get = self._writer.text_of
        address = get("device_free" if action == OOM else "addr")
        self.heads[action] = b"}\x94(" + get("action") + get(ACTIONS[action]) + address
        self.size, self.stream = get("size"), get("stream")
        tail = b""
        if self._form.has_times:
            self.time = get("time_us")
        if self._form.has_metadata:
            found = self._sites[site]
            # A new text for each event, as torch has it.
            tail += (
                get("compile_context") + _plain_text(found.compile_context) + b"\x94"
            )
            tail += get("user_metadata") + get(found.user_metadata)
        if self._form.has_pool_ids:
            first, second = self._history.pool_ids[pool]
            tail += get("pool_id") + _integer(first) + _integer(second) + b"\x86\x94"
        self.tails[site, pool] = tail
        if framed:
            self.frames = get("frames")


def _get(place: int) -> bytes:
    return b"h" + bytes([place]) if place < 256 else b"j" + place.to_bytes(4, "little")


def _integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + value.to_bytes(1, "little")
    if 0 <= value < 65536:
        return b"M" + value.to_bytes(2, "little")
    if -(2**31) <= value < 2**31:
        return b"J" + value.to_bytes(4, "little", signed=True)
    size = (value.bit_length() >> 3) + 1
    return (
        b"\x8a"
        + size.to_bytes(1, "little")
        + value.to_bytes(size, "little", signed=True)
    )


def _plain_text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 256:
        return b"\x8c" + len(data).to_bytes(1, "little") + data
    return b"X" + len(data).to_bytes(4, "little") + data
