"""One recording inside a trainer, and nothing of its troubles outside.

A callback holds a `Session`: settings are checked when it is made, recording starts when
the trainer begins and ends with it, or with its error. A copy of the callback, or one sent
to another process, has the settings and no recording.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config import load_with_imports
from memboard.collector.config.settings import check_code
from memboard.collector.core import guard
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.integrations.events import TrainerSpans
from memboard.collector.recorder import inert_recorder
from memboard.collector.start import record

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from memboard.collector.recorder import Recorder

_NONE: Final = inert_recorder()


class Session:
    """The settings of a callback, and the recorder while there is one."""

    def __init__(
        self, logdir: str | Path | None, config: Any, keywords: dict[str, Any]
    ) -> None:
        """Check the settings.

        Raises:
            ConfigError: a setting cannot be right; says which and what to do.
        """
        check_code(load_with_imports(config, **keywords)[0])
        self.logdir = logdir
        self._config = config
        self._keywords = keywords
        self._warn_once = WarnOnce()
        self.recorder: Recorder = _NONE
        self.spans = TrainerSpans(_NONE)
        """Of the trainer's events and callbacks."""

    @property
    def is_live(self) -> bool:
        """Whether a recording has been started and not ended."""
        return self.recorder is not _NONE

    def start(self, logdir: str | Path) -> None:
        """Record into the directory given to the callback, else into `logdir`."""
        self.end(None)
        where = logdir if self.logdir is None else self.logdir
        self.recorder = record(where, config=self._config, **self._keywords)
        self.spans = TrainerSpans(self.recorder)

    def end(self, error: BaseException | None) -> None:
        """End the recording, with the error that ended training where there is one."""
        recorder, self.recorder = self.recorder, _NONE
        spans, self.spans = self.spans, TrainerSpans(_NONE)
        with guard.Block(partial(self.tell, "spans")):
            spans.close()
        recorder.__exit__(None if error is None else type(error), error, None)

    def tell(self, where: str, error: BaseException) -> None:
        self._warn_once(
            where,
            "the callback failed in %s; training goes on, and so does what can be"
            " recorded without it.",
            where,
            error=error,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: self.__dict__[name] for name in ("logdir", "_config", "_keywords")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            state, recorder=_NONE, spans=TrainerSpans(_NONE), _warn_once=WarnOnce()
        )


class RecordingCallback:
    """What every callback is, besides what its trainer wants: a session's owner.

    Also a context manager, for trainers that tell callbacks nothing of an exception:
    `with MemBoardCallback() as callback: Trainer(..., callbacks=[callback]).train()`.
    """

    def __init__(
        self, logdir: str | Path | None = None, *, config: Any = None, **keywords: Any
    ) -> None:
        """Check the settings; recording starts with the trainer.

        Args:
            logdir: the run's own directory; None: the trainer's own, see each module.
            config: see `mb.record`.
            **keywords: single settings; see `mb.record`.

        Raises:
            ConfigError: a setting cannot be right.
        """
        super().__init__()
        self._session = Session(logdir, config, keywords)

    @property
    def recorder(self) -> Recorder:
        """The recorder, for marks, spans and snapshots.

        Before training has begun and after it has ended: one that does nothing.
        """
        return self._session.recorder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.end(error)


def _tell(
    where: str, error: BaseException, callback: RecordingCallback, *_: Any, **__: Any
) -> None:
    callback._session.tell(where, error)  # noqa: SLF001  # it is the callback's own


guarded: Final = guard.guarded(_tell)
"""A callback's method from which nothing escapes into the trainer."""
