"""Traces of torch's own profiler, one for each cycle of the schedule.

- `source`: the listener of the cycles, on the thread that trains; `session`: one trace;
  `others`: the program's own profilers, which come first;
- `exporting`: the thread that saves and reads; `saving` and `files`, `kept` (retention),
  `moments` (variables of names); `lost`: cycles without a trace;
- `digest`: what is read out of a trace: `reading`, by a process that runs the page's
  analysis; `summary`; `memory_timeline`, by torch's; `report`: the capture.

`open_torch_profiler` puts them together for a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from memboard.collector.core.guard import Breaker
from memboard.collector.core.source import SourceInfo, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.collector.config import RecordConfig
    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.engine import Engine
    from memboard.collector.steps.progress import Progress
    from memboard.collector.torch_profiler.exporting import Exporter
    from memboard.collector.torch_profiler.retention import SavedTrace
    from memboard.collector.torch_profiler.source import TorchProfiler

INFO: Final = SourceInfo(
    name="torch_profiler",
    cost="2 to 5 us per operator in active steps, 18 us per event to save them",
)


@dataclass(slots=True)
class Tracing:
    """torch's profiler of one recording."""

    source: TorchProfiler
    exporter: Exporter

    @property
    def saved_traces(self) -> tuple[SavedTrace, ...]:
        """Those that stay on the disk, newest last."""
        return self.exporter.kept.saved

    def close(self) -> None:
        """Leave torch as it was; save and read what waits, as long as that goes on."""
        self.source.close()
        self.exporter.close()

    def settle(self) -> None:
        """Delete what was not to stay, after the mirror's last upload."""
        self.exporter.kept.settle()

    def after_fork(self) -> None:
        """Nothing here is ours: this is a forked child."""
        self.source.after_fork()
        self.exporter.after_fork()


def open_torch_profiler(
    config: RecordConfig,
    engine: Engine,
    progress: Progress,
    warn_once: WarnOnce,
    *,
    run_dir: Path,
) -> Tracing | None:
    """Have torch's profiler follow the schedule; None where it is off or cannot.

    Why it cannot is in a note, and what fails is told; nothing is raised.
    """
    if not config.torch_profiler.enabled:
        return None
    breaker = Breaker(
        INFO,
        engine.note_kind,
        warn_once,
        message="%s: torch's profiler failed and is off for now; it is tried again in a"
        " later cycle, where it could be opened. The rest of the recording goes on. %s",
        remedy="Switch it off with torch_profiler=False, or record less"
        " (torch_profiler.activities, profile_memory, with_stack).",
        is_asked_for=True,
    )
    with breaker:
        return _opened(
            config.torch_profiler, engine, progress, warn_once, run_dir, breaker
        )
    return None


def _opened(
    settings: TorchProfilerConfig,
    engine: Engine,
    progress: Progress,
    warn_once: WarnOnce,
    run_dir: Path,
    breaker: Breaker,
) -> Tracing:
    if find_spec("torch") is None:
        raise Unavailable("torch is not installed", "Install torch.")
    from memboard.collector.torch_profiler.exporting import Exporter
    from memboard.collector.torch_profiler.other_profilers import turn
    from memboard.collector.torch_profiler.saving import TraceFiles
    from memboard.collector.torch_profiler.session import wanted_of
    from memboard.collector.torch_profiler.source import TorchProfiler

    files = TraceFiles(
        settings,
        sink=engine,
        identify=lambda: engine.writer.identity,
        run_dir=run_dir,
        remote=lambda: engine.remote if engine.remote.is_on else None,
        flush=engine.writer.flush,
        warn_once=warn_once,
    )
    exporter = Exporter(files, settings, sink=engine, warn_once=warn_once)
    wanted = wanted_of(settings, engine.device.type)
    for activity in set(settings.activities) - set(wanted.activities):
        info = SourceInfo(name=f"torch_profiler.{activity}", cost="")
        reason = f"this torch records no activity of {activity} on this machine"
        remedy = (
            f"Remove {activity} from torch_profiler.activities, or install its torch."
        )
        engine.note_kind(info, "absent", reason, remedy)
    source = TorchProfiler(
        settings,
        wanted,
        cycles=engine.cycles,
        progress=progress,
        exporter=exporter,
        breaker=breaker,
        warn_once=warn_once,
    )
    if not turn.take(source):
        source.close()
        raise Unavailable(
            "another recording of this process has torch's profiler, which is there once",
            "Set torch_profiler in one of them only.",
        )
    engine.cycles.listen(source)
    return Tracing(source, exporter)
