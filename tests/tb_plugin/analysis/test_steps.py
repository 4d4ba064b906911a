"""Steps, phases and ranges of a history's events."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.collector.format.snapshots.tags import tag_text
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.marks import (
    ACCUMULATE,
    BACKWARD,
    DATA,
    MAKE,
    MODULE,
    MOVE,
    NO_PYTHON,
    OPTIMIZER,
    OPTIMIZER_STATE,
)
from memboard.tb_plugin.analysis.categories.phases import PHASES
from memboard.tb_plugin.analysis.snapshots.steps import spans_of, steps_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.tb_plugin.analysis.snapshots import named, needs_real, real, stacks_of


def event(time_us: int, **more):
    return {
        "action": "alloc",
        "addr": 512 * time_us,
        "size": 512,
        "stream": 0,
        "time_us": time_us,
        **more,
    }


def snapshot(events, annotations=()):
    notes = [
        {"stage": stage, "name": name, "device": device, "time_us": time_us}
        for stage, name, device, time_us in annotations
    ]
    return snapshot_of(
        tables_of(
            {
                "segments": [],
                "device_traces": [events],
                "external_annotations": notes,
            }
        )
    )


def steps(made):
    return steps_of(made, made.devices[0])


def test_our_tags_say_step_and_phase_and_go_on_until_the_next():
    def tagged(step: int, phase: str) -> dict[str, str]:
        return {"user_metadata": tag_text(step=step, phase=phase, function="step")}

    made = snapshot(
        [
            event(1),
            event(2, **tagged(7, "train")),
            event(3, user_metadata=""),
            event(4, user_metadata="the program's own"),
            event(5, **tagged(8, "validate")),
            event(6),
        ],
        [("START", "ProfilerStep#99", 0, 0), ("END", "ProfilerStep#99", 0, 9)],
    )
    found = steps(made)
    assert found.by == "tags"
    assert found.step.tolist() == [NOTHING, 7, 7, 7, 8, 8]
    assert [found.phases[row] for row in found.phase[1:]] == ["train"] * 3 + [
        "validate"
    ] * 2
    assert [column.tolist() for column in found.starts()] == [[1, 4], [7, 8]]


def test_the_profilers_steps_are_placed_by_their_times():
    made = snapshot(
        [event(at) for at in range(10)],
        [
            ("START", "ProfilerStep#3", 0, 2),
            ("START", "forward", 0, 2),
            ("END", "forward", 0, 3),
            ("END", "ProfilerStep#3", 0, 4),
            ("START", "ProfilerStep#4", 0, 6),
            ("START", "ProfilerStep#0", 1, 0),
        ],
    )
    found = steps(made)
    assert found.by == "profiler"
    nothing = NOTHING
    assert found.step.tolist() == [nothing, nothing, 3, 3, 3, nothing, 4, 4, 4, 4]
    spans = spans_of(made, made.devices[0])
    assert list(spans.name) == ["ProfilerStep#3", "forward", "ProfilerStep#4"]
    assert spans.first.tolist() == [2, 2, 6]
    assert spans.end.tolist() == [5, 4, 10]
    assert spans.depth.tolist() == [0, 1, 0]


def test_ends_of_the_optimizer_are_counted():
    made = snapshot(
        [event(at) for at in range(6)],
        [
            ("START", "Optimizer.step#AdamW.step", 0, 1),
            ("END", "Optimizer.step#AdamW.step", 0, 2),
            ("END", "never begun", 0, 2),
            ("START", "Optimizer.step#AdamW.step", 0, 4),
            ("END", "Optimizer.step#AdamW.step", 0, 4),
        ],
    )
    found = steps(made)
    assert found.by == "optimizer"
    assert found.step.tolist() == [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("times", [True, False])
def test_what_says_nothing_of_steps_has_none(times):
    events = [event(at) for at in range(3)]
    if not times:
        events = [{k: v for k, v in e.items() if k != "time_us"} for e in events]
    made = snapshot(events, [("START", "ProfilerStep#1", 0, 0)] * (not times))
    found = steps(made)
    assert found.by == "nothing"
    assert found.step.tolist() == [NOTHING] * 3
    assert len(found.starts()[0]) == 0


TORCH = "/v/site-packages/torch/"


@pytest.mark.parametrize(
    ("frames", "marks"),
    [
        ([("_call_impl", TORCH + "nn/modules/module.py", 1)], MODULE),
        ([("forward", "/me/models.py", 1)], MODULE),
        ([("_init_group", TORCH + "optim/adam.py", 1)], OPTIMIZER | OPTIMIZER_STATE),
        (
            [("step", "/me/own.py", 1), ("wrapper", TORCH + "optim/optimizer.py", 2)],
            OPTIMIZER,
        ),
        ([("torch::autograd::Engine::thread_main()", "", 0)], BACKWARD),
        (
            [
                ("torch::autograd::AccumulateGrad::apply(x)", "??", 0),
                ("torch::autograd::Engine::evaluate_function()", "", 0),
            ],
            ACCUMULATE | BACKWARD,
        ),
        ([("_engine_run_backward", TORCH + "autograd/graph.py", 1)], BACKWARD),
        ([("_apply", TORCH + "nn/modules/module.py", 1)], MOVE),
        ([("fetch", TORCH + "utils/data/_utils/fetch.py", 1)], DATA),
        ([("__init__", "/me/models.py", 1)], MAKE),
        ([("__init__", "/v/site-packages/x/y.py", 1), ("main", "/me/m.py", 1)], 0),
        ([("backward", "/me/a.py", 1)], 0),
    ],
)
def test_marks_of_a_stack(frames, marks):
    others = [("f", "??", 0)]  # so that the history has frames of C++
    assert stacks_of(frames, others).marks.tolist() == [marks, 0]


def test_an_empty_stack_is_a_thread_without_python_where_c_frames_are_not_recorded():
    python = [("main", "/me/m.py", 1)]
    assert stacks_of([], python).marks.tolist() == [NO_PYTHON, 0]
    assert stacks_of([], [("f", "??", 0)]).marks.tolist() == [0, 0]
    assert stacks_of().marks.tolist() == []


def test_events_without_marks_go_on_with_the_phase_before():
    def of(name: str, filename: str) -> dict:
        return {"frames": [{"name": name, "filename": filename, "line": 1}]}

    forward = of("forward", "/me/models.py")
    backward = of("torch::autograd::Engine::thread_main()", "")
    optimizer = of("step", TORCH + "optim/sgd.py")
    loop = of("main", "/me/train.py")
    order = [loop, forward, loop, forward, backward, loop, optimizer, loop, forward, {}]
    made = snapshot([event(at, **frames) for at, frames in enumerate(order)])
    found = Replay(made, made.devices[0]).phases
    assert [PHASES[kind] for kind in found.kind] == [
        "",
        "forward",
        "backward",
        "optimizer",
        "forward",
    ]
    assert found.of_event.tolist() == [0, 1, 1, 1, 2, 2, 3, 3, 4, 4]


def test_a_free_that_bears_the_stack_of_its_allocation_says_nothing():
    """As CUDA records them where stacks are kept for allocations alone."""

    def of(name: str, filename: str) -> dict:
        return {"frames": [{"name": name, "filename": filename, "line": 1}]}

    forward, backward = of("forward", "/me/models.py"), of("backward", "/me/train.py")
    backward["frames"][0]["filename"] = TORCH + "autograd/__init__.py"
    saved = {"addr": 512, **forward}
    grad = {"addr": 4096, **backward}
    events = [
        event(0, **saved),
        event(1, **grad),
        event(2, action="free_requested", **saved),
        event(3, action="free_completed", **saved),
        event(4, **{**grad, "addr": 8192}),
    ]
    made = snapshot(events)
    found = Replay(made, made.devices[0]).phases
    assert [PHASES[kind] for kind in found.kind] == ["", "forward", "backward"]
    # One that bears its own is in the phase that it names.
    events[2:4] = [
        event(2, action="free_requested", **{**saved, **backward}),
        event(3, action="free_requested", **{**grad, **forward}),
    ]
    made = snapshot(events)
    found = Replay(made, made.devices[0]).phases
    assert [PHASES[kind] for kind in found.kind][-2:] == ["forward", "backward"]


@needs_real
def test_phases_of_a_recorded_training():
    snapshot = real(named("NiuHuangxiaozi"))
    device = snapshot.devices[0]
    found = Replay(snapshot, device).phases
    assert found.kind.tolist() == [0, 1, 2, 3, 1, 2, 3, 1, 2, 3]
    assert steps_of(snapshot, device).by == "optimizer"
    ends = np.flatnonzero(np.diff(steps_of(snapshot, device).step))
    assert len(ends) in (2, 3)
