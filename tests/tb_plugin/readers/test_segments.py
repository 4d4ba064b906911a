"""A rank's file in segments reads as one file: whole, growing, torn, with gaps."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memboard.collector.format.encoding.framing import read_frames
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.records import CHUNK, decode_chunk, decode_chunk_ref
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from memboard.tb_plugin.formats.recording.frames.faults import in_words
from memboard.tb_plugin.formats.recording.frames.parts import (
    Part,
    PartsReader,
    end_to_end,
    lay_out,
)
from memboard.tb_plugin.formats.recording.listing import RankFileListing
from memboard.tb_plugin.formats.recording.rank_file import RankFile
from memboard.tb_plugin.formats.recording.series import SeriesKey, SeriesReader
from memboard.tb_plugin.index.listing import FoundRun
from tests.segmented import ATTEMPT, Written, value_of

KEY = SeriesKey("step", "rss_bytes")
NUM_STEPS = 9000
SEGMENT_BYTES = 20_000


def listed(run_dir):
    """The parts of the one rank, as the index finds them."""
    folder = run_dir / "plugins" / "memboard"
    found = FoundRun.recorded("run", "run", str(folder.resolve()), "run", "/")
    found.list_files()
    assert found.problems == ()
    (parts,) = found.files.values()
    return parts


def opened(run_dir) -> RankFile:
    file = RankFile(0, ATTEMPT, "run")
    file.update(listed(run_dir), Budget(30))
    file.check(Budget(30))
    return file


def rows_of(file, low=-np.inf, high=np.inf) -> dict[int, float]:
    reader = SeriesReader(Cache())
    rows = reader.row_by_row(file, KEY, None, low, high, Budget(30))
    pairs = zip(rows.first.tolist(), rows.high.tolist(), strict=True)
    return {step: value for step, value in pairs if not np.isnan(value)}


def highest_of(file) -> list[float]:
    return SeriesReader(Cache()).rollup(file, KEY, None).high.tolist()


def expected(*steps: range) -> dict[int, float]:
    return {step: float(value_of(step)) for some in steps for step in some}


def captured(file) -> list[int]:
    """Captures that read back whole, by the step they say."""
    found = []
    for entry in captures_of(file, Budget(30)):
        values = read_capture(file, entry).tables["values"]["x"]
        assert values.tolist() == [n * (entry.step + 1) for n in range(200)]
        found.append(entry.step)
    return found


@pytest.fixture
def both(tmp_path):
    """The same recording as one file and in segments."""
    Written(tmp_path / "one", segment_bytes=0).steps(NUM_STEPS).close()
    cut = Written(tmp_path / "cut", segment_bytes=SEGMENT_BYTES).steps(NUM_STEPS)
    cut.close()
    assert len(cut.paths) > 4
    digests = sum(path.read_bytes().count(b"memboard/digest") for path in cut.paths)
    assert digests > 2, "chains of digests go through segments"
    return tmp_path / "one", tmp_path / "cut"


def test_segments_read_as_the_one_file_does(both):
    one, cut = map(opened, both)
    for file in (one, cut):
        assert file.faults == []
        assert file.close is not None
        assert not file.is_torn
        assert rows_of(file) == expected(range(NUM_STEPS))
        assert captured(file) == list(range(0, NUM_STEPS, 400))
    assert highest_of(one) == highest_of(cut)
    assert one.schemas == cut.schemas
    assert one.header == cut.header
    assert [n.data for n in one.notes()] == [n.data for n in cut.notes()]
    assert rows_of(cut, 1990, 2010).keys() >= set(range(1990, 2011))


def test_every_segment_is_an_event_file_of_its_own(both):
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    _, cut = both
    for part in listed(cut):
        events = list(EventFileLoader(part.path).Load())
        assert events[0].file_version == "brain.Event:2"
        first = events[1].summary.value[0]
        assert first.tag == f"memboard/{'segment' if part.segment else 'header'}"
        assert first.metadata.plugin_data.plugin_name == "memboard"


def test_a_recording_is_followed_while_it_goes_from_segment_to_segment(tmp_path):
    run = Written(tmp_path, segment_bytes=SEGMENT_BYTES)
    file = RankFile(0, ATTEMPT, "run")
    reader = SeriesReader(Cache())
    generation = None
    for count in range(100, NUM_STEPS + 1, 100):
        run.steps(100, per_flush=7)
        file.update(listed(tmp_path), Budget(30))
        generation = generation or file.generation
        rows = reader.row_by_row(file, KEY, None, -np.inf, np.inf, Budget(30))
        assert len(rows.first) == count
    assert len(run.paths) > 4
    assert file.generation == generation, "nothing was read twice"
    assert file.faults == []
    run.close()
    file.update(listed(tmp_path), Budget(30))
    assert file.close is not None
    assert rows_of(file) == expected(range(NUM_STEPS))


@pytest.mark.parametrize("missing", [[0], [2], [1, 2], [0, 1, 3]])
def test_where_segments_are_missing_the_rest_is_shown(both, missing):
    one, cut = both
    paths = sorted(cut.rglob("rank*.events"))
    lost: set[int] = set()
    for number in missing:
        lost |= steps_in(paths[number])
        paths[number].unlink()
    assert 0 < len(lost) < NUM_STEPS
    file = opened(cut)
    assert rows_of(file).keys() == set(range(NUM_STEPS)) - lost
    assert set(rows_of(file).items()) <= set(expected(range(NUM_STEPS)).items())
    assert highest_of(file) == highest_of(opened(one)), "the last digest is there"
    assert file.header.pid == opened(one).header.pid
    whole = [step for step in range(0, NUM_STEPS, 400) if step in captured_here(file)]
    assert len(whole) > 3
    (fault,) = [fault for fault in file.faults if "missing" in fault.what]
    assert all(f"{number:04d}" in fault.what for number in (missing[0], missing[-1]))
    assert "Copy" in fault.remedy
    # A capture that lay there is listed and says so when it is opened.
    assert all(f is fault or "capture" in f.what for f in file.faults)


def steps_in(path) -> set[int]:
    """Steps whose rows lie in a file, by its bytes alone."""
    found = set()
    for item in read_frames(path.read_bytes()):
        if item.kind != CHUNK:
            continue
        if decode_chunk_ref(item.payload, item.offset, item.end)[0].schema_id == 0:
            found |= set(decode_chunk(item.payload)[1].tolist())
    return found


def captured_here(file) -> set[int]:
    found = set()
    for entry in captures_of(file, Budget(30)):
        try:
            read_capture(file, entry)
        except CorruptError:
            continue
        found.add(entry.step)
    return found


def test_the_fault_names_the_mirror_that_the_recording_went_to(both, monkeypatch):
    _, cut = both
    sorted(cut.rglob("rank*.events"))[1].unlink()
    header = RankFile.header.fget
    config = {"remote": {"url": "s3://bucket/{run_name}"}}
    monkeypatch.setattr(
        RankFile, "header", property(lambda file: replace(header(file), config=config))
    )
    (fault,) = opened(cut).faults
    assert "s3://bucket/{run_name}" in fault.remedy


def test_a_digest_that_is_missing_is_made_up_for_by_reading_the_rows(both):
    """The last segment holds close and digest; without it, all rows are read."""
    _, cut = both
    max(cut.rglob("rank*.events")).unlink()
    file = opened(cut)
    assert file.close is None
    assert file.faults == []
    kept = len(rows_of(file))
    assert rows_of(file) == expected(range(kept))
    assert 0 < kept <= NUM_STEPS


@given(cut_at=st.floats(0, 1), number=st.integers(0, 4))
@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_segment_cut_short_costs_its_own_tail_alone(tmp_path_factory, cut_at, number):
    run_dir = tmp_path_factory.mktemp("short")
    run = Written(run_dir, segment_bytes=8000).steps(3000).close()
    path = run.paths[number]
    before = expected(range(3000))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(round(size * cut_at))
    file = opened(run_dir)
    found = rows_of(file)
    assert set(found.items()) <= set(before.items())
    gone = before.keys() - found.keys()
    assert max(gone, default=0) - min(gone, default=0) < NUM_STEPS / 2
    assert len(gone) == 0 or max(gone) - min(gone) + 1 == len(gone), "one stretch"


def test_what_is_torn_at_the_end_of_the_last_segment_is_ignored(tmp_path):
    run = Written(tmp_path, segment_bytes=SEGMENT_BYTES).steps(NUM_STEPS)
    path = run.paths[-1]
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    file = opened(tmp_path)
    assert file.is_torn
    assert file.faults == []
    kept = rows_of(file)
    assert kept == expected(range(len(kept)))
    path.write_bytes(data)
    file.update(listed(tmp_path), Budget(30))
    assert rows_of(file) == expected(range(NUM_STEPS))


def test_segments_that_come_back_heal_the_file(both):
    _, cut = both
    path = sorted(cut.rglob("rank*.events"))[2]
    content = path.read_bytes()
    path.unlink()
    file = RankFile(0, ATTEMPT, "run")
    file.update(listed(cut), Budget(30))
    assert file.faults
    path.write_bytes(content)
    file.update(listed(cut), Budget(30))
    assert file.faults == []
    assert rows_of(file) == expected(range(NUM_STEPS))


def test_a_listing_that_met_a_segment_while_it_grew_looks_at_it_again(
    tmp_path, monkeypatch
):
    run = Written(tmp_path, segment_bytes=SEGMENT_BYTES).steps(100)
    folder = tmp_path / "plugins" / "memboard"
    found = FoundRun.recorded("run", "run", str(folder.resolve()), "run", "/")
    found.list_files()
    file = RankFile(0, ATTEMPT, "run")
    file.update(*found.files.values(), Budget(30))
    real = RankFileListing._look_at

    def look_at(self, entry, *found):
        """The first segment as it was; the second one as it is later."""
        if len(run.paths) == 1:
            real(self, entry, *found)
            while len(run.paths) == 1:
                run.steps(20)
            with os.scandir(folder) as entries:
                entry = next(e for e in entries if ".0001." in e.name)
        real(self, entry, *found)

    monkeypatch.setattr(RankFileListing, "_look_at", look_at)
    found.list_files()
    (parts,) = found.files.values()
    assert [p.size_bytes for p in parts] == [p.stat().st_size for p in run.paths]
    file.update(parts, Budget(30))
    assert file.faults == []
    assert rows_of(file) == expected(range(run.step))


# Layouts, by themselves.


def part(number, size) -> Part:
    return Part(
        f"/{number}", size, number or 0, 1, number or 0, number, f"{number}", ""
    )


sizes = st.lists(st.integers(0, 50), min_size=1, max_size=8)


@given(sizes=sizes, kept=st.sets(st.integers(0, 7), min_size=1), at=st.integers(0, 400))
def test_a_layout_has_every_byte_at_its_place(sizes, kept, at):
    every = tuple(part(number, size) for number, size in enumerate(sizes))
    bases = dict(zip(every, [sum(sizes[:n]) for n in range(len(sizes))], strict=True))
    here = tuple(p for p in every if p.segment in kept)
    layout = lay_out(here, bases.__getitem__)
    held = {
        base + n: (p.path, n)
        for p, base in bases.items()
        if p in here
        for n in range(p.size_bytes)
    }
    extent = layout.at(at)
    if extent is None:
        assert at not in held
        assert (layout.gap_at(at) is not None) == (at < layout.size_bytes)
        assert layout.end_of_run(at) == at
    else:
        assert held[at] == (extent.part.path, at - extent.start)
        run = layout.end_of_run(at)
        assert all(n in held for n in range(layout.start_of_run(at + 1), run))
        assert run not in held


def test_segments_that_overlap_are_clipped_to_where_the_next_begins():
    parts = part(0, 100), part(1, 50)
    layout = lay_out(parts, {parts[0]: 0, parts[1]: 80}.__getitem__)
    assert [(e.start, e.end) for e in layout.extents] == [(0, 80), (80, 130)]
    layout = lay_out(parts, lambda _part: None)
    assert layout.size_bytes == end_to_end(parts).size_bytes == 150


def test_reading_stops_before_a_gap(both):
    _, cut = both
    paths = sorted(cut.rglob("rank*.events"))
    sizes = [path.stat().st_size for path in paths]
    paths[1].unlink()
    layout = opened(cut).layout
    with PartsReader(layout) as reader:
        assert len(reader.read(0, 1 << 40)) == sizes[0]
        assert reader.read(sizes[0], 100) == b""
        after = sizes[0] + sizes[1]
        assert len(reader.read(after, 1 << 40)) == sum(sizes[2:])
        assert reader.read(1 << 60, 10) == b""


def test_missing_numbers_are_said_shortly():
    assert in_words([(3, 3), (5, 7)]) == "0003, 0005 to 0007"
    assert in_words([(n, n) for n in range(0, 60, 2)]).endswith("and 10 more stretches")
