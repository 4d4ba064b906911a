"""Durations that the rest of a trace contradicts are named, and left out."""

from __future__ import annotations

import json

import pytest

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask
from tests.tb_plugin.readers.traces.reading import problems_of, read


def trained(durations, **more):
    """Ten kernels of 90 us, but for some."""
    made = KinetoFile()
    made.step(1, 0, 2_000)
    for number in range(10):
        took = durations.get(number, 90)
        name = f"odd_{number}" if number in durations else "gemm"
        made.slice("aten::mm", 10 + 20 * number, 15)
        start = 100 + 100 * number
        made.kernel(name, 12 + 20 * number, start, took, **more)
    return made


def trace_of(made):
    return read(json.dumps({**made.head, "traceEvents": made.events}).encode())


@pytest.mark.parametrize("odd", [[3], [9], [0, 4], [3, 4, 5], [2, 9]])
@pytest.mark.parametrize(
    "dur", [1_600_000, 2**32, 2**32 * 1000, 2**63 / 1000, 2**64 / 1000, 1.5e15]
)
def test_an_overflow_is_named_and_all_else_is_as_without_it(dur, odd):
    trace = trace_of(trained(dict.fromkeys(odd, dur)))
    problems = problems_of(trace)
    assert sum(problems.values()) == len(odd)
    for number, problem in zip(odd, trace.problems, strict=False):
        assert f"'odd_{number}'" in problem.what
        assert problem.where.startswith(f"event {3 * number + 3}, ")
    assert (trace.start_ns, trace.end_ns) == (0, 2_000_000)
    profile = TraceProfile(trace)
    assert profile.steps.span_ns == (0, 2_000_000)
    assert profile.kernels.num_calls.sum() == 10
    assert profile.kernels.total_ns.sum() == (10 - len(odd)) * 90_000


@pytest.mark.parametrize(
    ("durations", "more"),
    [
        (
            {3: 500},
            {},
        ),  # overlaps what follows, as clocks and dependent launches let it
        ({3: 1_600_000}, {"stream": 7, "graph": 1}),
        ({9: 800_000}, {}),
        ({9: 150_000}, {}),
    ],
)
def test_what_may_be_true_stays(durations, more):
    made = trained(durations)
    if more.pop("graph", 0):
        # Works of one graph run beside each other, and its host waits.
        for event in made.events:
            if event["cat"] == "kernel":
                event["args"]["correlation"] = 77
        made.slice("hipDeviceSynchronize", 1_000, 1_700_000, "cuda_runtime")
    trace = trace_of(made)
    assert not trace.problems
    took = sum(durations.values()) + (10 - len(durations)) * 90
    assert TraceProfile(trace).kernels.total_ns.sum() == took * 1_000


def test_a_collective_may_share_its_queue_with_what_computes():
    made = trained({})
    made.kernel("ncclDevKernel_AllReduce", 5, 60, 20_000)
    made.slice("hipDeviceSynchronize", 1_000, 21_000, "cuda_runtime")
    assert not trace_of(made).problems


def test_what_ends_after_the_profiler_stopped_did_not_last_so_long():
    made = trained({9: 5_000_000})
    span = ("PyTorch Profiler (0)", -10, 40_000, "Trace")
    made.slice(*span)
    made.slice("cudaDeviceSynchronize", 1_000, 5_000_000, "cuda_runtime")
    trace = trace_of(made)
    assert len(trace.problems) == 1


def test_it_is_named_on_the_page(tmp_path):
    trained({3: 1_600_000}).write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    ask(page, "profile")
    (run,) = page.get("/runs")["runs"]
    (source,) = page.get("/trace", run=run["id"])["sources"]
    (note,) = source["notes"]
    assert note == (
        "impossible durations of 'odd_3' are left out: shown as points, first at event 12, 1.6 s"
    )
