"""The last record says how a process ended; each in a process of its own."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

import pytest

from memboard.collector.format import oom
from memboard.collector.format.records import Close
from memboard.collector.steps.progress import PhaseBlock, Progress
from tests.collector.oom.stage import ended, found, of, ran, started
from tests.collector.recordings import rank_files, read

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

UNTIL_ENDED = """
    print("ready", flush=True)
    while True:
        time.sleep(0.02)  # `signal.pause` would miss a signal that comes right before it
"""


def close_of(recording) -> tuple[str, str, int | None, str]:
    close = recording.close
    assert isinstance(close, Close)
    return close.how, close.message, close.step, close.phase


def signalled(run_dir, code, number=signal.SIGTERM):
    """A process that is sent a signal once it says that it is ready."""
    process = started(run_dir, code + UNTIL_ENDED)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    return ended(process)


def test_sigterm_that_is_listened_to_ends_the_file(tmp_path):
    code, _, err = signalled(
        tmp_path,
        """
    rec = record(RUN, oom={"on_sigterm": True})
    rec.phase("val")
    for step in range(3):
        rec.step(step)
    rec.phase("train")
    for step in range(5):
        rec.step(step)
""",
    )
    assert (code, err) == (-signal.SIGTERM, "")
    recording = found(tmp_path)
    assert close_of(recording) == ("signal", "SIGTERM", 5, "train")
    assert [n["signal"] for n in recording.notes_of("signal")] == ["SIGTERM"]
    assert [c.meta["signal"] for c in of(recording, oom.KIND)] == ["SIGTERM"]


def test_every_recorder_of_the_process_is_ended(tmp_path):
    code, _, _ = signalled(
        tmp_path,
        """
    first = record(RUN + "/a")
    second = record(RUN + "/b", oom={"on_sigterm": True})
""",
    )
    assert code == -signal.SIGTERM
    for name in ("a", "b"):
        (path,) = rank_files(tmp_path / name)
        assert close_of(read(path))[:2] == ("signal", "SIGTERM")


def test_the_first_end_stands(tmp_path):
    code, _, _ = ran(
        tmp_path,
        """
            rec = record(RUN)
            rec.step()
            rec._session.end_by("SIGTERM", 60.0)
            rec.step()
            rec.close()
            """,
    )
    assert code == 0
    assert close_of(found(tmp_path)) == ("signal", "SIGTERM", 1, "train")


def test_ctrl_c_is_an_exception_by_name(tmp_path):
    code, _, _ = signalled(
        tmp_path,
        """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    rec = record(RUN)
    rec.step()
""",
        signal.SIGINT,
    )
    assert code in (-signal.SIGINT, 128 + signal.SIGINT)
    assert close_of(found(tmp_path)) == ("exception", "KeyboardInterrupt", 1, "train")


@pytest.mark.parametrize(
    ("raises", "message"),
    [
        ('raise ValueError("boom\\nmore")', "ValueError: boom"),
        ("bytearray(1 << 62)", "MemoryError"),
        (
            'raise torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB.")',
            "OutOfMemoryError: CUDA out of memory. Tried 2 GiB.",
        ),
    ],
)
def test_an_exception_is_named_with_the_step_and_the_phase_it_came_from(
    tmp_path, raises, message
):
    code, _, _ = ran(
        tmp_path,
        f"""
            rec = record(RUN)
            for step in range(3):
                rec.step(step)
            with rec.phase("val"):
                with rec.phase("inner"):
                    {raises}
            """,
    )
    assert code == 1
    recording = found(tmp_path)
    assert close_of(recording) == ("exception", message, 3, "inner")
    (report,) = of(recording, oom.KIND)
    assert (report.step, report.phase) == (3, "inner")


def test_the_phase_of_an_exception_that_was_caught_is_forgotten():
    progress = Progress()
    enter = lambda name: progress.enter(name, 0)  # noqa: E731
    error = ValueError("boom")
    before = progress.phase.name
    enter("val")
    with suppress(ValueError), PhaseBlock(enter, before, progress):
        raise error
    assert progress.phase.name == "train"
    assert progress.phase_of(error) == "val"
    assert progress.phase_of(ValueError("boom")) == "train"
    assert progress.phase_of(None) == "train"
    progress.advance(None)
    assert progress.phase_of(error) == "train"
