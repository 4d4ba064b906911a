"""A sink that keeps what kinds find, and calls as the windows make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.core.calls import Call

if TYPE_CHECKING:
    from collector.format.records import Capture


@dataclass
class KeptSink:
    """See `contract.Sink`."""

    captures: list[Capture] = field(default_factory=list)
    rows: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    notes: list[tuple[str, str, str, str]] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    rank: int = 0

    def put_capture(self, capture):
        self.captures.append(capture)
        return True

    def put_row(self, table, phase, columns, row, *, rolled_up=True):
        assert len(columns) == len(row)
        names = [column.name for column in columns]
        assert names[:2] == ["time_ns", "step"]
        assert len(set(names)) == len(names)
        self.rows.append((table, phase, dict(zip(names, row, strict=True))))
        self.columns[table] = columns, rolled_up

    def note_kind(self, info, status, reason, remedy):
        self.notes.append((info.name, status, reason, remedy))

    def artifact_dir(self):
        return None

    def mirror(self, kind, path):
        raise AssertionError("no file was written")

    def status(self, name):
        """The last word on a kind."""
        return [note[1] for note in self.notes if note[0] == name][-1]


def call(function="f", iteration=1, phase="train", step=0):
    return Call(function=function, phase=phase, iteration=iteration, step=step)
