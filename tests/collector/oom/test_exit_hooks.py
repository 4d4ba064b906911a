"""Ends that nobody asked for, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from memboard.collector.format import oom
from tests.collector.oom.stage import ROOT, STAGED, ended, found, of, ran, started
from tests.collector.recordings import rank_files, read, wait_until

pytest.importorskip("torch")


def test_an_uncaught_error_is_reported_and_said_as_python_says_it(tmp_path):
    code, _, err = ran(
        tmp_path,
        """
            rec = record(RUN)
            rec.step()
            stage.fail()
            raise torch.OutOfMemoryError(stage.message())
            """,
    )
    assert code == 1
    assert err.rstrip().splitlines()[-1].startswith("torch.OutOfMemoryError: CUDA")
    recording = found(tmp_path)
    (report,) = of(recording, oom.KIND)
    assert report.meta["origin"] == "oom"
    assert [h.meta["report"] for h in of(recording, "history")] == [1]
    assert recording.notes_of("oom_message")[0]["report"] == 1
    assert recording.close.how == "exception"


def test_the_hook_that_was_there_is_called_and_comes_back(tmp_path):
    code, out, _ = ran(
        tmp_path,
        """
            def mine(kind, error, traceback):
                print("mine:", error, flush=True)
            sys.excepthook = mine
            with record(RUN): pass
            assert sys.excepthook is mine
            rec = record(RUN)
            raise ValueError("boom")
            """,
    )
    assert (code, out) == (1, "mine: boom\n")


def test_a_threads_exception_is_reported_and_the_program_goes_on(tmp_path):
    code, _, err = ran(
        tmp_path,
        """
            def fail():
                raise ValueError("in a thread")
            with record(RUN) as rec:
                for _ in range(5):
                    thread = threading.Thread(target=fail, name="loader")
                    thread.start()
                    thread.join()
                rec.step()
            """,
    )
    assert code == 0
    assert err.count("ValueError: in a thread") == 5
    recording = found(tmp_path)
    reports = of(recording, oom.KIND)
    # Rationed; and what has the same text and place in memory counts as the same.
    assert 1 <= len(reports) <= 3
    assert reports[0].meta["thread"] == "loader"
    assert recording.close.how == "closed"


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killed_right_after_the_report_it_can_be_read(tmp_path):
    code, _, _ = ran(
        tmp_path,
        """
            rec = record(RUN, flush_seconds=3600)
            rec.step()
            stage.failing = KeyboardInterrupt()  # the kill comes before the snapshot
            try:
                stage.fail()
            except KeyboardInterrupt:
                os.kill(os.getpid(), signal.SIGKILL)
            """,
    )
    assert code == -signal.SIGKILL
    recording = found(tmp_path)
    (report,) = of(recording, oom.KIND)
    assert report.meta["requested_bytes"] > 0
    assert of(recording, "history") == []
    assert recording.close is None


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("handler", ["", "own", "ignore"])
def test_sigterm_is_reported_where_asked_and_goes_its_way(tmp_path, handler):
    process = started(
        tmp_path,
        f"""
        handler = {handler!r}
        if handler == "own":
            def own(number, frame):
                print("own", number, flush=True)
                sys.exit(7)
            signal.signal(signal.SIGTERM, own)
        if handler == "ignore":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        rec = record(RUN, oom={{"on_sigterm": True}})
        rec.step()
        rec.flush(60)
        print("ready", flush=True)
        # Until the test has seen what it waits for; a signal that comes right before
        # one long wait would not end it.
        while not select.select([sys.stdin], [], [], 0.02)[0]:
            pass
        """,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    if handler == "ignore":
        wait_until(lambda: of(found(tmp_path), "history"))
    else:
        process.wait(300)
    code, out, _ = ended(process)
    recording = found(tmp_path)
    (report,) = of(recording, oom.KIND)
    assert (report.label, report.meta["signal"]) == ("signal", "SIGTERM")
    assert not report.meta["is_out_of_memory"]
    assert [h.label for h in of(recording, "history")] == ["signal"]
    expected = {"": -signal.SIGTERM, "own": 7, "ignore": 0}
    assert code == expected[handler]
    if handler == "own":  # what the program makes of it is how it ends
        assert recording.close.how != "signal"
    assert out == (f"own {signal.SIGTERM:d}\n" if handler == "own" else "")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_sigterm_is_left_alone_unless_asked_and_put_back_after(tmp_path):
    code, _, err = ran(
        tmp_path,
        """
            import warnings
            # From 3.12 on Python warns of every fork beside threads.
            warnings.filterwarnings("ignore", ".* use of fork", DeprecationWarning)
            before = signal.getsignal(signal.SIGTERM)
            with record(RUN):
                assert signal.getsignal(signal.SIGTERM) == before
            with record(RUN, oom={"on_sigterm": True}):
                assert signal.getsignal(signal.SIGTERM) != before
                if os.fork() == 0:
                    os._exit(0 if signal.getsignal(signal.SIGTERM) == before else 1)
                assert os.wait()[1] == 0
            assert signal.getsignal(signal.SIGTERM) == before
            """,
    )
    assert (code, err) == (0, "")


def test_off_the_main_thread_signals_cannot_be_had_and_that_is_said(tmp_path):
    code, _, _ = ran(
        tmp_path,
        """
            def run():
                with record(RUN, oom={"on_sigterm": True}) as rec:
                    rec.step()
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            """,
    )
    assert code == 0
    note = found(tmp_path).source("oom.on_sigterm")
    assert note["status"] == "absent"
    assert "main thread" in note["reason"]


def test_a_spawned_process_reports_by_itself(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        STAGED
        + textwrap.dedent(
            f"""
            import memboard as mb, multiprocessing
            def work(rank):
                assert mb.active() is None
                with record({str(tmp_path)!r} + "/run", rank=rank):
                    stage.fail()
            if __name__ == "__main__":
                context = multiprocessing.get_context("spawn")
                with record({str(tmp_path)!r} + "/run", rank=0):
                    child = context.Process(target=work, args=(1,))
                    child.start()
                    child.join()
                    assert child.exitcode == 0
            """
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    paths = rank_files(tmp_path / "run")
    assert [len(of(read(path), oom.KIND)) for path in paths] == [0, 1]


WITHOUT_TORCH = """
import os, signal, sys, time
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import memboard as mb
rec = mb.record(sys.argv[1], oom={"on_sigterm": True})
rec.step()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM")
def test_sigterm_is_reported_where_torch_is_not_installed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == -signal.SIGTERM
    assert "report this" not in done.stderr
    recording = found(tmp_path)
    assert (recording.close.how, recording.close.message) == ("signal", "SIGTERM")
    assert recording.notes_of("signal") == [{"signal": "SIGTERM"}]
    assert len(of(recording, oom.KIND)) == 1
    assert recording.source("hooks")["reason"] == "torch is not installed"
