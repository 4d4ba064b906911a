"""What is wrong with a file, in words for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

_MAX_FAULTS: Final = 100


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
            "Upgrade MemBoard where TensorBoard runs: pip install -U memboard",
        )
