"""What is said of sources: that they record, or why they do not, and how to change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.sources.contract import remedy_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.core.warn_once import Troubles
    from collector.sources import Opened
    from collector.sources.contract import SourceInfo

_MAX_REASON: Final = 1000


class SourceNotes:
    """Of one recording. Any thread may say something."""

    def __init__(
        self, note: Callable[[str, dict[str, Any]], None], troubles: Troubles
    ) -> None:
        """`note` queues a note: its kind and data."""
        self._note = note
        self._troubles = troubles

    def say(self, info: SourceInfo, status: str, reason: str, remedy: str) -> None:
        """A source records, or does not."""
        data = {
            "name": info.name,
            "status": status,
            "reason": reason[:_MAX_REASON],
            "remedy": remedy,
            "cost": info.cost,
        }
        self._note("source", data)

    def opened(self, opened: Opened[Any]) -> None:
        """These were to be opened."""
        for source in opened.sources:
            self.say(source.info, "recorded", "", "")
        for missing in opened.not_opened:
            info = missing.info
            self.say(info, missing.status, missing.reason, missing.remedy)
            if missing.status == "failed":
                self._troubles.tell(
                    f"source {info.name}",
                    "the source %s could not be opened and is off for now. %s",
                    info.name,
                    missing.remedy,
                    error=missing.error,
                )

    def works(self, info: SourceInfo) -> None:
        """A source that had failed records again."""
        self.say(info, "recorded", "", "")

    def failed(self, info: SourceInfo, error: BaseException) -> None:
        """A source has failed and is off for a while."""
        reason = f"{type(error).__name__}: {error}"
        remedy = remedy_of(info.name, error)
        self.say(info, "failed", reason, remedy)
        self._troubles.tell(
            f"source {info.name}",
            "the source %s failed and is off for now; the others go on. %s",
            info.name,
            remedy,
            error=error,
        )
