"""The subjects of those inputs of the peer's unit suite that nobody recorded.

Files of our own of the same kinds, through the whole reader, with answers that are known
when they are made. `tests/README.md` says which test stands for which of the peer's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.operators.operators import is_eligible
from memboard.tb_plugin.analysis.ranks.distributed import compared
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace_memory.pictures import memory_curve
from tests.kineto_files import KinetoFile
from tests.tb_plugin.analysis.planted_operators import PlantedFile
from tests.tb_plugin.readers.traces.reading import document, read

US = 1_000
WORLD = 3
CORES = "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn"

_SPEND = st.tuples(st.just("spend"), st.integers(1, 30))
_LAUNCH = st.tuples(
    st.just("launch"),
    st.integers(1, 200),
    st.sampled_from(("inside", "elsewhere", "by_id")),
    st.booleans(),
)
_ALLOCATE = st.tuples(
    st.just("allocate"), st.integers(1, 1 << 20), st.sampled_from((0, -1))
)
_FREE = st.tuples(st.just("free"), st.integers(0, 5))


def programs(*of: Any) -> Any:
    """Lists of calls of operators, with other calls and `of` in them."""
    inner = st.one_of(*of, _SPEND)
    call = st.recursive(
        st.tuples(
            st.just("call"),
            st.integers(0, 2),
            st.booleans(),
            st.lists(inner, max_size=4),
        ),
        lambda deeper: st.tuples(
            st.just("call"),
            st.integers(0, 2),
            st.booleans(),
            st.lists(st.one_of(inner, deeper), max_size=4),
        ),
        max_leaves=12,
    )
    return st.lists(call, min_size=1, max_size=4)


def run(planted: PlantedFile, program: list[Any], depth: int = 0) -> None:
    """Names tell the depth, so that none is inside one of its own name."""
    for what, *how in program:
        if what == "call":
            number, begins_first, body = how
            with planted.operator(f"op{depth}_{number}"):
                # What is in it may begin with it, or end with it, but never both.
                if begins_first:
                    planted.spend(1)
                run(planted, body, depth + 1)
                if not begins_first:
                    planted.spend(1)
        elif what == "spend":
            planted.spend(how[0])
        elif what == "launch":
            us, tie, cores = how
            kernel = CORES if cores else f"volta_sgemm_{us % 3}"
            planted.launch(kernel, us, tie, cores=cores)
        elif what == "allocate":
            planted.allocate(*how)
        else:
            planted.free(*how)


def profile_of(made: KinetoFile) -> TraceProfile:
    return TraceProfile(read(document(made.events, **made.head)))


def operators_of(profile: TraceProfile) -> dict[str, tuple[float, ...]]:
    table, strings = profile.operators, profile.trace.strings
    columns = (
        table.num_calls * US,
        table.host_self_ns,
        table.host_total_ns,
        table.device_self_ns,
        table.device_total_ns,
        table.tensor_core_self_ns,
        table.tensor_core_total_ns,
    )
    return {
        strings[int(name)]: tuple(float(column[at]) / US for column in columns)
        for at, name in enumerate(table.name)
    }


@given(programs(_LAUNCH))
def test_any_tree_of_operators_has_its_times_and_its_kernels(program):
    planted = PlantedFile()
    run(planted, program)
    profile = profile_of(planted)
    assert operators_of(profile) == {
        name: (
            one.num_calls,
            one.host_self,
            one.host_total,
            one.device_self,
            one.device_total,
            one.cores_self,
            one.cores_total,
        )
        for name, one in planted.times.items()
    }
    table, strings = profile.kernels_by_properties, profile.trace.strings
    found = Counter()
    for at in range(len(table)):
        key = strings[int(table.name[at])], strings[int(table.operator[at])]
        found[key] += round(float(table.total_ns[at]) / US)
    wanted: Counter = Counter()
    for kernel, operator, us in planted.kernels:
        wanted[kernel, operator] += us
    assert found == wanted
    used = table.uses_tensor_cores.tolist()
    assert used == [int(strings[int(name)] == CORES) for name in table.name]


@given(programs(_ALLOCATE, _FREE))
def test_six_metrics_of_memory_by_operator_and_the_curve_of_both_devices(program):
    planted = PlantedFile()
    run(planted, program)
    profile = profile_of(planted)
    strings = profile.trace.strings
    table = profile.operator_memory("freeing")
    columns = (
        table.increase_bytes,
        table.self_increase_bytes,
        table.num_allocations,
        table.self_num_allocations,
        table.allocated_bytes,
        table.self_allocated_bytes,
    )
    found = {
        (-int(table.device_type[at] == 0), strings[int(name)]): tuple(
            int(column[at]) for column in columns
        )
        for at, name in enumerate(table.name)
    }
    wanted = {
        key: (
            one.increase,
            one.self_increase,
            one.num_allocations,
            one.self_num_allocations,
            one.allocated,
            one.self_allocated,
        )
        for key, one in planted.memory_of.items()
    }
    # The peer leaves out rows of nothing but zeros, which ours may have.
    assert {key: row for key, row in found.items() if any(row)} == {
        key: row for key, row in wanted.items() if any(row)
    }
    memory, trace = profile.trace.memory, profile.trace
    for device, totals in planted.totals.items():
        events = np.flatnonzero(memory.device == device)
        curve = memory_curve(memory, events, (trace.start_ns, trace.end_ns), 1000)
        assert curve.allocated_bytes.tolist() == [total for _, total in totals]
        reserved = [2 * total if device >= 0 else 0 for _, total in totals]
        assert curve.reserved_bytes.tolist() == reserved
        since = (curve.time_ns - curve.time_ns[:1]) / US
        assert since.tolist() == [at - totals[0][0] for at, _ in totals]


@pytest.mark.parametrize("times", [2, 3, 5])
def test_an_operator_that_repeats_itself_is_one_call(times):
    planted = PlantedFile()

    def nested(left: int) -> None:
        with planted.operator("aten::div"):
            planted.spend(10)
            if left > 1:
                nested(left - 1)
            else:
                planted.launch("div_kernel", 40)
            planted.spend(5)

    nested(times)
    took = 15 * times + 2
    (row,) = operators_of(profile_of(planted)).items()
    # All of its time is its own, but for the call of the runtime.
    assert row == ("aten::div", (1, took - 2, took, 40, 40, 0, 0))


STEPS = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.lists(st.integers(1, 120), max_size=3),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=5,
)


@given(STEPS)
def test_steps_reach_as_far_as_their_kernels_also_into_the_next(plan):
    """Every step launches at its begin; kernels run one after the other."""
    made = KinetoFile()
    made.device()
    wanted, now, free = [], 1000.0, 0.0
    before = now
    for number, (pause, kernels, rest) in enumerate(plan):
        begin = now
        last = 0.0
        for us in (*kernels, 1):
            start = max(now + 2, free)
            made.kernel("gemm", now, start, us)
            now, free = now + 2, start + us
            last = free
        now += rest
        made.step(number, begin, now - begin)
        start = max(before, begin)
        before = max(now, start, last)
        wanted.append((number, start, before, len(kernels) + 1))
        now += pause
    # A last step that is cut short (under four fifths of the one before) is left out.
    if len(wanted) > 1 and wanted[-1][3] < 0.8 * wanted[-2][3]:
        wanted.pop()
    steps = profile_of(made).steps
    columns = (steps.number, steps.start_ns / US, steps.end_ns / US, steps.num_works)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    origin = wanted[0][1] - found[0][1]
    assert [(n, a + origin, b + origin, w) for n, a, b, w in found] == wanted


def test_operators_that_could_use_tensor_cores_and_kernels_that_do():
    planted = PlantedFile()
    for name, kernels in (
        ("aten::conv2d", [(CORES, 30, True), ("implicit_convolve_sgemm", 10, False)]),
        ("aten::mm", [("volta_sgemm_128x64_nn", 25, False)]),
        ("aten::relu", [("elementwise_kernel", 5, False)]),
    ):
        with planted.operator(name):
            planted.spend(3)
            for kernel, us, cores in kernels:
                planted.launch(kernel, us, cores=cores)
    profile = profile_of(planted)
    shares = {
        name: (row[5] / row[3], is_eligible(name))
        for name, row in operators_of(profile).items()
    }
    assert shares == {
        "aten::conv2d": (0.75, True),
        "aten::mm": (0, True),
        "aten::relu": (0, False),
    }
    (use,) = profile.devices
    assert use.tensor_core_share == pytest.approx(30 / 70)


ARRIVALS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 90), min_size=WORLD, max_size=WORLD),
        st.integers(1, 60),
        st.integers(1, 4096),
        st.sampled_from((("Float", 4), ("BFloat16", 2), ("Double", 8))),
    ),
    min_size=1,
    max_size=5,
)
"""Of each collective: how late each rank comes, how long it takes then, elements, type."""


@given(ARRIVALS)
def test_nccl_tells_data_from_waiting_and_what_computation_hides(plan):
    """All ranks leave a collective together; each computes for 20 us inside of it."""
    ranks, hidden = {}, []
    for rank in range(WORLD):
        made = KinetoFile(rank, WORLD)
        made.device()
        at, covered = 1000.0, 0.0
        for late, takes, elements, (dtype, _) in plan:
            begin, end = at + late[rank], at + max(late) + takes
            args = {
                "Collective name": "_allgather_base",
                "dtype": dtype,
                "Group size": WORLD,
                "In msg nelems": elements,
                "Out msg nelems": WORLD * elements,
                "Process Group Name": "0",
            }
            name = "ncclDevKernel_AllGather_RING_LL"
            made.kernel(name, at - 2, begin, end - begin, **args)
            made.kernel("gemm", at - 2, begin, 20, stream=11)
            covered += min(20.0, end - begin)
            at += 300
        made.step(1, 900, at - 900)
        profile = profile_of(made)
        ranks[rank] = profile.collectives
        hidden.append(covered)
        assert profile.parts.overlap_ns.tolist() == [covered * US]
        communication = sum(max(late) - late[rank] + takes for late, takes, *_ in plan)
        assert profile.parts.communication_ns.tolist() == [communication * US]
        assert profile.parts.computation_ns.tolist() == [20 * len(plan) * US]
    rows = {row.rank: row for row in compared(ranks).rows}
    assert sorted(rows) == list(range(WORLD))
    for rank, row in rows.items():
        assert (row.kind, row.num_calls) == ("all_gather", len(plan))
        # The peer's bytes are of the input; ours of what moves, the gathered whole.
        assert row.num_bytes == sum(
            WORLD * elements * size for _, _, elements, (_, size) in plan
        )
        assert row.transfer_ns == US * sum(takes for _, takes, *_ in plan)
        waited = sum(max(late) - late[rank] for late, *_ in plan)
        assert row.waiting_ns == US * waited


@given(ARRIVALS)
def test_gloo_without_a_device_is_the_communication_of_its_threads(plan):
    ranks = {}
    for rank in range(WORLD):
        made = KinetoFile(rank, WORLD, backend="gloo")
        at = 1000.0
        for late, takes, elements, _ in plan:
            begin, end = at + late[rank], at + max(late) + takes
            args = {"Input Dims": [[[elements]]], "Input type": ["TensorList[float]"]}
            made._put(
                "X",
                "gloo:all_reduce",
                begin,
                "user_annotation",
                100,
                300,
                args,
                dur=end - begin,
            )
            made.slice("aten::mm", begin, 10)
            at += 300
        made.step(1, 900, at - 900)
        profile = profile_of(made)
        ranks[rank] = profile.collectives
        took = sum(max(late) - late[rank] + takes for late, takes, *_ in plan)
        assert profile.parts.communication_ns.tolist() == [took * US]
    rows = {row.rank: row for row in compared(ranks).rows}
    assert sorted(rows) == list(range(WORLD))
    for rank, row in rows.items():
        assert (row.kind, row.num_calls) == ("all_reduce", len(plan))
        assert row.num_bytes == 4 * sum(elements for _, _, elements, _ in plan)
        assert row.transfer_ns == US * sum(takes for _, takes, *_ in plan)
        assert row.waiting_ns == US * sum(max(late) - late[rank] for late, *_ in plan)


MODULES = st.recursive(
    st.tuples(st.integers(0, 2), st.lists(st.integers(1, 9), max_size=3), st.just([])),
    lambda inner: st.tuples(
        st.integers(0, 2),
        st.lists(st.integers(1, 9), max_size=3),
        st.lists(inner, max_size=3),
    ),
    max_leaves=10,
)
"""Number, how long each operator of its own takes, modules in it."""


@given(st.lists(MODULES, min_size=1, max_size=3))
def test_modules_are_the_tree_of_their_calls(plan):
    made = KinetoFile()
    wanted: dict[tuple[str, ...], list[float]] = {}
    clock = [1000.0]

    def call(node: Any, above: tuple[str, ...], around: int) -> None:
        number, operators, inside = node
        path, own = (*above, f"M_{number}"), len(made.events) + 1
        begin = clock[0]
        clock[0] += 3
        for us in operators:
            made.slice("aten::mm", clock[0], us)
            clock[0] += us + 1
        for one in inside:
            call(one, path, own)
            clock[0] += 1
        took = clock[0] - begin
        ids = {"Python id": own, "Python parent id": around, "Python module id": number}
        made.slice(f"nn.Module: M_{number}", begin, took, "python_function", **ids)
        row = wanted.setdefault(path, [0, 0, 0, 0])
        below = sum(operators) + sum(took_of[id(one)] for one in inside)
        took_of[id(node)] = took
        for at, value in enumerate((1, len(operators), took, took - below)):
            row[at] += value

    took_of: dict[int, float] = {}
    for node in plan:
        call(node, (), 0)
        clock[0] += 10
    table = profile_of(made).modules
    paths: list[tuple[str, ...]] = []
    for at, name in enumerate(table.name):
        parent = int(table.parent[at])
        paths.append((*(paths[parent] if parent >= 0 else ()), name))
    columns = (table.num_calls * US, table.num_operators * US)
    columns += (table.host_ns, table.host_self_ns)
    found = {
        path: [float(column[at]) / US for column in columns]
        for at, path in enumerate(paths)
    }
    assert found == wanted
