"""Snapshots by hand, for one recorder: `rec.snapshot("name")`.

It works whether or not `history` is on: without, there are segments and blocks and the
events of whatever recording the program itself has on. Nothing is turned on for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.core.source import Unavailable
from memboard.collector.history.kind import INFO, History, open_kind

if TYPE_CHECKING:
    from memboard.collector.config import RecordConfig
    from memboard.collector.core.calls import Sink
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.functions.windows import Windows
    from memboard.collector.steps.models import AttachedObjects
    from memboard.collector.steps.progress import Progress


class OnDemand:
    """Takes them with the kind `history`, where that is open, or one of its own."""

    def __init__(
        self, config: RecordConfig, sink: Sink, windows: Windows, warn_once: WarnOnce
    ) -> None:
        self._config = config
        self._sink = sink
        self._windows = windows
        self._warn_once = warn_once
        self._history: History | None = None

    def take(self, label: str, attached: AttachedObjects, progress: Progress) -> bool:
        """Take one; whether it was queued. Raises what torch raises."""
        history = self._open()
        if history is None:
            return False
        history.attach(attached.model, attached.optimizers)
        return history.take(label, step=progress.train_step, phase=progress.phase.name)

    def _open(self) -> History | None:
        history = self._windows.kind("history")
        if isinstance(history, History):
            return history
        if self._history is None:
            try:
                self._history = open_kind(self._config, self._sink)
                self._history.know_storages(self._windows.named_storages)
            except Unavailable as missing:
                reason, remedy = missing.reason, missing.remedy
                self._sink.note_kind(INFO, "absent", reason, remedy)
                text = "no snapshot was taken: %s. %s"
                self._warn_once("snapshot", text, reason, remedy)
        return self._history
