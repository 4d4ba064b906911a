"""Findings about the peaks of all ranks, and about one rank among them."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.findings.ranks import Peaks, peak_findings

GIB = 1 << 30


def found(
    *,
    rank=None,
    ooms=(),
    outliers=(),
    unreadable=(),
    empty=(),
    unread=0,
    has_errors=False,
):
    """By key, the sentences about eight ranks that peak at 10, 11, ... GiB."""
    ranks = range(8)
    peaks = Peaks(
        ranks=ranks,
        peak_bytes=np.array([(10 + one) * GIB for one in ranks], np.float64),
        peak_step=np.full(8, 3.0),
        capacity_bytes=np.full(8, 80.0 * GIB),
        capacity_kind="device",
        median_bytes=13.5 * GIB,
        growth=np.zeros(8),
        num_ooms=np.array([one in ooms for one in ranks], np.float64),
        outliers=outliers,
        unreadable=dict(unreadable),
        empty=empty,
        num_unread=unread,
    )
    return {
        one.key: one.sentence
        for one in peak_findings(peaks, rank, has_errors=has_errors)
    }


def test_where_all_is_even_the_highest_peak_is_told():
    assert found() == {
        "peak": "The highest peak is 17.0 GiB, 21.2 % of the device's 80.0 GiB, on rank"
        " 7. No rank stands out."
    }
    of_one = found(rank=0)["peak"]
    assert of_one.startswith("The peak of rank 0 is 10.0 GiB, 12.5 %")
    assert of_one.endswith("3.50 GiB below the median of all ranks.")


def test_the_only_rank_that_ran_out_is_told_from_the_others():
    sentence = found(ooms=(3,))["ran_out"]
    assert sentence.startswith(
        "Rank 3 ran out of memory; the other 7 ranks did not. Its peak"
    )
    assert "ran_out" not in found(ooms=(3,), has_errors=True)
    assert "ran_out" not in found(ooms=(3,), rank=4)


@pytest.mark.parametrize("rank", [None, 3])
def test_nothing_is_said_of_others_that_ran_out_too(rank):
    sentence = found(ooms=(3, 5), rank=rank)["ran_out"]
    assert "did not" not in sentence
    name = "Rank 3 ran" if rank == 3 else "Ranks 3 and 5 of 8 ran"
    assert sentence.startswith(name)


@pytest.mark.parametrize("rank", [None, 7])
def test_ranks_far_above_the_others(rank):
    sentence = found(outliers=(7, 6), rank=rank)["uneven_peaks"]
    assert sentence == (
        "Rank 7 peaks 3.50 GiB above the median of 8 ranks. Also far above: rank 6."
    )
    alone = found(outliers=(7,))["uneven_peaks"]
    assert alone.endswith("No other rank stands out.")
    assert "uneven_peaks" not in found(outliers=(7,), unread=2)


def test_what_cannot_be_read_and_what_is_still_being_read():
    assert found(unread=2)["reading"] == "2 of 8 ranks are still being read."
    assert "peak" not in found(unread=2)  # it would change its rank while they are read
    assert "peak" in found(unread=2, rank=1)
    lost = found(unreadable={1: "", 2: "", 3: ""})["unreadable"]
    assert lost == "Ranks 1, 2 and 3 of 8 could not be read."
    assert "unreadable" not in found(unreadable={1: ""}, rank=2)


def test_why_ranks_could_not_be_read_is_said():
    def sentence(**reasons):
        ranks = {int(name[1:]): why for name, why in reasons.items()}
        return found(unreadable=ranks)["unreadable"]

    empty = "The file is empty."
    assert sentence(r1=empty) == "Rank 1 could not be read: the file is empty."
    assert sentence(r1=empty, r2=empty).endswith("be read: the file is empty.")
    assert sentence(r1=empty, r2="").endswith("be read: rank 1: the file is empty.")
    assert sentence(r1="", r2=empty).endswith("could not be read.")


def test_a_file_without_a_record_yet_is_no_error():
    said = found(empty=(2,))
    assert "unreadable" not in said
    assert said["empty"].startswith("Rank 2 has recorded nothing yet: no record")
    assert "empty" not in found(empty=(2,), rank=1)
