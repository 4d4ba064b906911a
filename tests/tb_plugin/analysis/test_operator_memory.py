"""Memory events of operators: whom they are charged to, and what frees what."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace_memory.events import memory_devices, memory_pairs
from memboard.tb_plugin.analysis.trace_memory.operators import operator_memory
from tests.traces_builder import MadeTrace, memory_events

CPU, CUDA = (0, -1), (1, 0)


def memory_of(events):
    """Events as (time, bytes, address, device); sorted by time already."""
    return memory_events([(t, n, a, *device) for t, n, a, device in events])


def table_of(made: MadeTrace, events, **options):
    trace = replace(made.build(), memory=memory_of(events))
    times = TraceProfile(trace).times
    memory = trace.memory
    table = operator_memory(
        times,
        memory_pairs(memory),
        memory_devices(memory),
        **options,
    )
    names = ("num_calls", "increase_bytes", "self_increase_bytes", "num_allocations")
    names += ("self_num_allocations", "allocated_bytes", "self_allocated_bytes")
    return {
        (int(table.device_type[at]), trace.strings[int(table.name[at])]): tuple(
            int(getattr(table, name)[at]) for name in names
        )
        for at in range(len(table))
    }


def forward_and_backward() -> tuple[MadeTrace, list]:
    made = MadeTrace()
    made.slice("main", "aten::linear", 0, 100)
    made.slice("main", "aten::addmm", 10, 50)
    made.slice("main", "AddmmBackward0", 200, 100)
    events = [
        (20, 512, 7, CUDA),  # addmm's
        (80, 64, 8, CUDA),  # linear's own
        (250, -512, 7, CUDA),  # freed by backward
        (260, 1024, 9, CUDA),
    ]
    return made, events


def test_what_is_freed_is_charged_to_what_allocated_it():
    made, events = forward_and_backward()
    assert table_of(made, events) == {
        (1, "aten::linear"): (1, 64, 64, 2, 1, 576, 64),
        (1, "aten::addmm"): (1, 0, 0, 1, 1, 512, 512),
        (1, "AddmmBackward0"): (1, 1024, 1024, 1, 1, 1024, 1024),
    }


def test_an_operator_in_one_of_its_name_counts_an_event_once():
    made = MadeTrace()
    made.slice("main", "aten::to", 0, 100)
    made.slice("main", "aten::copy_", 5, 80)
    made.slice("main", "aten::to", 10, 50)
    found = table_of(made, [(20, 100, 1, CPU)])
    assert found[0, "aten::to"] == (2, 100, 100, 1, 1, 100, 100)
    assert found[0, "aten::copy_"] == (1, 100, 0, 1, 0, 100, 0)


def test_what_an_annotation_is_closer_to_is_nobodys():
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 100)
    made.slice("main", "my region", 10, 50, "user_annotation")
    assert table_of(made, [(20, 100, 1, CPU), (200, 50, 2, CPU)]) == {}


def test_marks_that_old_traces_list_among_operators_have_no_row():
    made, events = forward_and_backward()
    made.slice("main", "ProfilerStep#3", 0, 700)
    made.slice("main", "Optimizer.step#SGD.step", 400, 100)
    events = [*events, (450, 32, 10, CUDA)]
    assert table_of(made, events) == table_of(*forward_and_backward())


def test_a_range_takes_the_events_and_calls_in_it():
    made = MadeTrace()
    for start in (0, 100, 200):
        made.slice("main", "aten::mm", start, 50)
    events = [(10, 1, 1, CPU), (110, 2, 2, CPU), (210, 4, 3, CPU)]
    found = table_of(made, events, range_ns=(100, 199))
    assert found == {(0, "aten::mm"): (1, 2, 2, 1, 1, 2, 2)}


def test_addresses_are_of_a_device_and_used_again():
    memory = memory_of(
        [
            (0, 8, 5, CPU),
            (1, 8, 5, CUDA),
            (2, -8, 5, CPU),
            (3, 8, 5, CPU),
            (4, 8, 6, CPU),
            (5, -8, 5, CUDA),
            (6, -8, 9, CPU),  # of before the trace
            (7, 8, 6, CPU),  # its release was not seen
        ]
    )
    pairs = memory_pairs(memory)
    assert pairs.release.tolist() == [2, 5, -1, -1, -1, -1, -1, -1]
    assert pairs.allocation.tolist() == [-1, -1, 0, -1, -1, 1, -1, -1]
    assert pairs.are_known
    assert not memory_pairs(memory_of([(0, 8, 0, CPU)])).are_known


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 120),
        st.integers(-9, 9).filter(bool),
        st.integers(1, 3),
        st.sampled_from((CPU, CUDA)),
    ),
    max_size=20,
).map(lambda events: sorted(events, key=lambda event: event[0]))
SLICES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 60), st.sampled_from("abc")),
    max_size=12,
)


@given(SLICES, EVENTS)
def test_no_byte_is_lost_or_counted_twice(slices, events):
    made = MadeTrace()
    made.track("main")
    for start, took, name in slices:
        made.slice("main", name, start, took)
    trace = replace(made.build(), memory=memory_of(events))
    times = TraceProfile(trace).times
    owners = times.memory_operators
    found = table_of(made, events, charge="freeing")
    owned = sum(
        event[1] for event, owner in zip(events, owners, strict=True) if owner >= 0
    )
    assert sum(row[2] for row in found.values()) == owned
    for row in found.values():
        assert 0 <= row[4] <= row[3]
        assert 0 <= row[6] <= row[5]
    pairs = memory_pairs(trace.memory)
    for at, release in enumerate(pairs.release.tolist()):
        if release >= 0:
            assert pairs.allocation[release] == at
            assert events[at][1] > 0 > events[release][1]
            assert events[at][2:] == events[release][2:]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 12, 2**31 - 1]), st.sampled_from([-1, 0, 7, 10**9])
        ),
        max_size=30,
    )
)
def test_every_event_is_of_the_device_it_names(places):
    found = memory_devices(memory_of([(0, 1, 1, place) for place in places]))
    known = list(zip(found.device_type.tolist(), found.device.tolist(), strict=True))
    assert known == sorted(set(places))
    assert [known[at] for at in found.of_event.tolist()] == places
    for at, place in enumerate(known):
        rows = [row for row, one in enumerate(places) if one == place]
        assert found.events_of(at).tolist() == rows
