"""Collectives of one rank, and of several beside each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memboard.tb_plugin.analysis.ranks.collectives import item_bytes, kind_of
from memboard.tb_plugin.analysis.ranks.distributed import compared
from memboard.tb_plugin.analysis.trace.details import Collectives
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace, operator_details


def described(trace, rows, texts, **numbers):
    """`trace` with collective metadata on rows: (name, dtype, group) by row."""
    strings = [*trace.strings]

    def text(one: str) -> int:
        strings.append(one)
        return len(strings) - 1

    columns = {name: np.full(len(rows), -1) for name in Collectives.__slots__}
    columns["row"] = np.array(rows, dtype=np.int64)
    for at, (name, dtype, group) in enumerate(texts):
        columns["name"][at] = text(name)
        columns["dtype"][at] = text(dtype)
        columns["group"][at] = text(group)
    for name, values in numbers.items():
        columns[name] = np.array(values)
    return replace(trace, strings=tuple(strings), collectives=Collectives(**columns))


def kernels(
    *durations: int, name: str = "ncclDevKernel_AllGather_RING_LL"
) -> MadeTrace:
    """NCCL kernels 1,000 ns apart, each launched under a `record_param_comms`."""
    made = MadeTrace()
    for at, took in enumerate(durations):
        made.slice("main", "record_param_comms", at * 1000, 50)
        made.kernel(at * 1000 + 5, at * 1000 + 100, took, name)
    return made


def host_rows(trace) -> list[int]:
    return [
        row
        for row in range(len(trace.slices))
        if trace.name_of(row) == "record_param_comms"
    ]


def test_metadata_of_the_launching_call_describes_the_kernel():
    trace = kernels(10, 20).build()
    trace = described(
        trace,
        host_rows(trace),
        [("_reduce_scatter_base", "BFloat16", "1")] * 2,
        in_elements=[1000, 1000],
        out_elements=[250, 250],
        group_size=[4, 4],
        sequence=[7, 8],
    )
    found = TraceProfile(trace).collectives
    assert found.kind == ("reduce_scatter",) * 2, "metadata wins over the kernel's name"
    assert found.group == ("1", "1")
    assert found.num_bytes.tolist() == [2000, 2000]
    assert found.group_size.tolist() == [4, 4]
    assert found.sequence.tolist() == [7, 8]
    assert found.duration_ns.tolist() == [10, 20]


def test_without_metadata_the_kernels_name_says_what_it_is():
    trace = kernels(10).build()
    found = TraceProfile(trace).collectives
    assert (found.kind, found.group) == (("all_gather",), ("",))
    assert found.num_bytes.tolist() == [-1]


def test_a_backend_of_the_host_is_its_own_slices():
    made = MadeTrace()
    made.slice("worker", "gloo:all_reduce", 10, 90, "user_annotation")
    made.slice("worker", "gloo:all_reduce", 20, 50, "user_annotation")  # the same one
    trace = made.build()
    strings = (*trace.strings, "[[[3, 4], [5]]]", '["TensorList[float]"]')
    trace = replace(
        trace,
        strings=strings,
        operators=operator_details(
            np.array([0, 1]),
            input_dims=np.full(2, len(strings) - 2),
            input_types=np.full(2, len(strings) - 1),
        ),
    )
    found = TraceProfile(trace).collectives
    assert (found.kind, found.duration_ns.tolist()) == (("all_reduce",), [90])
    assert found.num_bytes.tolist() == [(12 + 5) * 4]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "all_reduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("ncclDevKernel_SendRecv", "send_recv"),
        ("_allgather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("gloo:recvAnySource", "recv"),
        ("nccl:_broadcast_oop", "broadcast"),
        ("barrier", "barrier"),
        ("something", "other"),
    ],
)
def test_kinds_are_known_by_every_spelling(name, kind):
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Double", 8),
        ("double", 8),
        ("Float", 4),
        ("float", 4),
        ("c10::Half", 2),
        ("BFloat16", 2),
        ("c10::BFloat16", 2),
        ("long int", 8),
        ("Byte", 1),
        ("Float8_e4m3fn", 1),
        ("c10::Float8_e5m2", 1),
        ("", 0),
        ("Thing", 0),
    ],
)
def test_sizes_of_types(dtype, size):
    assert item_bytes(dtype) == size


def ranks_of(*durations: tuple[int, ...], group_size=None, **numbers):
    found = {}
    for rank, took in enumerate(durations):
        trace = kernels(*took).build()
        trace = described(
            trace,
            host_rows(trace),
            [("_allgather_base", "Float", "0")] * len(took),
            in_elements=[100] * len(took),
            out_elements=[400] * len(took),
            group_size=[group_size or len(durations)] * len(took),
            **{name: values[rank] for name, values in numbers.items()},
        )
        found[rank] = TraceProfile(trace).collectives
    return found


def test_the_shortest_is_the_transfer_and_its_rank_came_last():
    ranks = ranks_of((100, 300), (40, 500), (80, 90))
    together = compared(ranks)
    assert together.transfer_ns.tolist() == [40, 90] * 3
    rows = {row.rank: row for row in together.rows}
    assert [rows[rank].total_ns for rank in range(3)] == [400, 540, 170]
    assert [rows[rank].transfer_ns for rank in range(3)] == [130] * 3
    assert [rows[rank].waiting_ns for rank in range(3)] == [270, 410, 40]
    # Rank 1: the others take 90 on average and it 40, then 195 and it 500.
    assert [rows[rank].lead_ns for rank in range(3)] == [-45, -255, 300]
    assert rows[0].num_bytes == 2 * 400 * 4
    bandwidth = 2 * 1600 * (2 / 3) / (130e-9)
    assert rows[0].bus_bytes_per_second == pytest.approx(bandwidth)


def test_groups_say_how_far_ranks_are_apart_and_who_is_last():
    ranks = ranks_of((100, 300, 20), (40, 500, 50), (80, 90, 10))
    (row,) = compared(ranks).groups
    assert (row.kind, row.group, row.num_ranks) == ("all_gather", "0", 3)
    assert row.num_matched == 3
    assert row.mean_skew_ns == pytest.approx((60 + 410 + 40) / 3)
    assert row.max_skew_ns == 410
    assert compared({}).groups == ()
    alone = ranks_of((10, 20))
    assert compared(alone).groups == ()


def test_numbers_match_what_order_would_not():
    # Rank 1's trace began one collective later.
    ranks = ranks_of((10, 20, 30), (25, 35), sequence=[[1, 2, 3], [2, 3]])
    together = compared(ranks)
    assert together.transfer_ns.tolist() == [10, 20, 30, 20, 30]
    assert together.is_compared.tolist() == [False, True, True, True, True]
    rows = {row.rank: row for row in together.rows}
    assert (rows[0].num_calls, rows[0].num_compared) == (3, 2)
    assert rows[0].transfer_ns == 20 + 30, "nothing compares with the first"
    assert (rows[0].waiting_ns, rows[1].waiting_ns) == (0, 10)
    assert rows[0].bus_bytes_per_second == pytest.approx(2 * 1600 / 2 / 50e-9)


@pytest.mark.parametrize(("size", "world"), [(4, -1), (4, 2), (-1, 4), (-1, -1)])
def test_where_a_ranks_trace_is_missing_waiting_is_not_known(size, world):
    """The missing rank may have come last: the others' shortest is no transfer."""
    for durations in ([(100, 300)], [(100, 300), (40, 500)]):
        if len(durations) == 2 and (size, world) == (-1, -1):
            continue  # nothing says that there are more
        ranks = ranks_of(*durations, group_size=size)
        of_all = compared(ranks, world)
        for row in of_all.rows:
            figures = (row.transfer_ns, row.waiting_ns, row.lead_ns)
            assert figures == (None, None, None)
            assert row.bus_bytes_per_second is None
            assert row.total_ns == sum(durations[row.rank])
        for group in of_all.groups:
            assert (group.mean_skew_ns, group.max_skew_ns) == (None, None)
        assert of_all.num_matched == 0
        assert of_all.is_missed.all()


def test_ranks_that_are_all_there_are_compared_whatever_their_group_says():
    ranks = ranks_of((100, 300), (40, 500), group_size=-1)
    rows = compared(ranks, 2).rows
    assert sorted((row.transfer_ns, row.waiting_ns) for row in rows) == [
        (340, 60),
        (340, 200),
    ]


def test_one_rank_alone_waits_for_nobody():
    ranks = ranks_of((10, 20), group_size=1)
    together = compared(ranks)
    assert together.num_matched == 0
    (row,) = together.rows
    assert (row.transfer_ns, row.waiting_ns, row.lead_ns) == (30, 0, 0)
    assert compared({}).rows == ()
