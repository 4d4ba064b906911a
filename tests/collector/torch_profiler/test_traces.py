"""Traces of the real profiler: which steps, which names, what is kept and told of them."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
import torch

import memboard as mb
from memboard.collector.recorder import inert_recorder
from tests.collector.torch_profiler.training import (
    Training,
    artifacts,
    load,
    needs_python_calls,
    record,
    step_names,
    steps,
    traces,
    train,
)


def test_each_cycle_leaves_a_trace_of_its_active_steps(tmp_path):
    recorder = train(tmp_path, 9)
    found = artifacts(tmp_path)
    assert list(found) == ["rank0.4.pt.trace.json", "rank0.8.pt.trace.json"]
    assert step_names(found["rank0.4.pt.trace.json"]) == [
        "ProfilerStep#2",
        "ProfilerStep#3",
    ]
    metas = [capture.meta for capture in traces(tmp_path)]
    assert [m["path"] for m in metas] == [f"torch_traces/{name}" for name in found]
    assert [(m["cycle"], m["first_step"], m["last_step"]) for m in metas] == [
        (1, 2, 3),
        (2, 6, 7),
    ]
    for meta, path in zip(metas, found.values(), strict=True):
        assert meta["num_bytes"] == path.stat().st_size
        assert meta["num_steps"] == 2
        assert (meta["kept"], meta["problem"], meta["complete"]) == (True, "", True)
        assert meta["activities"] == ["cpu"]
        assert meta["start_ns"] < meta["end_ns"]
        assert "by self CPU" in meta["summary"]
    assert [p for saved in recorder.saved_traces for p in saved.paths] == [
        *found.values()
    ]
    times = [saved.time_ns for saved in recorder.saved_traces]
    assert times == sorted(times)
    assert [saved.step for saved in recorder.saved_traces] == [3, 7]


@pytest.mark.parametrize(
    ("cycle", "number", "length", "traced"),
    [
        ((0, 0, 1, 4, 1), 12, None, [(1, 4)]),
        ((1, 1, 1, 2, 1), 12, None, [(3, 4)]),
        ((1, 1, 1, 2, 2), 12, None, [(3, 4), (7, 8)]),
        ((1, 2, 3, 4, 0), 24, None, [(6, 9), (15, 18)]),
        ((1, 2, 3, 4, 0), 8, 8, [(6, 7)]),
        ((0, 2, 1, 3, 0), 9, 9, [(3, 5)]),
    ],
)
def test_traces_are_of_the_steps_that_composers_schedules_name(
    tmp_path, cycle, number, length, traced
):
    names = ("skip_first", "wait", "warmup", "active", "repeat")
    with record(tmp_path, schedule=dict(zip(names, cycle, strict=True))) as recorder:
        recorder.epoch(0, length=length)
        steps(recorder, number)
    metas = [capture.meta for capture in traces(tmp_path)]
    assert [(m["first_step"], m["last_step"]) for m in metas] == traced
    assert all(m["complete"] for m in metas)


def test_composers_defaults_hold(tmp_path):
    train(tmp_path, 4)
    (path,) = artifacts(tmp_path).values()
    trace = load(path)
    assert trace["profile_memory"] == trace["with_flops"] == 1
    assert "with_stack" not in trace
    assert "record_shapes" not in trace
    assert not any(e.get("cat") == "python_function" for e in trace["traceEvents"])


def test_flops_are_those_of_the_products(tmp_path):
    train(tmp_path, 4)
    (capture,) = traces(tmp_path)
    # 2 steps; forward 2 products, backward 3 (the input needs no gradient).
    forward = 2 * 8 * 32 * 16 + 2 * 8 * 16 * 4
    backward = 2 * 8 * 32 * 16 + 2 * (2 * 8 * 16 * 4)
    assert capture.meta["flops"] == 2 * (forward + backward)
    table = capture.tables["operators"]
    assert int(np.sum(table["flops"])) == capture.meta["flops"]


def test_the_newest_two_of_many_stay(tmp_path):
    # However slowly they are saved, none is left out.
    recorder = train(
        tmp_path,
        15,
        schedule={"wait": 0, "warmup": 1, "active": 1},
        num_traces_to_keep=2,
    )
    names = [p.name for saved in recorder.saved_traces for p in saved.paths]
    assert list(artifacts(tmp_path)) == names
    assert len(names) == 2
    assert len(traces(tmp_path)) == 7
    told = [capture.meta["path"].rpartition("/")[2] for capture in traces(tmp_path)]
    assert names == told[-2:]


def test_none_stays_where_none_is_to(tmp_path):
    recorder = train(tmp_path, 4, num_traces_to_keep=0)
    assert artifacts(tmp_path) == {}
    assert recorder.saved_traces == ()
    (capture,) = traces(tmp_path)
    assert capture.meta["kept"] is False
    assert capture.meta["num_bytes"] > 0


def test_a_name_that_ends_so_is_compressed(tmp_path):
    train(tmp_path, 4, filename="t{batch}.json.gz")
    (path,) = artifacts(tmp_path).values()
    assert path.name == "t4.json.gz"
    assert step_names(path) == ["ProfilerStep#2", "ProfilerStep#3"]


@pytest.mark.parametrize(
    ("folder", "below"),
    [
        ("{run_name}/torch_traces", "exp/torch_traces/"),
        ("a/rank{rank:03d}/ep{epoch}/", "a/rank000/ep0/"),
        ("", ""),
    ],
)
def test_a_folder_is_a_template_too(tmp_path, folder, below):
    settings = {"memory_filename": "m.csv", "record_shapes": True, "with_stack": True}
    train(tmp_path / "exp", 4, folder=folder, filename="{batch}.json", **settings)
    (capture,) = traces(tmp_path / "exp")
    assert capture.meta["path"] == f"{below}4.json"
    assert capture.meta["beside"] == [f"{below}m.csv"]
    assert len(step_names(artifacts(tmp_path / "exp")["4.json"])) == 2


def test_a_name_that_is_taken_gets_a_number(tmp_path):
    train(tmp_path, 9, filename="rank{rank}.pt.trace.json")
    found = artifacts(tmp_path)
    assert list(found) == ["rank0-2.pt.trace.json", "rank0.pt.trace.json"]
    assert step_names(found["rank0.pt.trace.json"])[0] == "ProfilerStep#2"


def test_a_restarted_attempt_meets_nothing_of_the_one_before(tmp_path):
    train(tmp_path, 4)
    recorder = train(tmp_path, 4)
    (saved,) = recorder.saved_traces
    assert saved.paths[0].name == "rank0.4.pt.trace.json"
    assert len(list(tmp_path.rglob("*.pt.trace.json"))) == 2


def test_every_variable_stands_in_a_name(tmp_path):
    name = (
        "{run_name}-{rank}-{local_rank}-{world_size}-{local_world_size}-{node_rank}"
        "-{epoch}-{batch}-{batch_in_epoch}-{sample}-{sample_in_epoch}"
        "-{token}-{token_in_epoch}-{total_wct:.0f}-{epoch_wct:.0f}-{batch_wct:.0f}"
    )
    run_dir = tmp_path / "exp"
    with record(run_dir, filename="a/{rank:03d}/" + name) as recorder:
        for epoch in range(2):
            recorder.epoch(epoch, length=5)
            steps(recorder, 5, tokens=100)
    found = artifacts(run_dir)
    assert {p.parent.name for p in found.values()} == {"000"}
    counts = [tuple(map(int, name.split("-")[6:13])) for name in found]
    assert sorted(counts) == [
        (0, 4, 4, 32, 32, 400, 400),
        (1, 8, 3, 64, 24, 800, 300),
    ]
    assert all(name.startswith("exp-0-0-1-1-0-") for name in found)


def test_the_end_of_an_epoch_saves_whether_its_length_was_said_or_not(tmp_path):
    with record(tmp_path, schedule={"per_epoch": True}) as recorder:
        for epoch, length in enumerate([3, None]):
            recorder.epoch(epoch, length=length)
            steps(recorder, 3)
        recorder.epoch(2)
    first, second = traces(tmp_path)
    for capture, step in ((first, 2), (second, 5)):
        meta = capture.meta
        assert (meta["first_step"], meta["last_step"]) == (step, step)
        assert meta["complete"]


def test_another_phase_is_not_traced(tmp_path):
    def validate():
        with recorder.phase("val"), torch.profiler.record_function("in val"):
            Training().step()

    with record(tmp_path, schedule={"active": 4}) as recorder:
        steps(recorder, 6, {4: validate})
    first, second = traces(tmp_path)
    assert first.meta["problem"] == "another phase began before the cycle had ended"
    assert (first.meta["first_step"], first.meta["last_step"]) == (2, 3)
    assert (second.meta["first_step"], second.meta["last_step"]) == (4, 5)
    assert second.meta["complete"]
    for path in artifacts(tmp_path).values():
        assert not any(e.get("name") == "in val" for e in load(path)["traceEvents"])


def test_an_exception_in_a_cycle_leaves_its_trace_marked(tmp_path):
    def fail():
        Training().step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), record(tmp_path) as recorder:
        steps(recorder, 4, {3: fail})
    (capture,) = traces(tmp_path)
    assert capture.meta["problem"] == "an exception ended the cycle"
    assert not capture.meta["complete"]
    assert capture.meta["num_steps"] == 1
    assert len(artifacts(tmp_path)) == 1
    assert not mb.active()


def test_closing_within_a_cycle_saves_what_there_is(tmp_path):
    train(tmp_path, 3)
    (capture,) = traces(tmp_path)
    assert capture.meta["problem"] == "the recording ended before the cycle had"
    assert capture.meta["num_steps"] == 1


def test_closing_before_a_step_has_ended_saves_nothing(tmp_path):
    train(tmp_path, 2)
    assert traces(tmp_path) == []
    assert artifacts(tmp_path) == {}


def test_a_cycle_without_end_is_cut_to_size(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.collector.torch_profiler.source.MAX_STEPS", 3)
    train(tmp_path, 12, schedule={"active": 50})
    (capture,) = traces(tmp_path)
    assert capture.meta["num_steps"] == 3
    assert "3 steps had passed" in capture.meta["problem"]


def test_the_users_function_sees_each_trace_and_may_fail(tmp_path, caplog):
    seen = []

    def post_process(path):
        seen.append(path)
        if len(seen) == 1:
            raise ValueError("planted")

    train(tmp_path, 9, post_process=post_process)
    assert [path.name for path in seen] == list(artifacts(tmp_path))
    first, second = traces(tmp_path)
    assert first.meta["problem"] == "post_process failed: ValueError: planted"
    assert second.meta["problem"] == ""
    assert caplog.text.count("post_process failed for") == 1


@needs_python_calls
def test_stacks_and_memory_lie_beside_the_trace_and_go_with_it(tmp_path):
    recorder = train(
        tmp_path,
        8,
        schedule={"repeat": 1},
        record_shapes=True,
        with_stack=True,
        stacks_filename="rank{rank}.{batch}.stacks.gz",
        memory_filename="rank{rank}.{batch}.memory.csv",
    )
    (saved,) = recorder.saved_traces
    assert [p.name for p in saved.paths] == [
        "rank0.4.pt.trace.json",
        "rank0.4.stacks.gz",
        "rank0.4.memory.csv",
    ]
    with gzip.open(saved.paths[1], "rt") as file:
        assert ";aten::addmm " in file.read()
    (capture,) = traces(tmp_path)
    assert capture.meta["beside"] == [
        "torch_traces/rank0.4.stacks.gz",
        "torch_traces/rank0.4.memory.csv",
    ]
    timeline = capture.tables["memory_timeline"]
    assert set(timeline["device"]) == {"cpu"}
    held = sum(np.asarray(timeline[c]) for c in timeline if c.endswith("_bytes"))
    assert held.min() >= 0
    with saved.paths[2].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(timeline)
    for name, column in timeline.items():
        assert [row[name] for row in rows] == [str(value) for value in column], name
    params = sum(p.nbytes for p in Training().net.parameters())
    assert max(timeline["param_bytes"]) >= params
    assert max(timeline["optimizer_bytes"]) >= 2 * params


@needs_python_calls
def test_a_memory_file_that_ends_in_html_is_a_page(tmp_path):
    recorder = train(
        tmp_path,
        8,
        schedule={"repeat": 1},
        record_shapes=True,
        with_stack=True,
        memory_filename="rank{rank}.{batch}.memory.html",
    )
    (saved,) = recorder.saved_traces
    page = saved.paths[1].read_text()
    assert saved.paths[1].name == "rank0.4.memory.html"
    assert "<title>Rank 0, steps 2 to 3</title>" in page
    assert page.count("<svg") == 1
    assert ">parameters<" in page


def test_a_recorder_that_is_off_has_no_traces(tmp_path):
    assert inert_recorder().saved_traces == ()
    with mb.record(tmp_path, scalars=False) as recorder:
        assert recorder.saved_traces == ()
