"""`memboard open`: what was named is shown, and what cannot be is told."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from memboard.collector.cli import tensorboard
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.open.command import first_place
from memboard.tb_plugin.formats.file_listing import file_id
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.collector.cli.conftest import command
from tests.tb_plugin.client import decode_envelope
from tests.tb_plugin.logdirs import SMALL, write

ROOT = Path(__file__).parent.parent.parent.parent


def words_of(place: str) -> dict[str, str]:
    return {k: v[0] for k, v in parse_qs(place).items()}


def place_of(given: OpenedPaths) -> str:
    return first_place(given, lambda: MemBoardPlugin(None, given).state().store)


def test_the_url_shows_the_allocations_of_the_first_file(tmp_path):
    paths = [
        str(write(tmp_path / "b" / "memory_snapshot_rank1.pickle")),
        str(write(tmp_path / "a" / "memory_snapshot_rank0.pickle")),
    ]
    words = words_of(place_of(OpenedPaths(tuple(paths))))
    assert words["view"] == "blocks"
    assert words["history"] == file_id("f", paths[0])
    assert re.fullmatch("[0-9a-f]{16}", words["run"])


def test_of_a_directory_it_is_the_first_snapshot_or_the_recording(tmp_path):
    RunBuilder(tmp_path / "exp").simple(1, 3)
    words = words_of(place_of(OpenedPaths(folders=(str(tmp_path),))))
    assert list(words) == ["run"]
    write(tmp_path / "exp" / "step_3" / "rank0_memory_snapshot.pickle")
    words = words_of(place_of(OpenedPaths(folders=(str(tmp_path),))))
    assert words["view"] == "blocks"
    assert words["history"] == file_id("f", "exp/step_3/rank0_memory_snapshot.pickle")
    (tmp_path / "empty").mkdir()
    assert place_of(OpenedPaths(folders=(str(tmp_path / "empty"),))) == ""


def test_of_a_directory_it_is_the_first_that_is_not_plainly_broken(tmp_path):
    write(tmp_path / "a" / "rank0_memory_snapshot.pickle", SMALL[:-9])
    write(tmp_path / "a" / "rank1_memory_snapshot.pickle", b"")
    write(tmp_path / "b" / "rank0_memory_snapshot.pickle", b"\x80\x04no snapshot.")
    write(tmp_path / "b" / "rank2_memory_snapshot.pickle")
    words = words_of(place_of(OpenedPaths(folders=(str(tmp_path),))))
    assert words["history"] == file_id("f", "b/rank2_memory_snapshot.pickle")
    # Where all are, the first one's page says why.
    (tmp_path / "b" / "rank2_memory_snapshot.pickle").unlink()
    words = words_of(place_of(OpenedPaths(folders=(str(tmp_path),))))
    assert words["history"] == file_id("f", "a/rank0_memory_snapshot.pickle")


def test_nothing_that_can_be_opened_is_exit_code_2(tmp_path, capsys):
    RunBuilder(tmp_path / "exp").simple(1, 3)
    (rank_file,) = (tmp_path / "exp").rglob("*.events")
    os.mkfifo(tmp_path / "pipe.pickle")
    cases = {
        tmp_path / "missing.pickle": "there is no such file",
        tmp_path / "pipe.pickle": "not a regular file",
        write(tmp_path / "empty.pickle", b""): "the file is empty",
        write(
            tmp_path / "other.pickle", pickle.dumps([1])
        ): "neither a memory snapshot",
        write(tmp_path / "cut.pickle", SMALL[:-9]): "the pickle has no end",
        rank_file: "one rank's recording",
    }
    for path, what in cases.items():
        assert main(["open", str(path), "--no-browser"]) == 2
        said = capsys.readouterr().err
        assert what in said
        assert f"where: {path}" in said
        assert "what to do: " in said
    assert main(["open", *map(str, cases)]) == 2
    assert capsys.readouterr().err.count("where: ") == len(cases)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path, capsys):
    path = write(tmp_path / "memory_snapshot.pickle")
    path.chmod(0)
    assert main(["open", str(path)]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_names_cannot_write_to_the_terminal(tmp_path, capsys):
    path = tmp_path / "\x1b]0;evil\x07.pickle"
    assert main(["open", str(path)]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_port_that_is_none_is_exit_code_2(tmp_path, capsys):
    path = write(tmp_path / "memory_snapshot.pickle")
    assert command("open", path, "--port", 70000) == 2
    assert "give a port from 1 to 65535" in capsys.readouterr().err


def test_no_browser_takes_over_the_terminal(monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(tensorboard.webbrowser, "open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    tensorboard.open_browser("http://first")
    monkeypatch.setenv("DISPLAY", ":0")
    tensorboard.open_browser("http://second")
    assert opened == ["http://second"]


@contextmanager
def running(*arguments: str, temporary: Path):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "memboard.tb_plugin.cli", "open", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_it_serves_what_was_named_and_tidies_up(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    good = write(tmp_path / "data" / "memory_snapshot_rank3.pickle")
    write(tmp_path / "data" / "memory_snapshot_rank4.pickle")
    bad = tmp_path / "bad.pickle"
    arguments = (str(bad), str(good), "--no-browser")
    with running(*arguments, temporary=temporary) as process:
        line = process.stdout.readline()
        found = re.match(r"Serving ((http\S+)/app\.html\?token=\S+)#(\S+)", line)
        assert found, line
        page, data, place = found.groups()
        words = words_of(place)
        assert words["history"] == file_id("f", str(good))
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{data}/runs", timeout=120)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(page, timeout=120).close()
        with browser.open(f"{data}/runs", timeout=120) as answer:
            (run,) = decode_envelope(answer.read())["runs"]
        assert (run["id"], run["name"]) == (words["run"], "data")
        assert run["num_ranks"] == 1, "the file beside it was not named"
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        assert str(bad) in process.stderr.read()
    assert [p.name for p in temporary.iterdir() if "memboard" in p.name] == []


def test_torch_is_not_loaded(tmp_path):
    path = write(tmp_path / "memory_snapshot.pickle")
    code = (
        "import sys; from memboard.tb_plugin.cli.open.command import first_place\n"
        "import memboard.tb_plugin.cli.import_snapshots\n"
        "from memboard.tb_plugin.index.logdirs import OpenedPaths; from memboard.tb_plugin.cli.open.standalone import Standalone\n"
        f"given = OpenedPaths(files=({str(path)!r},))\n"
        "with Standalone(given, 'localhost', 0) as alone:\n"
        "    assert first_place(given, lambda: alone.plugin.state().store)\n"
        "assert 'torch' not in sys.modules and 'psutil' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
