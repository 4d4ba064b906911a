"""File names say rank, attempt and segment, and never look like TensorBoard's own."""

from __future__ import annotations

import pytest

from memboard.collector.format.names import parse_rank_file_name, rank_file_name

ATTEMPT = "20261120T101530123-1f2e3d4c"


@pytest.mark.parametrize("rank", [0, 12, 99_999, 1_234_567])
@pytest.mark.parametrize("segment", [None, 0, 7, 12_345])
def test_names_round_trip(rank, segment):
    name = rank_file_name(rank, ATTEMPT, segment)
    assert parse_rank_file_name(name) == (rank, ATTEMPT, segment)
    assert "tfevents" not in name


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents.1",
        "rank00012.events",
        f"rank00012-{ATTEMPT}.events.tmp",
        f"../rank00012-{ATTEMPT}.events",
        f"rank-0012-{ATTEMPT}.events",
        f"rank00012-{ATTEMPT}.7.events",
        f"rank0001²-{ATTEMPT}.events",
        "",
    ],
)
def test_other_names_are_not_ours(name):
    assert parse_rank_file_name(name) is None
