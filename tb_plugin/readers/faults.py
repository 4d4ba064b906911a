"""What is wrong with a file, in words for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tb_plugin.readers.layout import in_words

if TYPE_CHECKING:
    from collector.format.errors import TooNewError

_MAX_FAULTS: Final = 100

_UPGRADE: Final = "Upgrade MemBoard where TensorBoard runs: pip install -U memboard"


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

    def add(
        self, severity: Literal["warning", "error"], what: str, where: str, remedy: str
    ) -> None:
        """Keep one."""
        fault = Fault(severity, what, where, remedy)
        if len(self.found) < _MAX_FAULTS and fault not in self.found:
            self.found.append(fault)

    def add_damage(self, offset: int, end: int, what: str) -> None:
        """These bytes are lost."""
        self.add(
            "warning",
            f"A part of the file is damaged: {what}.",
            f"bytes {offset} to {end}",
            "Nothing can bring it back; check the disk if this keeps happening.",
        )

    def add_too_new(self, what: str, where: str) -> None:
        """A record that only a newer MemBoard reads."""
        self.add(
            "warning",
            f"A record is too new and was skipped: {what}.",
            where,
            _UPGRADE,
        )

    def add_too_new_file(self, error: TooNewError) -> None:
        """A header that only a newer MemBoard reads."""
        self.add("error", f"The file is too new: {error}.", "header", _UPGRADE)

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

    def add_missing(
        self, segments: list[tuple[int, int]], num_bytes: int, url: str
    ) -> None:
        """Parts of it are not here.

        `segments`: first and last of each stretch of them; none where one is shorter than
        it was. `url`: where they may have been copied to; "" where nowhere.
        """
        what = "A segment of this rank's file is shorter than it was"
        if segments:
            what = f"Segments of this rank's file are missing: {in_words(segments)}"
        remedy = "Copy all of its segments here from where the recording was written."
        if url:
            remedy = (
                f"They may have been deleted here after they were copied to {url};"
                " download that directory, or copy them from there."
            )
        self.add(
            "warning",
            f"{what} ({num_bytes:,} bytes). All others are shown; the course of the"
            " whole run is known as far as a later segment sums it up.",
            "segments",
            remedy,
        )
