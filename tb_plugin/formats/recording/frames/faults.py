"""Faults of a file, in words for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.formats.recording.frames.parts import Layout

_MAX_FAULTS: Final = 100
_MAX_DAMAGED: Final = 100_000

SCHEMA_LOST: Final = "the chunk's schema is lost"
"""Of a chunk that is whole: with the schema, which a later digest may have, it is read."""
_MAX_NAMED: Final = 20

_VERSION: Final = (
    "Read it with the MemBoard that wrote it; if that is newer, upgrade where TensorBoard"
    " runs: pip install -U memboard"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a file."""

    severity: Literal["warning", "error"]
    what: str
    where: str
    remedy: str


class Faults:
    """The faults of one file, each once, at most a hundred."""

    def __init__(self) -> None:
        self.found: list[Fault] = []
        self.num_said = 0
        """Rises with whatever is said, or said otherwise."""
        self.damaged: list[tuple[int, int]] = []
        """Every stretch of bytes that is damaged, in the order it was met."""
        self.lacks_schemas = False
        """Whether chunks were met whose schema is lost."""
        self._damage: dict[Fault, tuple[int, int, bool]] = {}
        """Which bytes each loss is of, and whether what they held is named."""

    def add(
        self,
        severity: Literal["warning", "error"],
        sentence: str,
        where: str,
        remedy: str,
    ) -> None:
        fault = Fault(severity, sentence, where, remedy)
        if len(self.found) < _MAX_FAULTS and fault not in self.found:
            self.found.append(fault)
            self.num_said += 1

    def add_damage(
        self, offset: int, end: int, reason: str, *, is_named: bool = False
    ) -> None:
        """These bytes are lost; `is_named`: `reason` says what they held.

        The same loss is said once, by its name where that is known.
        """
        if reason != SCHEMA_LOST and len(self.damaged) < _MAX_DAMAGED:
            self.damaged.append((offset, end))
        self.lacks_schemas |= reason == SCHEMA_LOST
        for damage, (first, last, was_named) in tuple(self._damage.items()):
            if first <= offset and end <= last and (was_named or not is_named):
                return
            if offset <= first and last <= end and (is_named or not was_named):
                del self._damage[damage]
                self.found.remove(damage)
        fault = Fault(
            "warning",
            f"A part of the file is damaged: {reason}.",
            f"bytes {offset} to {end}",
            "It cannot be recovered; check the disk if this keeps happening.",
        )
        if len(self.found) < _MAX_FAULTS:
            self._damage[fault] = (offset, end, is_named)
            self.found.append(fault)
            self.num_said += 1

    def add_foreign(self, reason: str, where: str) -> None:
        """A record, or where the header is one the whole file, of another format."""
        sentence = f"A record of another format was skipped: {reason}."
        if where == "header":
            sentence = f"The file is of another format: {reason}."
        self.add("error" if where == "header" else "warning", sentence, where, _VERSION)

    def add_unreadable(self, error: OSError) -> None:
        """The file is there and cannot be opened or read."""
        self.add(
            "error",
            f"The file cannot be read: {error.strerror or error}.",
            "",
            "Check its permissions and the disk.",
        )

    def add_renamed(self, rank: int, written_rank: int) -> None:
        """It is named for `rank`, and was written by `written_rank`."""
        self.add(
            "warning",
            f"The file is named for rank {rank}, its header says rank"
            f" {written_rank}; it is shown as rank {rank}.",
            "header",
            "Was the file renamed or copied over another? Give it its own name back.",
        )

    def add_missing(self, layout: Layout, config: Mapping[str, Any]) -> None:
        """Parts of it are not here; `config`: of the recording, which may name a copy."""
        segments = layout.missing_segments()
        num_bytes = sum(gap.end - gap.start for gap in layout.gaps)
        mirror = config.get("remote")
        url = mirror.get("url") if isinstance(mirror, dict) else None
        missing = "A segment of this rank's file is shorter than it was"
        if segments:
            missing = f"Segments of this rank's file are missing: {in_words(segments)}"
        remedy = "Copy all of its segments here from where the recording was written."
        if url:
            remedy = (
                f"They may have been deleted here after they were copied to {url};"
                " download that directory, or copy them from there."
            )
        self.add(
            "warning",
            f"{missing} ({counted(num_bytes, 'byte')}). All others are shown; the course of the"
            " whole run is known as far as a later segment sums it up.",
            "segments",
            remedy,
        )


def in_words(missing: Sequence[tuple[int, int]]) -> str:
    """Numbers of segments, e.g. `0003, 0005 to 0007`."""
    named = [
        f"{first:04d}" if first == last else f"{first:04d} to {last:04d}"
        for first, last in missing[:_MAX_NAMED]
    ]
    more = len(missing) - _MAX_NAMED
    return ", ".join(named) + (
        f" and {counted(more, 'more stretch')}" if more > 0 else ""
    )
