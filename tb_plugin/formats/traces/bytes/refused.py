"""Why a file is no trace, by its first bytes, and what to do."""

from __future__ import annotations

import re
from typing import Final

from memboard.tb_plugin.formats.other_profilers import other_profiler
from memboard.tb_plugin.worker.errors import RefusedError

REMEDY: Final = "Open what a profiler wrote as a Chrome trace, .json or .json.gz."
EVENTS_REMEDY: Final = (
    "Export the trace again: each entry of the list must be an object with a phase"
    " (`ph`) and a time (`ts`)."
)
_VALUE: Final = re.compile(rb'"traceEvents"\s*:\s*(.)', re.DOTALL)
_VALUES: Final = {
    b"{": "an object",
    b'"': "a text",
    b"n": "null",
    b"t": "true",
    b"f": "false",
}
_PACKED: Final = (
    (b"\x1f\x8b", "gzip, twice", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ", "xz", "unxz"),
    (b"PK\x03\x04", "zip", "unzip"),
)
"""First bytes of files, with the format and the program that unpacks it."""
_WIDE: Final = (
    # The longer mark goes first: UTF-32's begins with UTF-16's.
    (re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff|[{\[]\0\0\0|\0\0\0[{\[]"), "UTF-32"),
    (re.compile(rb"\xff\xfe|\xfe\xff|[{\[]\0|\0[{\[]"), "UTF-16"),
)


def refused(start: bytes) -> RefusedError:
    """A file that begins like this and has no list of events."""
    if not start:
        remedy = "Copy it again, when it is written whole."
        return RefusedError("The file is empty.", 0, remedy=remedy)
    profiler = other_profiler("", start)
    if profiler is not None:
        return RefusedError(profiler.what, 0, remedy=profiler.remedy)
    for mark, packed, command in _PACKED:
        if start.startswith(mark):
            sentence = (
                f"It is packed with {packed}: traces are read plain, or gzipped once."
            )
            return RefusedError(sentence, 0, remedy=f"Unpack it with {command}.")
    for pattern, encoding in _WIDE:
        if pattern.match(start):
            sentence = f"It is written in {encoding}; JSON is read in UTF-8."
            remedy = f"Convert it: iconv -f {encoding} -t UTF-8 FILE > NEW_FILE"
            return RefusedError(sentence, 0, remedy=remedy)
    if start[:1] != b"{":
        sentence = "It is not JSON: it begins with neither an object nor a list."
        return RefusedError(sentence, 0, remedy=REMEDY)
    value = _VALUE.search(start)
    if value is not None:
        kind = _VALUES.get(value[1], "a number")
        sentence = f"Its `traceEvents` is {kind}, not a list of events."
        return RefusedError(sentence, value.start(1), remedy=EVENTS_REMEDY)
    if b'"ph"' in start:
        sentence = "Its events stand in no list: it has no `traceEvents`."
        remedy = "Put them into a list, with commas between them: [...]."
        return RefusedError(sentence, 0, remedy=remedy)
    sentence = "It has no `traceEvents`: it is not a trace."
    return RefusedError(sentence, 0, remedy=REMEDY)
