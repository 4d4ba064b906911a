"""Column files are kept within a bound, privately, and never trusted."""

from __future__ import annotations

import os
import stat
import threading
import time
from functools import partial

import numpy as np
import pytest

from memboard.tb_plugin.worker.cache import (
    ColumnCache,
    FileKey,
)
from memboard.tb_plugin.worker.columns import (
    ColumnTables,
    NotColumnsError,
    write_columns,
)

MADE = "snapshot 1"


def key(inode: int) -> FileKey:
    return FileKey(1, inode, 1000, 5)


def put(cache: ColumnCache, inode: int, num_rows: int = 10) -> ColumnTables:
    tables = {"t": {"c": np.arange(num_rows) << 40}}
    write = partial(write_columns, tables=tables, meta={"inode": inode})
    return cache.put(key(inode), MADE, write)


def names(cache: ColumnCache) -> set[str]:
    return {entry.name for entry in cache.directory().iterdir()}


def test_what_is_kept_is_found_under_its_key_alone(tmp_path):
    cache = ColumnCache(tmp_path)
    assert cache.get(key(1), MADE) is None
    put(cache, 1)
    found = cache.get(key(1), MADE)
    assert found is not None
    assert found.meta == {"inode": 1}
    assert ColumnCache(tmp_path).get(key(1), MADE) is not None, "of another process"
    for other in (
        key(2),
        FileKey(2, 1, 1000, 5),
        FileKey(1, 1, 999, 5),
        FileKey(1, 1, 1000, 6),
    ):
        assert cache.get(other, MADE) is None


def test_the_directory_is_the_users_own_alone(tmp_path):
    tmp_path.joinpath("columns").mkdir(mode=0o755)
    cache = ColumnCache(tmp_path)
    put(cache, 1)
    assert stat.S_IMODE(cache.directory().stat().st_mode) == 0o700
    (file,) = cache.directory().iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    size = put(ColumnCache(tmp_path / "other"), 1).num_bytes
    cache = ColumnCache(tmp_path, max_bytes=3 * size)
    for inode in (1, 2, 3):
        put(cache, inode)
        os.utime(cache.path(key(inode), MADE), (inode, inode))
    assert cache.get(key(1), MADE) is not None  # used now
    put(cache, 4)
    kept = {inode for inode in (1, 2, 3, 4) if cache.get(key(inode), MADE) is not None}
    assert kept == {1, 3, 4}


def test_many_small_files_are_not_counted_at_each(tmp_path, monkeypatch):
    counted = []
    scandir = os.scandir
    monkeypatch.setattr(
        os, "scandir", lambda path: counted.append(path) or scandir(path)
    )
    size = put(ColumnCache(tmp_path / "other"), 1).num_bytes
    counted.clear()
    cache = ColumnCache(tmp_path, max_bytes=100 * size)
    for inode in range(1, 400):
        put(cache, inode)
    assert len(counted) < 60
    assert len(names(cache)) <= 107
    assert cache.get(key(399), MADE) is not None


def test_one_that_is_larger_than_all_may_be_still_is_kept(tmp_path):
    cache = ColumnCache(tmp_path, max_bytes=10)
    put(cache, 1)
    put(cache, 2)
    assert cache.get(key(1), MADE) is None
    assert cache.get(key(2), MADE) is not None


def test_mapped_tables_outlive_their_file(tmp_path):
    cache = ColumnCache(tmp_path, max_bytes=10)
    first = put(cache, 1, num_rows=50_000)
    put(cache, 2)
    assert int(first["t"]["c"][-1]) == 49_999 << 40


def test_a_damaged_file_is_a_miss_and_goes(tmp_path):
    cache = ColumnCache(tmp_path)
    put(cache, 1)
    (file,) = cache.directory().iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.get(key(1), MADE) is None
    assert names(cache) == set()


def test_forgotten_parts_go_and_those_under_way_stay(tmp_path):
    cache = ColumnCache(tmp_path)
    old, new = cache.directory() / "x.part", cache.directory() / "y.part"
    for part in (old, new):
        part.touch()
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))
    put(cache, 1)
    assert names(cache) == {new.name, cache.path(key(1), MADE).name}


def test_what_could_not_be_written_leaves_nothing_behind(tmp_path):
    cache = ColumnCache(tmp_path)

    def fail(file):
        file.write(b"some")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        cache.put(key(1), MADE, fail)
    with pytest.raises(NotColumnsError):
        cache.put(key(1), MADE, lambda file: None)
    assert names(cache) == set()


def test_a_directory_that_vanishes_is_made_again(tmp_path):
    cache = ColumnCache(tmp_path)
    put(cache, 1)
    for file in cache.directory().iterdir():
        file.unlink()
    cache.directory().rmdir()
    assert cache.get(key(1), MADE) is None
    put(cache, 1)
    assert cache.get(key(1), MADE) is not None


@pytest.mark.parametrize("obstacle", ["a file", "a link", "a folder for all"])
def test_where_it_cannot_be_a_temporary_directory_stands_in(tmp_path, obstacle, caplog):
    if obstacle == "a file":
        tmp_path.joinpath("columns").write_text("")
    elif obstacle == "a folder for all":
        tmp_path.joinpath("columns").mkdir()
        tmp_path.joinpath("columns").chmod(0o777)
    else:
        tmp_path.joinpath("other").mkdir()
        tmp_path.joinpath("columns").symlink_to(tmp_path / "other")
    cache = ColumnCache(tmp_path)
    put(cache, 1)
    assert cache.get(key(1), MADE) is not None
    assert not cache.directory().is_relative_to(tmp_path)
    assert "MEMBOARD_CACHE_DIR" in caplog.text
    assert stat.S_IMODE(cache.directory().stat().st_mode) == 0o700


def test_two_may_write_the_same_at_once(tmp_path):
    caches = [ColumnCache(tmp_path), ColumnCache(tmp_path)]

    def work(cache: ColumnCache) -> None:
        for _ in range(30):
            put(cache, 1)
            found = cache.get(key(1), MADE)
            assert found is None or len(found["t"]["c"]) == 10

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(caches[0]) == {caches[0].path(key(1), MADE).name}
