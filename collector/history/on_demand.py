"""`rec.snapshot("name")`: the allocator as it is now, whenever training asks.

It works whether or not `history` is on: without, there are segments and blocks and the
events of whatever recording the program itself has on. Nothing is turned on for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.history.kind import INFO, History, open_kind
from collector.sources.contract import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config import RecordConfig
    from collector.core.warn_once import Troubles
    from collector.functions.contract import Sink
    from collector.steps.attached import Attached
    from collector.steps.progress import Progress


class OnDemand:
    """Takes snapshots for one recorder."""

    def __init__(
        self,
        config: RecordConfig,
        sink: Sink,
        progress: Progress,
        troubles: Troubles,
        *,
        kind: Callable[[], Any],
        attached: Attached,
    ) -> None:
        """`kind` gives the recorder's own history, None where that is off.

        `attached`: what tensors are named after.
        """
        self._attached = attached
        self._config = config
        self._sink = sink
        self._progress = progress
        self._troubles = troubles
        self._kind = kind
        self._history: History | None = None

    def take(self, label: str) -> bool:
        """Take one; whether it was queued. Raises what torch raises."""
        history = self._open()
        if history is None:
            return False
        history.attach(self._attached.model, self._attached.optimizers)
        progress = self._progress
        return history.take(label, step=progress.train_step, phase=progress.phase.name)

    def _open(self) -> History | None:
        history = self._kind()
        if isinstance(history, History):
            return history
        if self._history is None:
            try:
                self._history = open_kind(self._config, self._sink)
            except Unavailable as missing:
                self._tell(missing)
        return self._history

    def _tell(self, missing: Unavailable) -> None:
        self._sink.note_kind(INFO, "absent", missing.reason, missing.remedy)
        self._troubles.tell(
            "snapshot",
            "no snapshot was taken: %s. %s",
            missing.reason,
            missing.remedy,
        )
