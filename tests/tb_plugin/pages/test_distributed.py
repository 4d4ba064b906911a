"""The route `/distributed` where traces of ranks, or steps of them, are missing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kineto_files import trained
from tests.tb_plugin.client import Page, answered


def distributed_of(page: Page, **query):
    """The answer, once the traces that it is of are open."""
    return answered(
        lambda: page.of_run("/distributed", "exp", **query),
        lambda answer: not answer["num_opening"],
    )


@pytest.mark.parametrize("ranks", [(0,), (2,), (0, 2)])
def test_where_ranks_have_no_trace_waiting_is_not_known(tmp_path, ranks):
    for rank in ranks:
        made = trained(rank, 3, 0 if rank else 150)
        made.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    answer = distributed_of(Page(tmp_path))
    table, groups = answer["collectives"], answer["groups"]
    for unknown in (
        *(answer["transfer_ms"], answer["waiting_ms"]),
        *(table["transfer_ms"], table["bus_bytes_per_second"], table["num_last"]),
        *(groups["mean_skew_ms"], groups["max_skew_ms"], groups["last_share"]),
    ):
        assert np.isnan(unknown).all()
    assert table["num_compared"].tolist() == [0] * len(ranks)
    assert set(groups["last_rank"].tolist()) <= {-1}
    assert (table["total_ms"] > 0).all()
    assert answer["missing"].tolist() == sorted({0, 1, 2} - set(ranks))
    assert (answer["num_missing"], answer["num_matched"]) == (3 - len(ranks), 0)
    assert answer["findings"] == []


def test_a_rank_without_the_step_that_is_chosen_waited_for_an_unknown_time(tmp_path):
    for rank in range(2):
        made = trained(rank, 2, 150)
        if rank == 1:
            made.events = [
                one for one in made.events if one["name"] != "ProfilerStep#7"
            ]
        made.write(tmp_path / "exp" / f"host_{rank}.1.pt.trace.json")
    answer = distributed_of(Page(tmp_path), step=7)
    assert np.isnan(answer["step_ms"]).tolist() == [False, True]
    assert np.isnan(answer["waiting_ms"]).tolist() == [False, True]
