"""Profiled functions in a real recording: what lies on disk, whatever training does."""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import collector
from collector.format.memory import CATEGORIES, STATES
from tests.collector.functions.models import batch, fingerprint, mlp
from tests.collector.recordings import ONLY_STEPS, read_only_file

ROOT = Path(__file__).parents[3]

PROFILED = {**ONLY_STEPS, "functions": True}


def record(run_dir, **keywords):
    return collector.record(run_dir, **{**PROFILED, **keywords})


class Trainer:
    """A model whose steps are profiled methods, as a trainer would have them."""

    def __init__(self):
        self.model = mlp()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    @collector.profiled("training_step")
    def training_step(self, size=4):
        return self.model(batch(size)).sum()

    @collector.profiled("validation_step")
    def validation_step(self):
        with torch.no_grad():
            return self.model(batch()).sum()

    def fit(self, rec, num_epochs=1, num_batches=4, num_val=0):
        for epoch in range(num_epochs):
            rec.epoch(epoch, num_batches)
            for _ in range(num_batches):
                self.training_step().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                rec.step(samples=4)
            with rec.phase("val"):
                for _ in range(num_val):
                    self.validation_step()
                    rec.step()


def run(tmp_path, trainer=None, fit=None, **keywords):
    trainer = trainer or Trainer()
    with record(
        tmp_path / "run", model=trainer.model, optimizer=trainer.optimizer, **keywords
    ) as rec:
        trainer.fit(rec, **(fit or {}))
    return read_only_file(tmp_path / "run")


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
    found = run(
        tmp_path,
        functions={"default": "training_step", "host": "step", "modules": ()},
    )
    assert found.tables() == {
        ("step", "train"),
        ("function/training_step", "train"),
        ("function/step", "train"),
        ("activations", "train"),
    }
    assert found.captures_of("hooks", "step") == []
    assert len(found.captures_of("hooks", "training_step")) == 1


def test_spans_and_the_newest_recorder(tmp_path):
    with record(tmp_path / "run", schedule={"warmup": 0}) as rec:
        with rec.span("eval", memory=True):
            pass
        with collector.span("any", memory=True):
            pass
        with rec.span("time alone"):
            pass
    found = read_only_file(tmp_path / "run")
    assert found.snaps("eval") == ["eval.1.start", "eval.1.end"]
    assert found.snaps("any") == ["any.1.start", "any.1.end"]
    assert found.snaps("time alone") == []
    assert {n["name"] for n in found.notes_of("span")} == {"eval", "any", "time alone"}


# What is found.


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


def test_inputs_are_counted_without_being_named(tmp_path):
    """MemProfiler's are always 0: nobody hands them to its tracker (A4)."""
    (capture,) = run(tmp_path, modules=True).captures_of("modules", "step")
    assert capture.meta["inputs"] == "forward"
    events = capture.tables["events"]
    inputs = events["category"] == CATEGORIES.index("input")
    assert events["delta_bytes"][inputs].max() == batch().nbytes == 512


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_without_an_accelerator_what_is_named_for_one_is_absent(tmp_path):
    """MemProfiler says that it is off, switches it on again, and keeps nothing (A9)."""
    found = run(tmp_path, functions={"default": (), "device": ("training_step",)})
    note = found.source("functions.device")
    assert (note["status"], bool(note["reason"])) == ("absent", True)
    assert found.captures == []


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
    from collector.functions.windows import Windows

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


# Whatever happens.


def test_inputs_that_are_named_are_counted_and_not_kept_alive(tmp_path):
    trainer, unused = Trainer(), torch.ones(100)
    gone = weakref.ref(unused)
    functions = {"modules": ["training_step"]}
    schedule = {"warmup": 2, "active": 1}
    with record(
        tmp_path,
        model=trainer.model,
        modules=True,
        functions=functions,
        schedule=schedule,
    ) as rec:
        trainer.training_step()
        rec.track_inputs({"unused": unused})
        del unused
        assert gone() is None
        trainer.training_step()
        named = torch.ones(1000)
        rec.track_inputs([named])
        trainer.training_step()
    (capture,) = [c for c in read_only_file(tmp_path).captures if c.kind == "modules"]
    assert capture.meta["inputs"] == "given"
    events = capture.tables["events"]
    inputs = events["category"] == CATEGORIES.index("input")
    assert events["delta_bytes"][inputs & (events["time_us"] == 0)].tolist() == [4000]


def test_an_epoch_of_sanity_checks_and_validation_harms_nothing(tmp_path):
    """MemProfiler's counters are shared, and this run dies in epoch 2 (A1)."""
    trainer = Trainer()
    with record(tmp_path / "run", model=trainer.model) as rec:
        with rec.phase("sanity"):
            trainer.validation_step()
        trainer.fit(rec, num_epochs=2, num_batches=4, num_val=2)
    found = read_only_file(tmp_path / "run")
    assert found.close.how == "closed"
    assert found.snaps("training_step") == [
        "training_step.2.start",
        "training_step.2.end",
    ]
    # The first training step began after the sanity check, and still is number 1.
    assert [c.step for c in found.captures_of("hooks") if c.phase == "train"] == [1]


@pytest.mark.usefixtures("countable_activations")
def test_an_exception_in_step_4_leaves_steps_1_to_3_and_the_partial_4(tmp_path):
    """MemProfiler has written nothing by then (A6)."""
    trainer = Trainer()

    def train(rec):
        for step in range(10):
            trainer.training_step()
            if step == 3:
                raise ZeroDivisionError
            rec.step()

    rec = record(
        tmp_path / "run",
        model=trainer.model,
        schedule={"warmup": 0, "active": 0},
    )
    with pytest.raises(ZeroDivisionError), rec:
        train(rec)
    found = read_only_file(tmp_path / "run")
    assert found.close.how == "exception"
    expected = [f"{n}.{side}" for n in (1, 2, 3, 4) for side in ("start", "end")]
    assert found.snaps("step") == [f"step.{key}" for key in expected]
    assert found.snaps("training_step") == [f"training_step.{key}" for key in expected]
    partial = found.captures_of("activations")[-1]
    assert (partial.iteration, partial.meta["incomplete"]) == (4, True)
    assert partial.meta["bytes"] == 1536


def test_an_exception_inside_a_function_ends_its_call(tmp_path):
    @collector.profiled("fails")
    def fails():
        raise KeyError("mine")

    with record(tmp_path / "run", schedule={"warmup": 0}) as rec:
        with pytest.raises(KeyError):
            fails()
        rec.step()
    assert read_only_file(tmp_path / "run").snaps("fails") == [
        "fails.1.start",
        "fails.1.end",
    ]


def test_killed_in_a_call_its_start_is_on_disk(tmp_path):
    code = (
        "import os, signal, sys, collector\n"
        "from tests.collector.functions.test_recording import record\n"
        "with record(sys.argv[1], schedule={'warmup': 0}) as rec:\n"
        "    with rec.span('slow', memory=True):\n"
        "        rec.flush(60)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        cwd=ROOT,
        check=False,
        timeout=300,
    )
    found = read_only_file(tmp_path / "run")
    assert found.snaps("slow") == ["slow.1.start"]
    assert found.close is None


def test_after_profiling_the_model_is_as_it_was(tmp_path):
    """MemProfiler leaves attributes that forbid copying and saving (A11)."""
    trainer = Trainer()
    before = fingerprint(trainer.model)
    with record(tmp_path / "run", model=trainer.model, modules=True) as rec:
        trainer.fit(rec, num_batches=4)
        assert fingerprint(trainer.model) == before  # the window is over already
        copy.deepcopy(trainer.model)
        torch.save(trainer.model, tmp_path / "model.pt")
    assert fingerprint(trainer.model) == before


def test_in_the_window_too_a_model_can_be_copied_and_saved(tmp_path):
    trainer = Trainer()
    with record(tmp_path / "run", model=trainer.model) as rec:
        rec.step()  # the second step is under way, and collected
        twin = copy.deepcopy(trainer.model)
        torch.save(trainer.model, tmp_path / "model.pt")
        rec.step()
    x = batch()
    assert torch.equal(twin(x), trainer.model(x))
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(loaded(x), trainer.model(x))


def test_closing_in_a_window_leaves_the_model_as_it_was(tmp_path):
    trainer = Trainer()
    before = fingerprint(trainer.model)
    rec = record(tmp_path / "run", model=trainer.model)
    rec.step()
    assert fingerprint(trainer.model) != before
    rec.close()
    assert fingerprint(trainer.model) == before


def test_hooks_of_the_users_that_fail_are_told_and_training_goes_on(tmp_path, caplog):
    def broken(module, *_):
        raise RuntimeError("mine")

    keys = ("pre_forward", "post_forward", "reset")
    found = run(tmp_path, hooks=dict.fromkeys(keys, (broken,)))
    assert len(found.steps()) == 4
    for key in keys:
        note = found.source(f"hooks.{key}")
        assert (note["status"], "mine" in note["reason"]) == ("failed", True)
    assert len(found.captures_of("hooks", "training_step")) == 1
    told = [r for r in caplog.records if "failed and is off" in r.getMessage()]
    assert len(told) == 3


def test_without_hooks_of_ones_own_nothing_is_missing(tmp_path, caplog):
    """MemProfiler raises KeyError in the first collected step (A10)."""
    with caplog.at_level(logging.WARNING):
        found = run(tmp_path, hooks={"pre_forward": ()})
    assert found.captures_of("hooks", "training_step")
    assert caplog.records == []


def test_two_recorders_each_collect_their_own(tmp_path):
    trainer = Trainer()
    with (
        record(tmp_path / "a", model=trainer.model) as first,
        record(tmp_path / "b", model=trainer.model) as second,
    ):
        for _ in range(3):
            trainer.training_step().backward()
            first.step()
            second.step()
    one, other = read_only_file(tmp_path / "a"), read_only_file(tmp_path / "b")
    assert one.snaps("step") == other.snaps("step") == ["step.2.start", "step.2.end"]
    assert other.snaps("training_step")  # the newest recorder's
    assert one.snaps("training_step") == []
    assert fingerprint(trainer.model) == fingerprint(mlp())


def test_steps_from_many_threads_and_profiled_calls_at_once(tmp_path):
    trainer = Trainer()
    with record(tmp_path / "run", model=trainer.model, schedule={"active": 0}) as rec:

        def work():
            for _ in range(10):
                trainer.training_step().backward()
                rec.step()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = read_only_file(tmp_path / "run")
    iterations = found.column("iteration", "function/training_step")
    assert sorted(iterations) == sorted(list(range(2, 41)) * 2)
    assert len(found.steps()) == 40
    assert not [n for n in found.notes_of("source") if n["status"] == "failed"]
    assert not any(module._forward_hooks for module in trainer.model.modules())


@pytest.mark.usefixtures("countable_activations")
def test_a_dataloader_worker_forked_in_a_window_is_harmless(tmp_path):
    dataset = torch.utils.data.TensorDataset(torch.randn(8, 32))
    trainer = Trainer()
    with record(tmp_path / "run", model=trainer.model, schedule={"active": 0}) as rec:
        rec.step()
        loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=1)
        for (x,) in loader:
            trainer.model(x).sum().backward()
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert len(found.steps()) == 3
    assert found.captures_of("activations")[0].meta["bytes"] == 1536


# Switched off.


def test_switched_off_nothing_is_imported_or_counted(tmp_path):
    code = (
        "import sys, collector\n"
        "@collector.profiled\n"
        "def f(): return 1\n"
        "f()\n"
        "with collector.record(sys.argv[1], functions=False, scalars=False) as rec:\n"
        "    for _ in range(3): f(); rec.step()\n"
        "ours = [m for m in sys.modules if m.startswith('collector.functions.')]\n"
        "heavy = {'hooks_kind', 'snaps', 'activations', 'module_watch'}\n"
        "assert not heavy & {m.rpartition('.')[2] for m in ours}, ours\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    found = read_only_file(tmp_path / "run")
    assert found.source("functions")["status"] == "off"
    assert not any(table.startswith("function/") for table, _ in found.tables())


def test_a_recorder_that_is_off_takes_the_same_calls():
    rec = collector.record("unused", enabled=False)
    with rec.span("eval", memory=True):
        pass
    assert rec.span("f", memory=True)(len) is len


def test_settings_from_a_file_reach_the_kinds(tmp_path):
    path = tmp_path / "profile.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "schedule": {"warmup": 0, "active": 1},
                "hooks": {
                    "post_forward": [
                        "tests.collector.functions.test_recording.count_outputs"
                    ],
                    "save_attrs": ["num_outputs"],
                },
            }
        )
    )
    found = run(tmp_path, config=path)
    (hooks,) = found.captures_of("hooks", "training_step")
    assert hooks.tables["values"]["num_outputs"].tolist() == [32, 256, 256, 32]
    assert found.column("hook.num_outputs", "function/training_step") == [None, 32]


def count_outputs(module, inputs, outputs):
    module.num_outputs = np.int64(outputs.numel())


def test_a_hook_that_does_not_import_is_refused_before_training(tmp_path):
    with pytest.raises(collector.ConfigError, match=r"hooks\.pre_forward"):
        record(tmp_path / "run", hooks={"pre_forward": ["no_such_package.hook"]})
