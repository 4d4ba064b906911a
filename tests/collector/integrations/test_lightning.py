"""The Lightning callback inside the real Trainer."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest

pl = pytest.importorskip("lightning.pytorch")

import torch  # noqa: E402

import memboard as mb  # noqa: E402
from memboard.collector.core.warn_once import logger  # noqa: E402
from memboard.collector.errors import ConfigError  # noqa: E402
from memboard.collector.integrations.lightning import MemBoardCallback  # noqa: E402
from tests.collector.integrations.models import (  # noqa: E402
    Regression,
    TwoOptimizers,
    batches,
)
from tests.collector.recordings import rank_files, read, read_only_file  # noqa: E402
from tests.collector.steps.test_span_log import named, spans_of  # noqa: E402

# Lightning and torch warn of things that are no business of the callback.
pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def trainer(tmp_path, callback, **changed):
    given = {
        "default_root_dir": tmp_path,
        "accelerator": "cpu",
        "max_epochs": 2,
        "limit_val_batches": 2,
        "num_sanity_val_steps": 1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "callbacks": [callback],
    }
    return pl.Trainer(**{**given, **changed})


def test_a_fit_with_its_phases_epochs_steps_and_sizes(tmp_path):
    callback = MemBoardCallback()
    trainer(tmp_path, callback).fit(Regression(), batches(4), batches(3))
    found = read_only_file(tmp_path)
    assert found.steps() == list(range(8))
    assert found.column("samples") == [3 * n for n in range(1, 9)]
    assert found.column("epoch") == [0] * 4 + [1] * 4
    assert found.steps("sanity") == [0]
    assert found.steps("val") == [0, 1, 2, 3]
    phases = [note["phase"] for note in found.notes_of("phase")]
    assert phases == ["sanity", "train", "val", "train", "val", "train"]
    epochs = [(n["epoch"], n["length"]) for n in found.notes_of("epoch")]
    assert epochs == [(0, 4), (1, 4)]
    assert found.notes_of("model")[0]["type"] == "Regression"
    assert [n["type"] for n in found.notes_of("optimizer")] == ["SGD"]
    assert found.close.how == "closed"
    assert mb.active() is None
    # The implicit function covers the whole step, not only its forward.
    assert found.snaps("step") == ["step.2.start", "step.2.end"]


def test_it_records_into_the_loggers_directory_or_where_it_is_told(tmp_path):
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path, name="exp", version="v7")
    callback = MemBoardCallback()
    trainer(tmp_path, callback, logger=logger, max_epochs=1).fit(
        Regression(), batches(1)
    )
    assert len(rank_files(tmp_path / "exp" / "v7")) == 1
    callback = MemBoardCallback(tmp_path / "mine")
    trainer(tmp_path, callback, logger=logger, max_epochs=1).fit(
        Regression(), batches(1)
    )
    assert len(rank_files(tmp_path / "mine")) == 1
    assert len(rank_files(tmp_path / "exp" / "v7")) == 1


def test_several_optimizers_are_all_attached(tmp_path):
    trainer(tmp_path, MemBoardCallback()).fit(TwoOptimizers(), batches(2))
    found = read_only_file(tmp_path)
    assert [n["type"] for n in found.notes_of("optimizer")] == ["SGD", "AdamW"]
    assert found.steps() == [0, 1, 2, 3]  # a batch is a step, however many optimizers


@pytest.mark.parametrize(
    ("entry", "phase"), [("validate", "val"), ("test", "test"), ("predict", "predict")]
)
def test_each_entry_point_by_itself(tmp_path, entry, phase):
    run = trainer(tmp_path, MemBoardCallback())
    getattr(run, entry)(
        Regression(), batches(2), **({} if entry == "predict" else {"verbose": False})
    )
    found = read_only_file(tmp_path)
    assert found.steps(phase) == [0, 1]
    assert found.steps("train") == []
    assert found.close.how == "closed"


def test_one_callback_serves_several_runs(tmp_path):
    callback = MemBoardCallback()
    run = trainer(tmp_path, callback, max_epochs=1)
    model = Regression()
    run.fit(model, batches(2))
    run.test(model, batches(1), verbose=False)
    assert [read(path).steps("test") for path in rank_files(tmp_path)] == [[], [0]]


def test_an_exception_ends_the_recording_and_reaches_the_user(tmp_path):
    with pytest.raises(RuntimeError, match="the batch is bad"):
        trainer(tmp_path, MemBoardCallback()).fit(Regression(fail_at=2), batches(4))
    found = read_only_file(tmp_path)
    assert found.steps() == [0, 1]
    assert found.close.how == "exception"
    assert found.close.message == "RuntimeError: the batch is bad"


def test_resumed_training_goes_on_in_number(tmp_path):
    saved = tmp_path / "saved.ckpt"
    run = trainer(tmp_path / "a", MemBoardCallback(), max_epochs=1)
    run.fit(Regression(), batches(3))
    run.save_checkpoint(saved)
    again = trainer(tmp_path / "b", MemBoardCallback(), max_epochs=2)
    again.fit(Regression(), batches(3), ckpt_path=saved, weights_only=False)
    assert read_only_file(tmp_path / "b").steps() == [3, 4, 5]


def test_settings_are_checked_when_the_callback_is_made(tmp_path):
    with pytest.raises(ConfigError, match="flush_secnds"):
        MemBoardCallback(tmp_path, flush_secnds=1)
    callback = MemBoardCallback(config={"scalars": False}, max_file_bytes=10**6)
    trainer(tmp_path, callback, max_epochs=1).fit(Regression(), batches(1))
    assert read_only_file(tmp_path).header.config["scalars"] is False


def test_switched_off_it_leaves_nothing(tmp_path):
    trainer(tmp_path, MemBoardCallback(enabled=False)).fit(Regression(), batches(1))
    assert list(tmp_path.rglob("*.events*")) == []


def test_no_failure_reaches_the_trainer(tmp_path, caplog, monkeypatch):
    logger.propagate = True
    callback = MemBoardCallback("s3://bucket/run")  # no local directory
    run = trainer(tmp_path, callback, max_epochs=1)
    run.fit(Regression(), batches(2))
    assert run.global_step == 2
    assert caplog.text.count("the callback failed in setup") == 1
    caplog.clear()
    broken = MemBoardCallback()
    monkeypatch.setattr(
        "memboard.collector.integrations.lightning.sizes_of", lambda batch: 1 / 0
    )
    run = trainer(tmp_path, broken, max_epochs=1)
    run.fit(Regression(), batches(3), batches(2))
    assert run.global_step == 3
    assert caplog.text.count("the callback failed in on_train_batch_end") == 1
    assert read_only_file(tmp_path).close.how == "closed"


def test_the_model_and_trainer_stay_as_they_were(tmp_path):
    callback = MemBoardCallback()
    model = Regression()
    run = trainer(tmp_path, callback, max_epochs=1)
    run.fit(model, batches(3))
    copy.deepcopy(model)
    torch.save(model.state_dict(), tmp_path / "m.pt")
    run.save_checkpoint(tmp_path / "c.ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy.deepcopy(run.callbacks)
    assert not model._forward_hooks
    assert not model.layer._forward_hooks


def test_copies_have_the_settings_and_no_recording(tmp_path):
    callback = MemBoardCallback(tmp_path, flush_seconds=3)
    callback._session.start(tmp_path)
    for other in (copy.deepcopy(callback), pickle.loads(pickle.dumps(callback))):
        assert other.recorder is not callback.recorder
        assert other.recorder.path is None
        assert other._session.logdir == tmp_path
        trainer(tmp_path, other, max_epochs=1).fit(Regression(), batches(1))
    callback.recorder.flush(60)
    assert len(rank_files(tmp_path)) == 3
    with callback:
        pass
    assert mb.active() is None


def test_the_recorder_is_there_for_marks_and_spans(tmp_path):
    callback = MemBoardCallback(tmp_path)
    callback.recorder.mark("too early")

    class Marks(pl.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            callback.recorder.mark("half way")

    run = trainer(tmp_path, callback, max_epochs=1)
    run.callbacks.append(Marks())
    run.fit(Regression(), batches(1))
    assert read_only_file(tmp_path).notes_of("mark") == [{"label": "half way"}]


RANKS = """
import logging, sys, warnings
warnings.simplefilter("ignore")
import lightning.pytorch as pl
from memboard.collector.integrations.lightning import MemBoardCallback
from tests.collector.integrations.models import Regression, batches
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pl.Trainer(
    default_root_dir=sys.argv[1], accelerator="cpu", devices=2, strategy=sys.argv[2],
    max_epochs=1, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, num_sanity_val_steps=0,
    logger=pl.loggers.CSVLogger(sys.argv[1]),
    callbacks=[MemBoardCallback()],
).fit(Regression(), batches(4))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["ddp", pytest.param("ddp_fork", marks=pytest.mark.matrix)]
)
def test_every_rank_records_into_the_directory_that_rank_0_chose(tmp_path, strategy):
    script = tmp_path / "train.py"
    script.write_text(RANKS)
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, script, tmp_path, strategy],
        cwd=root,
        env={
            "PYTHONPATH": str(root),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {
        read(p).header.rank: read(p)
        for p in rank_files(tmp_path / "lightning_logs" / "version_0")
    }
    assert sorted(found) == [0, 1]
    for rank, recording in found.items():
        assert recording.steps() == [0, 1]
        assert (recording.header.world_size, recording.header.local_rank) == (2, rank)
        assert recording.close.how == "closed"


# Spans.

ALWAYS = {"warmup": 0, "active": 0}


class Quiet(pl.Callback):
    def __init__(self):
        self.num_batches = 0

    def on_train_batch_end(self, *_):
        self.num_batches += 1


def test_events_and_callbacks_are_spans_and_nothing_is_left_of_it(tmp_path):
    other = Quiet()
    callback = MemBoardCallback(schedule=ALWAYS)
    run = trainer(tmp_path, callback, callbacks=[callback, other], logger=False)
    profiler = run.profiler
    run.fit(Regression(), batches(4), batches(3))
    assert other.num_batches == 8
    found = read_only_file(tmp_path)
    counts = Counter(row["name"] for row in spans_of(found))
    assert counts["event/fit"] == 1
    assert counts["event/epoch"] == 2
    assert counts["event/batch"] == 8
    assert counts["event/training_step"] == 8
    assert counts["callback/Quiet/event/on_train_batch_end"] == 8
    assert not [name for name in counts if "MemBoard" in name]
    (fit,) = named(found, "event/fit")
    for row in named(found, "event/epoch"):
        assert fit["start_ns"] < row["start_ns"]
        assert (
            row["start_ns"] + row["duration_ns"] < fit["start_ns"] + fit["duration_ns"]
        )
        assert row["depth"] > fit["depth"]
    # The module's own forward is not called, its training_step is what counts.
    assert all(seconds > 0 for seconds in found.column("forward_seconds"))
    assert not vars(profiler).keys() & {"start", "stop"}
    notes = {note["name"] for note in found.notes_of("span")}
    assert not [name for name in notes if name.startswith("callback/")]


def test_fit_and_epoch_are_there_whatever_the_schedule_and_after_an_error(tmp_path):
    class Fails(Regression):
        def training_step(self, batch, batch_idx):
            if self.current_epoch == 1:
                raise RuntimeError("the batch is bad")
            return super().training_step(batch, batch_idx)

    callback = MemBoardCallback()
    with pytest.raises(RuntimeError, match="the batch is bad"):
        trainer(tmp_path, callback, limit_val_batches=0).fit(Fails(), batches(4))
    found = read_only_file(tmp_path)
    counts = Counter(row["name"] for row in spans_of(found))
    assert (counts["event/fit"], counts["event/epoch"]) == (1, 2)
    assert counts["event/training_step"] == 2  # of the schedule's steps


def test_actions_have_the_names_that_composer_gives_them():
    from memboard.collector.integrations.lightning import _span_of

    key = "[Callback]ModelCheckpoint{'monitor': 'a.b', 'mode': 'min'}.on_train_start"
    assert _span_of(key) == (
        "callback/ModelCheckpoint/event/on_train_start",
        "callback",
    )
    assert _span_of("[Callback]MemBoardCallback.setup") == ("", "")
    assert _span_of("[Strategy]DDP.validation_step") == (
        "event/validation_step",
        "forward",
    )
    assert _span_of("[Strategy]DDP.backward") == ("event/backward", "event")
    assert _span_of("my own action") == ("event/my own action", "event")
