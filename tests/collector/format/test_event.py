"""Events of our own encoder beside TensorBoard's protobuf classes, byte by byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2, types_pb2

from memboard.collector.format.encoding.event import (
    Description,
    read_event,
    scalar_event,
    text_event,
    version_event,
)

TIMES = st.floats(0, 4e9)
STEPS = st.integers(-(2**63), 2**63 - 1)
TAGS = st.text(max_size=300)
DESCRIPTIONS = st.none() | st.builds(
    Description, st.text(min_size=1, max_size=20), st.integers(1, 3), st.text()
)


def event_of(tag, at, description, fill):
    event = event_pb2.Event(wall_time=at[0], step=at[1])
    value = event.summary.value.add(tag=tag)
    if description is not None:
        value.metadata.plugin_data.plugin_name = description.plugin
        value.metadata.data_class = description.data_class
        value.metadata.display_name = description.title
    value.tensor.tensor_shape.SetInParent()
    fill(value.tensor)
    return event


@given(TAGS, st.binary(max_size=70_000), st.tuples(TIMES, STEPS), DESCRIPTIONS)
def test_a_text_is_what_protobuf_writes_and_comes_back(tag, payload, at, description):
    def fill(tensor):
        tensor.dtype = types_pb2.DT_STRING
        tensor.string_val.append(payload)

    data = text_event(tag, payload, at, description)
    event = event_of(tag, at, description, fill)
    assert event_pb2.Event.FromString(data) == event
    if tag:
        assert data == event.SerializeToString(deterministic=True)
    assert read_event(memoryview(data)) == (tag, payload)


@given(
    TAGS, st.floats(width=32, allow_nan=False), st.tuples(TIMES, STEPS), DESCRIPTIONS
)
def test_a_scalar_is_what_protobuf_writes(tag, number, at, description):
    def fill(tensor):
        tensor.dtype = types_pb2.DT_FLOAT
        tensor.float_val.append(number)

    data = scalar_event(tag, number, at, description)
    assert event_pb2.Event.FromString(data) == event_of(tag, at, description, fill)
    assert read_event(memoryview(data)) == (tag, None)


@given(TIMES)
def test_the_first_event_is_what_protobuf_writes(wall_time):
    event = event_pb2.Event(wall_time=wall_time, file_version="brain.Event:2")
    data = version_event(wall_time, "brain.Event:2")
    assert data == event.SerializeToString(deterministic=True)
    assert read_event(memoryview(data)) is None


@given(st.lists(TAGS, max_size=3), st.binary(max_size=50), st.booleans())
def test_events_of_other_writers_are_read(tags, payload, is_graph):
    event = event_pb2.Event(wall_time=1.5, step=-3)
    if is_graph:
        event.graph_def = payload
        tags = []
    for tag in tags:
        value = event.summary.value.add(tag=tag, node_name="node")
        value.simple_value = 2.5
        value.metadata.summary_description = "of another writer"
    found = read_event(memoryview(event.SerializeToString()))
    assert found == ((tags[0], None) if len(tags) == 1 else None)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_a_value_error(data):
    try:
        found = read_event(memoryview(data))
    except ValueError:
        return
    assert found is None or isinstance(found[0], str)


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_cut_event_is_never_taken_for_a_whole_one(payload, data):
    whole = text_event("memboard/note", payload, (1.0, 2), None)
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        found = read_event(memoryview(whole[:cut]))
    except ValueError:
        return
    assert found is None
