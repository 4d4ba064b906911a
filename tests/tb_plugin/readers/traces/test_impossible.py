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
    assert profile.kernels.num_calls.sum() == 10 - len(odd)
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


@pytest.mark.parametrize(
    ("launch", "is_impossible"),
    [("cudaLaunchKernel", True), ("hipLaunchKernel", False)],
)
def test_a_stream_of_cuda_runs_one_after_the_other(launch, is_impossible):
    made = trained({3: 5_000})
    for event in made.events:
        if event["name"] == "cudaLaunchKernel":
            event["name"] = launch
    made.slice(
        launch.replace("LaunchKernel", "DeviceSynchronize"),
        1_000,
        5_000,
        "cuda_runtime",
    )
    trace = trace_of(made)
    assert bool(trace.problems) == is_impossible


@pytest.mark.parametrize(("waits_us", "is_impossible"), [(300, True), (50_000, False)])
def test_work_does_not_outlast_the_call_that_waited_for_it(waits_us, is_impossible):
    made = trained({9: 50_000})
    made.slice("cudaDeviceSynchronize", 1_050, waits_us, "cuda_runtime")
    trace = trace_of(made)
    assert bool(trace.problems) == is_impossible
    took = TraceProfile(trace).kernels.total_ns.sum()
    assert took == (810_000 if is_impossible else 50_810_000)


def moved(made, by_us):
    for event in made.events:
        event["ts"] += by_us
    return made


@pytest.mark.parametrize("start", [0, 1e12])
@pytest.mark.parametrize("name", ["gemm", "aten::mm"])
@pytest.mark.parametrize("number", [1, 10])
def test_a_begin_that_was_never_set_is_left_out(start, name, number):
    made = moved(trained({}), 5e9)
    events = [event for event in made.events if event["name"] == name][:number]
    if start and number > 1:
        return  # a third of all slices: which of both clocks is wrong is not known
    for event in events:
        event["ts"] = start
    trace = trace_of(made)
    assert problems_of(trace) == {
        f"impossible times of {name!r} are left out of all sums: shown as points": number
    }
    assert trace.end_ns - trace.start_ns == 2_000_000
    profile = TraceProfile(trace)
    assert profile.steps.span_ns == (0, 2_000_000)
    left_out = number if name == "gemm" else 0
    assert profile.kernels.total_ns.sum() == (10 - left_out) * 90_000


def test_a_step_that_begins_at_0_is_no_step():
    made = moved(trained({}), 5e9)
    made.step(2, 5e9 + 2_100, 500)
    made.events[0]["ts"] = 0
    assert TraceProfile(trace_of(made)).steps.number.tolist() == [2]


def test_it_is_named_on_the_page(tmp_path):
    trained({3: 1_600_000}).write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    profile = ask(page, "profile")
    (problem,) = profile["choice"]["problems"]
    assert problem["what"] == (
        "Impossible durations of 'odd_3' are left out of all sums: shown as points."
    )
    (run,) = page.get("/runs")["runs"]
    for name in ("trace_idle", "trace_path", "kernels", "operators"):
        summed = page.get(f"/{name}", run=run["id"])
        problems = summed.get("problems") or summed["choice"]["problems"]
        assert [one["what"] for one in problems] == [problem["what"]]
    answer = page.get("/trace", run=run["id"])
    (source,) = answer["sources"]
    assert [one["what"] for one in answer["problems"]] == [problem["what"]]
    traced, row = problem["slice"].rsplit(":", 1)
    assert traced == source["id"]
    clicked = page.get("/trace_slice", run=run["id"], source=traced, row=row)
    assert clicked["name"] == "odd_3"
    (note,) = source["notes"]
    assert note == (
        "impossible durations of 'odd_3' are left out of all sums: shown as points, first at event 12, 1.6 s"
    )
