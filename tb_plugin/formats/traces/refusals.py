"""Why a file is no trace, and why a trace shows nothing: said in words, with a remedy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tb_plugin.formats.traces.bytes.pieces import MAX_LEVELS
from tb_plugin.jobs.worker.errors import RefusedError

if TYPE_CHECKING:
    from tb_plugin.formats.traces.bytes.chunks import Around
    from tb_plugin.formats.traces.bytes.pieces import Fault
    from tb_plugin.formats.traces.gathering import Gathering

REMEDY: Final = "Open what a profiler wrote as a Chrome trace, .json or .json.gz."
_EVENTS: Final = (
    "Export the trace again: each entry of the list must be an object with a phase"
    " (`ph`) and a time (`ts`)."
)
_COPY: Final = "Copy the file again, or record the trace again, whole."

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
"""What files begin with, by which program packed them and which unpacks them."""
_WIDE: Final = (
    # The longer mark goes first: UTF-32's begins with UTF-16's.
    (re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff|[{\[]\0\0\0|\0\0\0[{\[]"), "UTF-32"),
    (re.compile(rb"\xff\xfe|\xfe\xff|[{\[]\0|\0[{\[]"), "UTF-16"),
)
_NOUNS: Final[dict[Fault, str]] = {
    "unreadable": "objects that cannot be read",
    "deep": f"values nested deeper than {MAX_LEVELS} levels",
    "list": "lists",
    "text": "texts",
    "number": "numbers or null",
}


def refused(start: bytes) -> RefusedError:
    """A file that begins like this and has no list of events."""
    for mark, packed, command in _PACKED:
        if start.startswith(mark):
            what = (
                f"It is packed with {packed}: traces are read plain, or gzipped once."
            )
            return RefusedError(what, 0, remedy=f"Unpack it with {command}.")
    for pattern, encoding in _WIDE:
        if pattern.match(start):
            what = f"It is written in {encoding}; JSON is read in UTF-8."
            remedy = f"Convert it: iconv -f {encoding} -t UTF-8 FILE > NEW_FILE"
            return RefusedError(what, 0, remedy=remedy)
    if start[:1] != b"{":
        what = "It is not JSON: it begins with neither an object nor a list."
        return RefusedError(what, 0, remedy=REMEDY)
    value = _VALUE.search(start)
    if value is not None:
        kind = _VALUES.get(value[1], "a number")
        what = f"Its `traceEvents` is {kind}, not a list of events."
        return RefusedError(what, value.start(1), remedy=_EVENTS)
    if b'"ph"' in start:
        what = "Its events stand in no list: it has no `traceEvents`."
        remedy = "Put them into a list, with commas between them: [...]."
        return RefusedError(what, 0, remedy=remedy)
    what = "It has no `traceEvents`: it is no trace."
    return RefusedError(what, 0, remedy=REMEDY)


def refuse_no_events(around: Around, gathered: Gathering) -> None:
    """Refuse a file whose list has entries, but not one event.

    Raises:
        RefusedError: it is one.
    """
    has_phases = any(not key.startswith("|") for key in gathered.num_events)
    if has_phases or not (around.bad or gathered.num_events):
        return
    first = min((one.offset for one in around.bad.values()), default=0)
    if around.cut_off and around.num_bad == 1 and not gathered.num_events:
        what = "The file ends inside its first event: it is not whole."
        raise RefusedError(what, first, remedy=_COPY)
    nouns = [_NOUNS[fault] for fault in around.bad]
    if gathered.num_events:
        nouns.append("objects without a phase (`ph`)")
    where = "list" if around.is_list else "`traceEvents`"
    what = f"This trace's {where} holds no events but {_joined(nouns)}."
    raise RefusedError(what, first, remedy=_EVENTS)


def note_problems(around: Around, gathered: Gathering, told: str) -> None:
    """Say what of a trace is not shown; `told`: what is wrong around its events."""
    problems = gathered.problems
    nothing = _why_nothing(around, gathered)
    if nothing:
        problems.note(nothing, max(1, sum(gathered.num_events.values())))
    for fault, bad in around.bad.items():
        what = "events that could not be read are not shown"
        if fault != "unreadable":
            what = f"{_NOUNS[fault]} among the events are not shown"
        problems.note(what, bad.count, f"event {bad.number}, byte {bad.offset}")
    if around.num_lists > 1:
        what = (
            f"The file has {around.num_lists} lists of events; all of them are shown."
            " Other viewers show the last one, or none."
        )
        problems.note(what, 1)
    if told:
        problems.note(told, 1)


def _why_nothing(around: Around, gathered: Gathering) -> str:
    """Why a trace is empty; empty where it is not."""
    tables = (gathered.slices, gathered.edges, gathered.instants, gathered.memory)
    if gathered.points or any(len(table) for table in tables):
        return ""
    if not gathered.num_events and not around.ended:
        return "This trace is empty: the file ends before its first whole event."
    if not gathered.num_events:
        return "This trace is empty: its list of events has no entry."
    if all(key.startswith("M|") for key in gathered.num_events):
        return "This trace is empty: its events only name processes and threads."
    return (
        "This trace is empty: none of its events has a time and a phase that is shown."
    )


def _joined(nouns: list[str]) -> str:
    *others, last = nouns
    return f"{', '.join(others)} and {last}" if others else last
