"""Files that are made to harm who opens them, by name: the bytes of each.

Every one must be refused, or read as the little it is, in little memory and time.
"""

from __future__ import annotations

import gzip
import os
import pickle
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
FLOOD = 8 * MIB
HEAD = b"\x80\x04"


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


def u8(number: int) -> bytes:
    return struct.pack("<Q", number)


def u4(number: int) -> bytes:
    return struct.pack("<I", number)


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + u4(len(data)) + data


def doubling(levels: int) -> bytes:
    """A list of two references to a list of two references to ..."""
    steps = (
        b"]\x94(" + b"".join(b"h" + bytes([n - 1]) for _ in (0, 1)) + b"e"
        for n in range(1, levels)
    )
    return HEAD + b"}(" + text("segments") + b"]\x94" + b"".join(steps)


def nested_tuple(depth: int) -> bytes:
    return HEAD + b"})" + b"\x85" * depth + b"Ns."


def colliding() -> bytes:
    """Integers whose hashes are equal, as the keys of one dict."""
    step = 2**61 - 1  # what Python takes integers modulo
    keys = b"".join(
        b"\x8a\x0a" + (step * n).to_bytes(10, "little") + b"N" for n in range(1, 30_000)
    )
    return HEAD + b"}(" + keys + b"u."


def colliding_narrow() -> bytes:
    """The same within 64 bits, and powers of two that share a slot of the table."""
    keys = b"".join(
        b"\x8a\x09" + (n << 40).to_bytes(9, "little") + b"N" for n in range(1, 30_000)
    )
    return HEAD + b"}(" + keys + b"u."


def event(**keys: bytes) -> bytes:
    return b"}\x94(" + b"".join(text(k) + b"\x94" + v for k, v in keys.items()) + b"u"


ALLOC = {"action": text("alloc"), "addr": b"K\x01", "size": b"K\x02"}


def traces(events: bytes) -> bytes:
    return (
        HEAD
        + b"}("
        + text("segments")
        + b"]"
        + text("device_traces")
        + b"](]("
        + events
        + b"eeu."
    )


def many_keys() -> bytes:
    """Events each of which brings a key of its own."""
    return traces(b"".join(event(**ALLOC, **{f"k{n}": b"N"}) for n in range(20_000)))


def changing_types() -> bytes:
    """A key that holds a number, then a text, then a list, and so on."""
    values = (b"K\x07", text("a"), b"]", b"G" + b"\1" * 8, b"\x88")
    return traces(b"".join(event(**ALLOC, x=values[n % 5]) for n in range(40_000)))


def long_stacks() -> bytes:
    """One frame, and stacks of it that are each longer than the one before."""
    frame = b"}\x94(" + text("line") + b"K\x01" + text("filename") + text("a") + b"u"
    events = [event(**ALLOC, frames=b"](" + frame + b"e")]
    events += [event(**ALLOC, frames=b"](" + b"h\x05" * n + b"e") for n in range(1200)]
    return traces(b"".join(events))


def false_frames() -> bytes:
    """Frames of no length, one after the other."""
    return HEAD + (b"\x95" + u8(0)) * 1_000_000 + b"}."


def frame_within() -> bytes:
    return HEAD + b"\x95" + u8(100) + b"\x95" + u8(10) + b"}."


def late_nothing() -> bytes:
    """A snapshot of many events, cut off before its end."""
    row = event(**ALLOC)
    return traces(row * 60_000)[:-3]


def types(value: bytes) -> bytes:
    return (
        HEAD + b"}(" + text("segments") + value + text("device_traces") + value + b"u."
    )


FILES: dict[str, Callable[[], bytes]] = {
    # What would call or import.
    "reduce": lambda: pickle.dumps(Evil()),
    "global": lambda: b"\x80\x02cos\nsystem\n.",
    "stack global": lambda: HEAD + b"\x8c\x02os\x8c\x06system\x93.",
    "inst": lambda: b"(S'true'\nios\nsystem\n.",
    "obj": lambda: b"\x80\x02(cos\nsystem\no.",
    "newobj": lambda: HEAD + b"\x8c\x02os\x8c\x06system\x93)\x81.",
    "newobj ex": lambda: HEAD + b")}\x92.",
    "build": lambda: HEAD + b"}}b.",
    "ext1": lambda: HEAD + b"\x82\x01.",
    "ext2": lambda: HEAD + b"\x83\x01\x00.",
    "ext4": lambda: HEAD + b"\x84" + u4(1) + b".",
    "persid": lambda: b"\x80\x02Pid\n.",
    "binpersid": lambda: HEAD + b"K\x01Q.",
    "next buffer": lambda: b"\x80\x05\x97.",
    # What no pickler writes.
    "an end too early": lambda: HEAD + b".",
    "two values": lambda: HEAD + b"}}.",
    "a list that was not begun": lambda: HEAD + b"]e.",
    "an entry without a value": lambda: HEAD + b"}(" + text("a") + b"u.",
    "protocol 0": lambda: b"(dp0\n.",
    "protocol 99": lambda: b"\x80\x63}.",
    "a reference to nothing": lambda: HEAD + b"h\x07.",
    "no pickle": lambda: b"hello",
    # What claims to be large.
    "memo index 2**31": lambda: b"\x80\x02}r\xff\xff\xff\x7f.",
    "memo index 10**8": lambda: b"\x80\x02}r" + u4(10**8) + b".",
    "memo index as text": lambda: b"\x80\x02}p100000000\n.",
    "bytes of 8 GB": lambda: HEAD + b"\x8e" + u8(1 << 33) + b".",
    "text of 1 TB": lambda: HEAD + b"\x8d" + u8(1 << 40) + b".",
    "text of 4 GB": lambda: HEAD + b"X" + u4(2**32 - 1) + b".",
    "bytearray of 8 GB": lambda: b"\x80\x05\x96" + u8(1 << 33) + b".",
    "frame of 8 GB": lambda: HEAD + b"\x95" + u8(1 << 33) + b"}.",
    "frame of 2**64": lambda: HEAD + b"\x95" + u8(2**64 - 1) + b"}.",
    "long4 of 2 GB": lambda: HEAD + b"\x8b" + u4(2**31 - 1) + b".",
    "long4 negative": lambda: HEAD + b"\x8b\xff\xff\xff\xff.",
    "long1 of 255": lambda: HEAD + b"\x8a\xff" + b"\x7f" * 255 + b".",
    "decimal": lambda: b"\x80\x02I" + b"9" * 100_000 + b"\n.",
    # Floods.
    "sets": lambda: HEAD + b"\x8f" * FLOOD,
    "dicts": lambda: HEAD + b"}" * FLOOD + b".",
    "lists in a mark": lambda: HEAD + b"(" + b"]" * FLOOD + b"t.",
    "memoized dicts": lambda: HEAD + b"}\x94" * (FLOOD // 2) + b".",
    "memoized again": lambda: HEAD + b"}" + b"\x94" * FLOOD + b".",
    "nothings": lambda: HEAD + b"(" + b"N" * FLOOD + b"t.",
    "marks": lambda: HEAD + b"(" * FLOOD,
    "references": lambda: HEAD + b"]\x94(" + b"h\x00" * (FLOOD // 2) + b"e.",
    "tuples": lambda: HEAD + b")" + b"\x85" * FLOOD + b".",
    "texts": lambda: HEAD + b"(" + b"\x8c\x00" * (FLOOD // 2) + b"t.",
    "different texts": lambda: (
        HEAD
        + b"("
        + b"".join(b"\x8c\x04" + u4(n & 0x7F7F7F7F) for n in range(FLOOD // 6))
        + b"t."
    ),
    "numbers": lambda: HEAD + b"(" + b"J\xff\xff\xff\x7f" * (4 * MIB) + b"t.",
    "events without a list": lambda: HEAD + b"(" + event(**ALLOC) * 100_000 + b"t.",
    "one event again and again": lambda: pickle.dumps(
        {"device_traces": [[{"action": "alloc", "addr": 1}] * (FLOOD // 2)]}
    ),
    "events of many keys": many_keys,
    "events whose types change": changing_types,
    "stacks of all lengths": long_stacks,
    "frames of nothing": false_frames,
    "heads of events": lambda: HEAD + b"}\x94(" * (6 * MIB),
    # Shapes that are small and explode in whoever walks them.
    "nested tuple as key": lambda: nested_tuple(2 * MIB),
    "doubling": lambda: doubling(100) + b"e" * 99 + b"u.",
    "itself": lambda: HEAD + b"}\x94(" + text("segments") + b"]\x94h\x01au.",
    "colliding keys": colliding,
    "colliding narrow keys": colliding_narrow,
    "lone surrogate": lambda: types(b"X" + u4(3) + b"\xed\xa0\x80"),
    "a number for segments": lambda: types(b"K\x07"),
    "texts for segments": lambda: types(b"](" + text("a") * 10 + b"e"),
    "lists for segments": lambda: types(b"](](]]ee"),
    "nothing for segments": lambda: types(b"N"),
    # Torn files.
    "empty": lambda: b"",
    "one byte": lambda: b"\x80",
    "no stop": lambda: HEAD + b"}",
    "cut off": late_nothing,
    "frame within a frame": frame_within,
    "gzip cut off": lambda: gzip.compress(pickle.dumps(list(range(9999))))[:500],
    "gzip damaged": lambda: gzip.compress(b"x" * 10_000)[:12] + b"\xff" * 40,
    "gzip of nothing": lambda: gzip.compress(b""),
    "zeros": lambda: b"\0" * MIB,
    # Bombs.
    "gzip of nothings": lambda: gzip.compress(HEAD + b"(" + b"N" * (100 * MIB)),
    "gzip of numbers": lambda: gzip.compress(
        HEAD + b"(" + b"J\xff\xff\xff\x7f" * FLOOD
    ),
    "gzip of gzip": lambda: gzip.compress(gzip.compress(b"\0" * (100 * MIB))),
    "gzip of spaces": lambda: gzip.compress(b" " * (200 * MIB)),
    "gzip of a JSON text": lambda: gzip.compress(b'{"x": "' + b"a" * (200 * MIB)),
    # JSON.
    "JSON lists": lambda: b"[" * MIB,
    "JSON objects": lambda: b'{"a":' * (MIB),
    "JSON flood of objects": lambda: b'{"segments": [' + b"{}," * (MIB) + b"{}]}",
    "JSON flood of lists": lambda: b'{"x": [' + b"[]," * (MIB) + b"[]]}",
    "JSON flood of traces": lambda: b'{"device_traces": [' + b"[]," * (MIB) + b"[]]}",
    "JSON text": lambda: b'{"x": "' + b"a" * MIB + b'"}',
    "JSON escapes": lambda: b'{"x": "' + b"\\\\" * (MIB) + b'"}',
    "JSON quotes": lambda: b'{"x": [' + b'"",' * (MIB) + b"1]}",
    "JSON number": lambda: b'{"segments": [], "x": ' + b"9" * (MIB) + b"}",
    "JSON keys": lambda: b"{" + b'"a":1,' * (MIB // 2) + b'"b":1}',
    "JSON different keys": lambda: (
        b'{"segments": [' + b",".join(b'{"k%d":1}' % n for n in range(MIB // 4)) + b"]}"
    ),
    "JSON spaces": lambda: b"{" + b" " * MIB,
    "JSON cut off": lambda: b'{"segments": [{"blocks": [{"address": 1',
}
