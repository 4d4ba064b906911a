"""Files that are whole or not there."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from memboard.collector.process.whole_file import begun, write_whole


def test_a_planted_link_is_not_written_through(tmp_path):
    target = tmp_path / "theirs"
    target.write_text("before")
    folder = tmp_path / "logdir"
    folder.mkdir()
    path = folder / "note.json"
    guess = f"{path.name}.{os.getpid()}.{threading.get_ident()}.part"
    (folder / guess).symlink_to(target)
    path.symlink_to(target)
    write_whole(path, "new")
    assert target.read_text() == "before"
    assert path.read_text() == "new"
    assert not path.is_symlink()


def test_no_two_are_written_under_one_name_and_none_is_left(tmp_path):
    path = tmp_path / "note.json"
    with begun(path) as first, begun(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert [file.name for file in tmp_path.iterdir()] == ["note.json"]
    with suppress(OSError), begun(path) as part:
        part.write_text("half")
        raise OSError("the disk is full")
    assert [file.name for file in tmp_path.iterdir()] == ["note.json"]
    assert path.read_text() in ("first", "second")
