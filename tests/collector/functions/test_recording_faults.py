"""Profiled functions in a real recording, whatever training does."""

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

import memboard as mb
from memboard.collector.format.memory import CATEGORIES
from tests.collector.functions.models import (
    Trainer,
    batch,
    fingerprint,
    mlp,
    record,
    run,
)
from tests.collector.recordings import read_only_file

ROOT = Path(__file__).parents[3]


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
    @mb.profiled("fails")
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
        "import os, signal, sys, memboard as mb\n"
        "from tests.collector.functions.models import record\n"
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


def test_a_model_is_copied_and_saved_in_a_window_and_as_it_was_after_it(tmp_path):
    """MemProfiler leaves attributes that forbid copying and saving (A11)."""
    model, x = Trainer().model, batch()
    before = fingerprint(model)

    def is_copied():
        torch.save(model, tmp_path / "model.pt")
        loaded = torch.load(tmp_path / "model.pt", weights_only=False)
        return all(torch.equal(m(x), model(x)) for m in (copy.deepcopy(model), loaded))

    with record(tmp_path / "run", model=model, modules=True) as rec:
        rec.step()  # the second step is under way, and collected
        assert fingerprint(model) != before
        assert is_copied()
        rec.step()
        assert fingerprint(model) == before  # the window is over already
        assert is_copied()
    rec = record(tmp_path / "closed in a window", model=model)
    rec.step()
    rec.close()
    assert fingerprint(model) == before


def test_hooks_of_the_users_that_fail_are_told_and_all_else_goes_on(tmp_path, caplog):
    def broken(module, *_):
        raise RuntimeError("mine")

    keys = ("pre_forward", "post_forward", "reset")
    hooks = {**dict.fromkeys(keys, (broken,)), "save_attrs": ["num_outputs"]}
    found = run(tmp_path, hooks={**hooks, "post_forward": (broken, count_outputs)})
    assert len(found.steps()) == 4
    for key in keys:
        note = found.source(f"hooks.{key}")
        assert note["status"] == "failed"
        assert "broken: RuntimeError: mine" in note["reason"]
        assert f"remove it from hooks.{key}" in note["remedy"]
    (capture,) = found.captures_of("hooks", "training_step")
    assert capture.tables["values"]["num_outputs"].tolist() == [32, 256, 256, 32]
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
        "import sys, memboard as mb\n"
        "@mb.profiled\n"
        "def f(): return 1\n"
        "f()\n"
        "with mb.record(sys.argv[1], functions=False, scalars=False) as rec:\n"
        "    for _ in range(3): f(); rec.step()\n"
        "ours = [m for m in sys.modules if m.startswith('memboard.collector.functions.')]\n"
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
    rec = mb.record("unused", enabled=False)
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
                        "tests.collector.functions.test_recording_faults.count_outputs"
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
    with pytest.raises(mb.ConfigError, match=r"hooks\.pre_forward"):
        record(tmp_path / "run", hooks={"pre_forward": ["no_such_package.hook"]})
