"""Memory timelines of `export_memory_timeline`, in its three forms."""

from __future__ import annotations

import gzip
import json

import pytest

from memboard.tb_plugin.worker.errors import RefusedError
from tests.tb_plugin.readers.traces.reading import read

T0 = 1_700_000_000_000_000_000


def series_of(trace) -> dict[str, list[tuple[int, float]]]:
    return {
        one.name: list(
            zip(
                trace.counters.time_ns[one.first_row :][: one.num_points].tolist(),
                trace.counters.value[one.first_row :][: one.num_points].tolist(),
                strict=True,
            )
        )
        for one in trace.series
    }


def test_changes_add_up_by_category():
    rows = [
        [-1, 0, 100, 0],
        [T0, 1, 8, 4],
        [T0 + 5, 1, 3, 4],
        [T0 + 5, 3, -8, 4],
        [T0 + 9, 3, -3, 4],
    ]
    trace = read(gzip.compress(json.dumps(rows).encode()))
    assert (trace.base_ns, trace.has_wall_clock) == (T0, True)
    assert series_of(trace) == {
        "activation": [(0, 8.0), (5, 3.0), (9, 0.0)],
        "parameter": [(0, 100.0), (9, 100.0)],
    }
    assert trace.facts.metadata["format"] == "memory_timeline_raw"
    (track,) = trace.tracks
    assert track.kind == "counter"


def test_sizes_are_taken_as_they_are():
    times = [T0 // 1000, T0 // 1000 + 7]
    sizes = [[0, 5, 0, 0, 0, 1, 0, 0, 0], [0, 5, 0, 0, 0, 2, 0, 0, 9]]
    trace = read(json.dumps([times, sizes]).encode())
    assert series_of(trace) == {
        "activation": [(0, 1.0), (7000, 2.0)],
        "parameter": [(0, 5.0), (7000, 5.0)],
        "unknown": [(0, 0.0), (7000, 9.0)],
    }


def test_a_page_has_its_picture_and_its_peaks():
    page = (
        b"<html><head><title>Max memory allocated: 1.50 GiB, Max memory reserved: 2 GiB"
        b'</title></head><img src="data:image/png;base64,iVBORw0KGgo="></html>'
    )
    facts = read(page).facts
    assert facts.metadata["max_allocated_bytes"] == 3 * 2**29
    assert facts.metadata["max_reserved_bytes"] == 2**31


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2, 3, 99]],
        [[1, 1, 2**60, 0]],
        [[1, 1, 2**70, 0]],
        [[1, 2], [[0, 1]]],
        [[1, 2], [[0] * 9]],
        [[1e300], [[0] * 9]],
        [[]],
    ],
)
def test_other_lists_of_lists_are_refused(rows):
    with pytest.raises(RefusedError, match="neither"):
        read(json.dumps(rows).encode())
