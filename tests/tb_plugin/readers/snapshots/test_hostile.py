"""Hostile files end in words, in little memory, and take nobody along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.errors import LimitError, RefusedError
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT
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
import json, os, resource, sys, tempfile
from memboard.tb_plugin.worker import process
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.errors import ImportFailedError
from memboard.tb_plugin.worker.importer import _content_of
from memboard.tb_plugin.worker.limits import SNAPSHOT, Limits
process._FORKS = False  # a child of this process: what it takes is known
taken_s = 0.0
for path in map(str.strip, sys.stdin):
    with open(path, "rb", buffering=0) as file, tempfile.TemporaryFile() as columns:
        size = _content_of(file, FileKey.of(os.fstat(file.fileno())), SNAPSHOT)
        limits = Limits.of(size, SNAPSHOT)
        memory = limits.memory_bytes // int(sys.argv[1])
        limits = limits._replace(cpu_s=600, memory_bytes=memory)
        ending = "done", ""
        try:
            order = process.Order(file, columns, SNAPSHOT, limits, is_last=True)
            worker = process.WorkerProcess(order)
            worker.follow(lambda _: None, lambda _: True)
        except ImportFailedError as error:
            ending = error.kind, error.what
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    before_s, taken_s = taken_s, used.ru_utime + used.ru_stime
    found = [*ending, taken_s - before_s, used.ru_maxrss / 1024]
    print(json.dumps(found), flush=True)
"""


class Outcome(NamedTuple):
    kind: str
    what: str
    cpu_s: float
    rss_mb: float
    """The most of any worker so far."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """How a worker ended with a file, and what it took, of a share of the memory."""
    path = tmp_path_factory.mktemp("hostile") / "file"
    measuring: dict[int, subprocess.Popen[str]] = {}

    def measure(name: str, share: int) -> Outcome:
        path.write_bytes(FILES[name]())
        if share not in measuring:
            measuring[share] = subprocess.Popen(
                [sys.executable, "-c", MEASURE, str(share)],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = measuring[share]
        print(path, file=process.stdin, flush=True)
        return Outcome(*json.loads(process.stdout.readline()))

    yield measure
    for process in measuring.values():
        process.communicate()


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_end_in_words_and_in_little_memory(name, outcome):
    # Of JSON a smaller flood and a smaller limit show the same in a tenth of the time.
    share = 8 if name.startswith("JSON") else 1
    found = outcome(name, share)
    if name in KEPT:
        assert found.kind == "done"
    else:
        # JSON is made objects of at once: what is too many meets the process' limit.
        kinds = ("refused", "limit") if name.startswith("JSON") else ("refused",)
        assert found.kind in kinds
        assert len(found.what) > 10
    assert found.rss_mb < (512 if share == 1 else 256)
    # Far above what it takes: it is for what grows without bound.
    assert found.cpu_s < 30


@pytest.mark.parametrize("name", ["reduce", "gzip of numbers", "cut off"])
def test_the_file_is_named_and_others_are_read_all_the_same(tmp_path: Path, name):
    importer = Importer(ColumnCache(tmp_path / "cache"))
    bad = tmp_path / "bad.pickle"
    bad.write_bytes(FILES[name]())
    good = tmp_path / "good.pickle"
    good.write_bytes(b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]u.")
    with pytest.raises((RefusedError, LimitError)) as error:
        importer.tables(bad, SNAPSHOT)
    assert str(bad) in error.value.where
    assert error.value.remedy
    assert list(importer.tables(good, SNAPSHOT)["root"]["key"]) == [
        "segments",
        "device_traces",
    ]
