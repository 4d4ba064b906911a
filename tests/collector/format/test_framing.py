"""Frames survive truncation, bit flips and foreign bytes; TensorBoard reads them."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from memboard.collector.format.encoding.framing import (
    Damage,
    FramedRecord,
    find_frame,
    find_last_frame,
    frame_record,
    frame_version,
    read_frames,
)

PAYLOADS = st.lists(st.binary(max_size=80), min_size=1, max_size=12)


def file_of(payloads: list[bytes]) -> bytes:
    buffer = io.BytesIO()
    buffer.write(frame_version(1.0))
    for step, payload in enumerate(payloads):
        buffer.write(frame_record("note", payload, wall_time=2.0, step=step))
    return buffer.getvalue()


def intact(frames) -> list[bytes]:
    return [f.payload for f in frames if isinstance(f, FramedRecord) and f.kind]


@given(PAYLOADS)
def test_records_come_back_in_order_with_their_offsets(payloads):
    data = file_of(payloads)
    frames = list(read_frames(data, 1000))
    assert intact(frames) == payloads
    assert frames[0].offset == 1000
    assert [f.end for f in frames][:-1] == [f.offset for f in frames][1:]
    assert frames[-1].end == 1000 + len(data)


def test_tensorboards_own_loader_reads_the_file(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(file_of([b"one", b"two"]))
    events = list(EventFileLoader(str(path)).Load())
    values = [v for event in events for v in event.summary.value]
    assert [v.tag for v in values] == ["memboard/note"] * 2
    assert values[0].metadata.plugin_data.plugin_name == "memboard"
    assert values[1].tensor.string_val[0] == b"two"


@given(PAYLOADS, st.data())
def test_any_prefix_yields_a_prefix_of_the_records_and_resumes(payloads, data):
    whole = file_of(payloads)
    cut = data.draw(st.integers(0, len(whole)))
    frames = list(read_frames(whole[:cut]))
    assert all(isinstance(frame, FramedRecord) for frame in frames)
    resume = frames[-1].end if frames else 0
    rest = list(read_frames(whole[resume:], resume))
    assert intact(frames) + intact(rest) == payloads


@given(PAYLOADS, st.data())
def test_one_flipped_byte_costs_at_most_one_record_and_is_reported(payloads, data):
    whole = bytearray(file_of(payloads))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    frames = list(read_frames(bytes(whole), last=True))
    survivors = intact(frames)
    damage = [frame for frame in frames if isinstance(frame, Damage)]
    assert damage
    missing = len(payloads) - len(survivors)
    assert missing <= 1
    if missing:
        lost = next(
            i
            for i in range(len(payloads))
            if payloads[:i] + payloads[i + 1 :] == survivors
        )
        assert payloads[lost] not in survivors or payloads.count(payloads[lost]) > 1


@given(st.binary(max_size=2000))
def test_foreign_bytes_yield_no_record_of_ours(garbage):
    assert intact(read_frames(garbage, last=True)) == []


@given(PAYLOADS, st.binary(min_size=1, max_size=100))
def test_frames_are_found_behind_a_stretch_of_garbage(payloads, garbage):
    record = frame_record("chunk", b"payload", wall_time=0.0, step=0)
    data = garbage + record
    assert find_frame(data) == len(garbage)
    for tail in (garbage, record[:-1]):
        whole = file_of(payloads) + tail
        last = find_last_frame(whole)
        assert last is not None
        frame = next(iter(read_frames(whole[last:], last)))
        assert isinstance(frame, FramedRecord)
        assert frame.payload == payloads[-1]
