"""Hostile files end in words, in little memory, and take nobody along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tb_plugin.jobs.worker.column_cache import ColumnCache
from tb_plugin.jobs.worker.errors import LimitError, RefusedError
from tb_plugin.jobs.worker.importer import Importer
from tb_plugin.jobs.worker.worker import Message
from tests.tb_plugin.readers.snapshots.hostile import FILES

KEPT = {
    "nothing for segments",
    "a number for segments",
    "texts for segments",
    "lists for segments",
    "events whose types change",
    "stacks of all lengths",
}
"""Odd, and no danger: kept as they are."""

# A process of its own starts the worker: what a child took begins at what its parent has.
# Its time is looked at here: that a slow machine needs more is no reason to end it.
MEASURE = """
import json, os, sys, tempfile
from tb_plugin.jobs.worker.column_cache import FileKey
from tb_plugin.jobs.worker.importer import _content_of
from tb_plugin.jobs.worker.kinds import SNAPSHOT
from tb_plugin.jobs.worker.limits import Limits
from tb_plugin.jobs.worker.worker_process import WorkerProcess
with open(sys.argv[1], "rb", buffering=0) as file, tempfile.TemporaryFile() as columns:
    size = _content_of(file, FileKey.of(os.fstat(file.fileno())), SNAPSHOT)
    limits = Limits.of(size)._replace(cpu_s=600)
    worker = WorkerProcess(file, columns, limits)
    lines = worker._process.stderr.read().decode().splitlines()
    _, status, usage = os.wait4(worker._process.pid, 0)
    worker._process.returncode = os.waitstatus_to_exitcode(status)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print(json.dumps([lines[-1] if lines else "", *taken]))
"""


class Outcome(NamedTuple):
    ending: Message
    cpu_s: float
    rss_mb: float


def outcome(path: Path) -> Outcome:
    """How a worker ended with a file, and what it took."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=True,
    )
    line, cpu_s, rss_mb = json.loads(done.stdout)
    assert line, f"it had to be killed: {done.stderr}"
    return Outcome(msgspec.json.decode(line, type=Message), cpu_s, rss_mb)


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_end_in_words_and_in_little_memory(name, tmp_path):
    path = tmp_path / "hostile"
    path.write_bytes(FILES[name]())
    found = outcome(path)
    if name in KEPT:
        assert found.ending.done
    else:
        assert found.ending.failure is not None
        # JSON is made objects of at once: what is too many meets the process' limit.
        kinds = ("refused", "limit") if name.startswith("JSON") else ("refused",)
        assert found.ending.failure.kind in kinds
        assert len(found.ending.failure.what) > 10
    assert found.rss_mb < 512
    # Far above what it takes: it is for what grows without bound.
    assert found.cpu_s < 30


@pytest.mark.parametrize("name", ["reduce", "gzip of numbers", "cut off"])
def test_the_file_is_named_and_others_are_read_all_the_same(tmp_path: Path, name):
    importer = Importer(ColumnCache(tmp_path / "cache"))
    bad = tmp_path / "bad.pickle"
    bad.write_bytes(FILES[name]())
    good = tmp_path / "good.pickle"
    good.write_bytes(b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]u.")
    imports = [importer.start(bad), importer.start(good)]
    with pytest.raises((RefusedError, LimitError)) as error:
        imports[0].result()
    assert str(bad) in error.value.where
    assert error.value.remedy
    assert list(imports[1].result()["root"]["key"]) == ["segments", "device_traces"]
