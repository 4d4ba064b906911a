"""What others see of a mirror, or of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from collector.sources.contract import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Kind: TypeAlias = Literal["events", "traces", "snapshots", "dumps", "merged"]

REMOTE: Final = SourceInfo(
    name="remote", cost="uploads on threads of their own; some microseconds per file"
)
"""What the page says about a mirror that was asked for."""


class Remote(Protocol):
    """Takes finished files. Safe on any thread; nothing of it raises or waits."""

    is_on: bool

    def put(
        self,
        kind: Kind,
        path: Path,
        *,
        delete_after: bool = False,
        values: Mapping[str, object] | None = None,
    ) -> bool:
        """Have a finished file copied; False where it stays here.

        Args:
            kind: decides about its key.
            path: absolute; nobody changes the file any more.
            delete_after: delete it here once the copy was verified.
            values: variables of its template that belong to the file: `epoch`, `batch`.
        """

    def url_of(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None = None
    ) -> str | None:
        """Where a file goes; None where it stays here."""

    def has_copy(self, path: Path) -> bool:
        """Whether the copy of a file that was put has been verified."""

    def close(self) -> None:
        """Copy what is left, in bounded time. Waits."""

    def task_for(self, kind: Kind, path: Path) -> bytes | None:
        """For a file that another process makes after `close`: the task to upload it.

        It is the standard input of `python -m collector.remote.finishing MODULE ...`,
        which runs the module first. None where the file stays here.
        """

    def task_for_later(self) -> bytes:
        """The same for files whose names are not known yet; empty: they stay here."""

    def forget(self) -> None:
        """In a forked child: nothing here is ours."""


class NoMirror:
    """Stands where no url is set: every file stays here."""

    is_on = False

    def put(
        self,
        kind: Kind,
        path: Path,
        *,
        delete_after: bool = False,
        values: Mapping[str, object] | None = None,
    ) -> bool:
        """Nothing is copied, and nothing deleted."""
        del kind, path, delete_after, values
        return False

    def url_of(
        self, kind: Kind, path: Path, values: Mapping[str, object] | None = None
    ) -> str | None:
        """Nowhere."""
        del kind, path, values
        return None

    def has_copy(self, path: Path) -> bool:
        """Never."""
        del path
        return False

    def close(self) -> None:
        """Nothing is left."""

    def task_for(self, kind: Kind, path: Path) -> bytes | None:
        """Nothing is to be done."""
        del kind, path
        return None

    def task_for_later(self) -> bytes:
        """Nothing is to be done."""
        return b""

    def forget(self) -> None:
        """Nothing is held."""
