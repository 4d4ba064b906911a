"""A rank's file in segments: when they end, what each holds, what a bad disk does."""

from __future__ import annotations

import errno

import pytest

from memboard.collector.format.encoding.framing import FramedRecord, read_frames
from memboard.collector.format.names import rank_file_name
from memboard.collector.format.records import (
    SEGMENT,
    Segment,
    decode_record,
)
from memboard.collector.writing.append import AppendFile, DeletedError
from memboard.collector.writing.segments import SegmentedFile, SegmentPlan
from tests.builders import START_NS, make_header
from tests.segmented import ATTEMPT, HOST, STEP, Written

HEADER = make_header(3, ATTEMPT, START_NS, job="", world_size=8)


def head_of(path) -> Segment:
    """The record that a later segment begins with, behind the version."""
    version, head = list(read_frames(path.read_bytes()))[:2]
    assert version.kind == ""
    record = decode_record(head.kind, head.payload)
    assert isinstance(record, Segment)
    return record


def payloads(paths) -> list[tuple[str, bytes]]:
    """All records of some files, heads left out."""
    found = []
    for path in paths:
        for item in read_frames(path.read_bytes(), last=True):
            assert isinstance(item, FramedRecord)
            if item.kind not in ("", "header", "schema", SEGMENT):
                found.append((item.kind, item.payload))
    return found


# The file.


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def made(tmp_path, **plan):
    clock = Clock()
    finished = []
    known = {"max_bytes": 10**6, "seconds": 60.0, "finished": finished.append}
    path = tmp_path / rank_file_name(3, ATTEMPT)
    file = SegmentedFile(path, SegmentPlan(**{**known, **plan}), clock)
    file.append(b"head")
    return file, clock, finished


def test_a_segment_ends_by_size_and_never_for_its_head_alone(tmp_path):
    file, _, finished = made(tmp_path, max_bytes=100)
    assert file.append(b"x" * 90) == 4
    assert not file.is_due()
    assert file.append(b"x" * 10) == 94
    assert file.is_due()
    file.begin(b"h" * 300)
    assert not file.is_due(), "a head that is longer than a segment"
    assert finished == [tmp_path / rank_file_name(3, ATTEMPT, 0)]
    assert file.append(b"y") == 104 + 300
    assert file.end == 405
    assert file.is_due()
    file.finish()
    assert [path.stat().st_size for path in finished] == [104, 301]
    assert file.path == finished[-1]


def test_a_segment_ends_by_age_once_it_holds_anything(tmp_path):
    file, clock, _ = made(tmp_path)
    clock.now += 61
    assert not file.is_due()
    file.append(b"x")
    assert file.is_due()
    file.begin(b"head")
    clock.now += 59
    file.append(b"x")
    assert not file.is_due()
    clock.now += 1
    assert file.is_due()
    file.close()


def test_a_long_run_has_a_bounded_number_of_segments(tmp_path):
    file, clock, _ = made(tmp_path)
    ages, last = [], clock.now
    end = clock.now + 7 * 86400
    while clock.now < end:
        clock.now += 10
        file.append(b"x")
        if file.is_due():
            ages.append(clock.now - last)
            last = clock.now
            file.begin(b"head")
    file.close()
    assert ages[0] == 60
    assert max(ages) <= 3610
    assert ages[-1] >= 3600
    assert len(ages) == pytest.approx(300, rel=0.05)


def test_a_disk_that_is_full_at_the_turn_loses_nothing(tmp_path, monkeypatch):
    run = Written(tmp_path, segment_bytes=4000).steps(100)
    assert len(run.paths) == 1
    real = AppendFile.append

    def append(self, data):
        if ".0001." in self.path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, data)

    with monkeypatch.context() as patched:
        patched.setattr(AppendFile, "append", append)
        with pytest.raises(OSError, match="No space"):
            run.steps(1000)
        assert len(run.paths) == 1, "a headless segment helps nobody"
    run.file.flush()
    assert len(run.paths) == 2
    run.close()


def test_a_deleted_segment_is_noticed_at_the_turn(tmp_path):
    file, _, _ = made(tmp_path, max_bytes=10)
    file.append(b"x" * 20)
    file.path.unlink()
    with pytest.raises(DeletedError):
        file.begin(b"head")
    file.close()


# The recording.


def test_segments_hold_what_one_file_holds_and_say_where_they_begin(tmp_path):
    one = Written(tmp_path / "one", segment_bytes=0).steps(3000).close()
    cut = Written(tmp_path / "cut", segment_bytes=8000).steps(3000).close()
    assert len(cut.paths) > 4
    assert cut.finished == cut.paths
    kinds = [[kind for kind, _ in payloads(run.paths)] for run in (one, cut)]
    assert [k for k in kinds[0] if k != "digest"] == [
        k for k in kinds[1] if k != "digest"
    ]
    at = cut.paths[0].stat().st_size
    for number, path in enumerate(cut.paths[1:], start=1):
        head = head_of(path)
        assert (head.number, head.base_offset) == (number, at)
        assert head.header.attempt == ATTEMPT
        assert head.schemas[0] == STEP
        at += path.stat().st_size
    assert HOST in head_of(cut.paths[-1]).schemas
