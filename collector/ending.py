"""The end of one recording, in the order in which what is lost matters.

How the program ended is written first, then what explains its end, then all that waits.
Each part is guarded by itself: whatever fails, the others follow and the file is ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.core.plain import own_text
from memboard.collector.format.names import MERGED_TRACE, RANK_FILES_DIR, RUN_INDEX
from memboard.collector.process import lifecycle
from memboard.collector.steps.spans import span

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.records import How
    from memboard.collector.mirror.mirror import Mirror
    from memboard.collector.session import Session

_MAX_MESSAGE: Final = 1000

_WAIT_SECONDS: Final = 60
"""For the other ranks' files, in the process that merges them."""

_MIN_INDEXED: Final = 16
"""Fewer ranks at a store open quickly without an index."""


def end_recording(session: Session, error: BaseException | None) -> None:
    """End a recording by this exception, or well; one that is not live has ended."""
    with session.lock:
        if not session.is_live:
            return
        if lifecycle.launcher is not None:
            lifecycle.launcher.recording_ends(session.note, error)
        how, message = lifecycle.ending(error)
        phase = session.progress.phase_of(error)
        # It may not live for long: a launcher ends what others left.
        session.engine.end(how, message, phase)
        if error is not None:  # while memory is as it left it
            with session.guard("close"):
                _report(session, error)
        _cut(session, error if how == "exception" else None)
        session.is_live, session.span_log = False, None
    _leave(session)
    lifecycle.remove(session)
    span.release(session)
    _stop(session, how, message, phase)


def _report(session: Session, error: BaseException) -> None:
    """Leave what explains the exception."""
    from memboard.collector.oom.message import is_out_of_memory

    if session.oom is not None:
        session.oom.ended(error)
    elif is_out_of_memory(error):
        # The failed step has no row, so what is known of it goes into the note.
        values = session.engine.step_values()
        message = (own_text(error) or "")[:_MAX_MESSAGE]
        session.note("oom", {"message": message, "values": values})


def _cut(session: Session, fatal: BaseException | None) -> None:
    """End what is under way, by the exception where one ends the recording."""
    from memboard.collector.functions.functions import tell_unmatched
    from memboard.collector.functions.windows import MAX_FUNCTIONS

    with session.guard("close"):
        session.cycles.close(fatal)
    with session.guard("close"):
        functions = session.windows.functions_seen()
        if len(functions) < MAX_FUNCTIONS:  # beyond that, names are not told apart
            note = session.engine.note_kind
            tell_unmatched(session.config.functions, functions, note, session.warn_once)
    with session.guard("close"):
        session.windows.close(fatal)
    with session.guard("close"):
        session.timing.close()


def _leave(session: Session) -> None:
    """Leave Python and torch as they were."""
    for part in (session.oom, session.tracing):
        if part is not None:
            with session.guard("close"):
                part.close()


def _stop(session: Session, how: How, message: str, phase: str) -> None:
    """End the files, and the mirror's copies of them."""
    engine = session.engine
    engine.stop(how, message, phase)
    if session.tracing is not None:
        session.tracing.settle()
    if engine.rank == 0:
        if session.config.merge_on_close:
            with session.guard("merge_on_close"):
                _start_merge(session.run_dir, engine.remote, session.warn_once)
        if engine.remote.is_on:
            with session.guard("close"):
                world_size = engine.writer.identity.world_size
                _start_index(session.run_dir, engine.remote, world_size)


def _start_merge(run_dir: Path, remote: Mirror, warn_once: WarnOnce) -> None:
    """Have `memboard merge` wait for the other ranks, and merge what is there then."""
    from memboard.collector.afterwards import detached

    merged = run_dir / MERGED_TRACE
    command = ["memboard.tb_plugin.cli", "merge", str(run_dir), "--force"]
    command += ["--wait", str(_WAIT_SECONDS), "-o", str(merged)]
    upload = remote.task_for("merged", merged)
    if upload:
        command.insert(0, "memboard.collector.mirror.finishing")
    try:
        log = run_dir.joinpath(*RANK_FILES_DIR, "merge.log")
        log.unlink(missing_ok=True)
        detached.start(command[0], command[1:], log, upload)
    except (OSError, ValueError) as error:
        warn_once(
            "merge",
            "merge_on_close: merging could not be started. Run: memboard merge %s",
            run_dir,
            error=error,
        )


def _start_index(run_dir: Path, remote: Mirror, world_size: int) -> None:
    """Have the mirrored run indexed, where it has so many ranks that it matters."""
    from memboard.collector.afterwards import detached

    index = run_dir.joinpath(*RANK_FILES_DIR, RUN_INDEX)
    url = remote.url_of("events", index)
    task = remote.task_for_later()
    if world_size >= _MIN_INDEXED and url is not None and task:
        detached.start(
            "memboard.tb_plugin.cli.index", [url], index.with_name("index.log"), task
        )
