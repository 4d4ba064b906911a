"""Profiled functions in a real recording: keys and figures on disk."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

import memboard as mb
from memboard.collector.format.memory import STATES
from tests.collector.functions.models import Trainer, batch, mlp, record, run
from tests.collector.recordings import read_only_file

# Keys.


@pytest.mark.usefixtures("countable_activations")
@pytest.mark.parametrize(
    ("schedule", "iterations"),
    [
        ({}, [2]),
        ({"warmup": 1, "active": 1}, [2]),
        ({"warmup": 2, "active": 2}, [3, 4]),
        ({"warmup": 0, "active": 2}, [1, 2]),
        ({"warmup": 3, "active": 0}, [4, 5, 6]),  # no end (A12)
        ({"active": 2, "warmup": 0, "wait": 1, "repeat": 2}, [2, 3, 5, 6]),
        ({"choose": lambda number: number == 4}, [5]),
    ],
)
def test_snaps_are_keyed_as_memprofilers(tmp_path, schedule, iterations):
    found = run(tmp_path, fit={"num_batches": 6}, schedule=schedule)
    expected = [f"{n}.{side}" for n in iterations for side in ("start", "end")]
    for function in ("training_step", "step"):
        assert found.snaps(function) == [f"{function}.{key}" for key in expected]
        table = f"function/{function}"
        times = found.column("time_ns", table)
        assert times == sorted(times)
        # All kinds go by the same schedule: so does what counts saved tensors.
        for kind in ("hooks", "activations"):
            captures = found.captures_of(kind, function)
            assert [capture.iteration for capture in captures] == iterations
    steps = found.column("step", "function/step")
    assert steps == [n - 1 for n in iterations for _ in range(2)]


def test_each_phase_has_its_own(tmp_path):
    found = run(tmp_path, fit={"num_epochs": 2, "num_val": 2})
    assert found.snaps("training_step") == [
        "training_step.2.start",
        "training_step.2.end",
    ]
    assert found.snaps("validation_step", "val") == [
        "validation_step.2.start",
        "validation_step.2.end",
    ]
    assert found.snaps("step", "val") == ["step.2.start", "step.2.end"]
    assert found.source("rss")["status"] == "recorded"
    assert len(found.steps()) == 8


@pytest.mark.usefixtures("countable_activations")
def test_functions_may_be_named(tmp_path):
    found = run(tmp_path, functions={"default": "training_step", "modules": ()})
    assert found.tables() == {
        ("step", "train"),
        ("function/training_step", "train"),
        ("activations", "train"),
    }
    assert found.captures_of("hooks", "step") == []
    assert len(found.captures_of("hooks", "training_step")) == 1


@pytest.mark.usefixtures("countable_activations")
@pytest.mark.parametrize(
    ("lists", "has_host"),
    [
        ({"default": ("training_step",)}, True),
        ({"host": ("training_step",)}, True),
        ({"device": ("training_step",)}, False),
        ({"history": ("training_step",)}, False),
        ({"host": ("step",), "device": ("training_step",)}, False),
    ],
)
def test_hooks_belong_to_every_function_of_which_memory_is_collected(
    tmp_path, lists, has_host
):
    """As with MemProfiler, whose key of such a call has rss_* and npp_* in any case."""
    functions = {"default": (), "history": (), "modules": (), **lists}
    found = run(tmp_path, functions=functions, history="history" in lists)
    table = "function/training_step"
    assert found.snaps("training_step") == [
        "training_step.2.start",
        "training_step.2.end",
    ]
    assert found.column("hook.npp_diff", table) == [None, 4608]
    assert len(found.captures_of("hooks", "training_step")) == 1
    assert len(found.captures_of("activations", "training_step")) == 1
    (schema,) = (s for s in found.schemas.values() if s.table == table)
    assert ("rss_bytes" in {column.name for column in schema.columns}) == has_host


def test_allocator_history_that_is_off_collects_no_function(tmp_path):
    found = run(tmp_path, functions={"default": (), "history": "step", "modules": ()})
    assert found.tables() == {("step", "train")}
    assert found.captures_of("hooks") == []


def test_spans_and_the_newest_recorder(tmp_path):
    with record(tmp_path / "run", schedule={"warmup": 0}) as rec:
        with rec.span("eval", memory=True):
            pass
        with mb.span("any", memory=True):
            pass
        with rec.span("time alone"):
            pass
    found = read_only_file(tmp_path / "run")
    assert found.snaps("eval") == ["eval.1.start", "eval.1.end"]
    assert found.snaps("any") == ["any.1.start", "any.1.end"]
    assert found.snaps("time alone") == []
    assert {n["name"] for n in found.notes_of("span")} == {"eval", "any", "time alone"}


# What training does for it.


def test_a_collected_step_hands_over_once(tmp_path, monkeypatch):
    schedule = {"warmup": 0, "active": 3}
    with record(tmp_path / "run", model=mlp(), schedule=schedule) as rec:
        engine, handed_over = rec._session.engine, []
        put = engine.put_all_later
        monkeypatch.setattr(
            engine,
            "put_all_later",
            lambda found: (handed_over.append(found), put(found)),
        )
        for _ in range(3):
            rec.step()
    # The start and the end of a step, its hooks and its saved tensors.
    assert [len(found) for found in handed_over] == [4] * 3


def test_a_forward_takes_two_calls_and_a_saved_tensor_one(tmp_path):
    def calls_in_a_step(num_modules, name):
        model, x = nn.Sequential(*(nn.Tanh() for _ in range(num_modules))), batch()
        x.requires_grad_()
        calls = 0

        def count(frame, event, _arg):
            nonlocal calls
            module = frame.f_globals.get("__name__", "")
            calls += event == "call" and module.startswith("memboard.")

        schedule = {"warmup": 0, "active": 2}
        with record(tmp_path / name, model=model, schedule=schedule) as rec:
            rec.step()
            sys.setprofile(count)
            try:
                model(x)
            finally:
                sys.setprofile(None)
        return calls

    assert calls_in_a_step(14, "large") - calls_in_a_step(4, "small") == 10 * (2 + 1)


# What is found.


def test_one_reading_of_the_process_stands_for_the_boundary_of_two_steps(tmp_path):
    mib = 2**20

    @mb.profiled
    def grow():
        return torch.ones(64 * mib, dtype=torch.uint8)

    schedule = {"warmup": 0, "active": 3}
    with record(tmp_path / "run", schedule=schedule) as rec:
        kept = []
        for _ in range(3):
            kept.append(grow())
            rec.step()
        kept.append(grow())
        rec.step()
    found = read_only_file(tmp_path / "run")
    rows = found.column("rss_bytes", "step")
    sizes = found.column("rss_bytes", "function/step")
    starts, ends = sizes[::2], sizes[1::2]
    assert ends == rows[:3]
    assert starts[1:] == ends[:2]
    # Within a step everybody reads for themselves, and so does a step that is not collected.
    for before, after in zip(starts, ends, strict=True):
        assert after - before > 60 * mib
    calls = found.column("rss_bytes", "function/grow")
    for before, after in zip(calls[::2], calls[1::2], strict=True):
        assert after - before > 60 * mib
    assert rows[3] - rows[2] > 60 * mib


@pytest.mark.usefixtures("countable_activations")
def test_the_mlps_numbers_are_on_disk(tmp_path):
    """MemProfiler has the 4608 alone: views of parameters, and some twice (A7)."""
    found = run(tmp_path)
    (capture,) = found.captures_of("activations", "training_step")
    assert capture.meta["bytes"] == 1536
    assert capture.meta["npp_compat_bytes"] == 4608
    assert sum(capture.tables["saved"]["tensor_bytes"]) == 2560
    assert found.column("saved_bytes", "activations") == [1536]
    assert found.column("npp_compat_bytes", "activations") == [4608]
    assert found.column("hook.npp_diff", "function/training_step") == [None, 4608]
    (hooks,) = found.captures_of("hooks", "training_step")
    assert hooks.tables["modules"]["path"] == ("", "0", "1", "2")
    # Of submodules too, which MemProfiler computes and drops (A8).
    assert hooks.tables["values"]["npp_diff"].tolist() == [4608, 512, 1024, 3072]
    assert found.source("functions.device")["status"] == "absent"
    assert found.source("functions.device")["reason"]


@pytest.mark.usefixtures("countable_activations")
def test_three_batches_have_three_different_figures(tmp_path):
    """MemProfiler prints the last iteration's peak for all (A2)."""
    trainer = Trainer()
    with record(
        tmp_path / "run",
        model=trainer.model,
        schedule={"warmup": 0, "active": 3},
        modules=True,
    ) as rec:
        for size in (2, 8, 2):
            trainer.training_step(size).backward()
            trainer.model.zero_grad()
            rec.step()
    found = read_only_file(tmp_path / "run")
    saved = [c.meta["bytes"] for c in found.captures_of("activations")]
    assert saved == [768, 3072, 768]
    assert len(found.captures_of("modules")) == 3


def test_a_step_is_followed_to_its_end_whatever_function_is_profiled(tmp_path):
    """MemProfiler sees what the decorated function does: forward alone (A3)."""
    both = {"modules": ("step", "training_step")}
    found = run(tmp_path, modules=True, functions=both)
    (step,) = found.captures_of("modules", "step")
    (forward,) = found.captures_of("modules", "training_step")

    def states(capture):
        return {STATES[state] for state in capture.tables["boundaries"]["state"]}

    backward = {"before_pre_backward", "after_post_backward"}
    optimizer = {"before_optimizer", "after_optimizer"}
    assert states(step) >= backward | optimizer
    assert not states(forward) & (backward | optimizer)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_without_an_accelerator_what_is_named_for_one_is_absent(tmp_path):
    """MemProfiler says that it is off, switches it on again, and keeps nothing (A9)."""
    found = run(tmp_path, functions={"default": (), "device": ("training_step",)})
    note = found.source("functions.device")
    assert (note["status"], bool(note["reason"])) == ("absent", True)
    assert not any(
        "bytes.all" in c.name for s in found.schemas.values() for c in s.columns
    )
    # The hooks need no accelerator.
    assert {capture.kind for capture in found.captures} == {"hooks", "activations"}


def without_times(capture):
    """A capture's figures: its tables but for clocks and resident memory."""
    tables = {}
    for name, table in capture.tables.items():
        tables[name] = {
            column: tuple(values) if isinstance(values, tuple) else values.tolist()
            for column, values in table.items()
            if not column.startswith("rss_") and column != "time_us"
        }
    return tables


@pytest.mark.usefixtures("countable_activations")
def test_together_each_kind_has_the_figures_it_has_alone(tmp_path):
    """One window for all, also where functions nest; see also A9."""
    off = {"hooks": False, "activations": False, "modules": False}

    def captures(name, **kinds):
        torch.manual_seed(0)
        found = run(tmp_path / name, **{**off, **kinds})
        return {(c.kind, c.function): c for c in found.captures}

    together = captures("together", hooks=True, activations=True, modules=True)
    assert len(together) == 5
    alone = {
        **captures("activations", activations=True),
        **captures("modules", modules=True),
    }
    for key, capture in alone.items():
        assert without_times(together[key]) == without_times(capture), key
    # And hooks: what is theirs alone is saved bytes, which need the counting.
    hooks = captures("hooks", hooks=True, activations=True)
    for key, capture in hooks.items():
        assert without_times(together[key]) == without_times(capture), key


def test_all_optimizers_reach_the_kinds(tmp_path, monkeypatch):
    """MemProfiler passes the first one alone."""
    from memboard.collector.functions.windows import Windows

    told = []
    monkeypatch.setattr(
        Windows,
        "attach",
        lambda self, model, optimizers: told.append((model, optimizers)),
    )
    generator, critic = mlp(), mlp()
    first, second, third = (
        torch.optim.SGD(model.parameters(), lr=0.1)
        for model in (generator, critic, critic)
    )
    with record(tmp_path / "run", model=generator, optimizer=[first, second]) as rec:
        rec.attach(model=critic)
        rec.attach(optimizer=third)
        rec.attach(optimizer=(third, first))
        wrapped = torch.nn.Sequential(critic)
        rec.attach(model=wrapped)  # takes the place of what it wraps
        rec.attach(model=critic)
    assert told[0] == (generator, (first, second))
    assert list(told[1][0]) == [generator, critic]
    assert told[2][1] == told[3][1] == (first, second, third)
    assert list(told[4][0]) == list(told[5][0]) == [generator, wrapped]
    found = read_only_file(tmp_path / "run")
    assert [n["type"] for n in found.notes_of("optimizer")] == ["SGD"] * 5


@pytest.mark.usefixtures("countable_activations")
def test_two_models_have_both_their_modules(tmp_path):
    generator, critic = mlp(), torch.nn.Linear(8, 1)
    with record(tmp_path / "run", model=[generator, critic]) as rec:
        for _ in range(3):
            critic(generator(batch())).sum().backward()
            rec.step()
    (hooks,) = read_only_file(tmp_path / "run").captures_of("hooks")
    assert hooks.tables["modules"]["path"] == ("", "0", "0.0", "0.1", "0.2", "1")
    assert hooks.tables["values"]["npp_diff"].tolist()[1:3] == [4608, 512]
