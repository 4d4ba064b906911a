"""The Composer callback on a stand-in that has Composer's documented interface."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections import Counter
from pathlib import Path

import pytest

import memboard as mb
from memboard.collector.core.warn_once import logger
from memboard.collector.errors import ConfigError
from memboard.collector.steps.spans.log import STATES
from tests.collector.integrations import composer_standin as standin
from tests.collector.recordings import rank_files, read, read_only_file
from tests.collector.steps.test_span_log import named, spans_of


@pytest.fixture
def module(monkeypatch, tmp_path):
    standin.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("memboard.collector.integrations.composer")
    sys.modules.pop("memboard.collector.integrations.composer")


def trainer(callback, **given):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 2)
    optimizers = (
        torch.optim.SGD(model.parameters()),
        torch.optim.AdamW(model.parameters()),
    )
    return standin.Trainer(
        model=model, optimizers=optimizers, callbacks=[callback], **given
    )


def test_a_fit_with_its_phases_epochs_steps_and_sizes(module):
    run = trainer(module.MemBoardCallback())
    run.fit()
    run.close()
    (path,) = rank_files(Path("tensorboard_logs/1790-brave-otter"))
    found = read(path)
    assert found.steps() == [1, 2, 3, 4, 5, 6]  # as the trainer's own logs count
    assert found.column("samples") == [4 * n for n in range(1, 7)]
    assert found.column("tokens") == [32 * n for n in range(1, 7)]
    assert found.steps("val") == [0, 1, 2, 3]
    epochs = [(n["epoch"], n["length"]) for n in found.notes_of("epoch")]
    assert epochs == [(0, 3), (1, 3)]
    assert [n["type"] for n in found.notes_of("optimizer")] == ["SGD", "AdamW"]
    assert found.notes_of("model")[0]["type"] == "Linear"
    assert found.close.how == "closed"
    assert mb.active() is None


def test_it_records_beside_composers_own_tensorboard_logs(module, tmp_path):
    loggers = [object(), standin.TensorboardLogger(tmp_path / "tb")]
    run = trainer(module.MemBoardCallback(), loggers=loggers)
    run.fit()
    run.close()
    assert len(rank_files(tmp_path / "tb" / "1790-brave-otter")) == 1
    run = trainer(module.MemBoardCallback(tmp_path / "mine"), loggers=loggers)
    run.fit()
    run.close()
    assert len(rank_files(tmp_path / "mine")) == 1


def test_evaluation_and_prediction_by_themselves(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"))
    run.eval()
    run.predict()
    run.close()
    found = read_only_file(tmp_path / "a")
    assert found.steps("val") == found.steps("predict") == [0, 1]
    assert found.steps() == []


def test_fits_of_one_trainer_are_one_recording(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), epochs=1)
    run.fit()
    run.eval()
    run.fit()
    run.close()
    found = read_only_file(tmp_path / "a")
    assert found.steps() == [1, 2, 3, 4, 5, 6]
    assert found.steps("val") == list(range(6))


def test_epochs_of_unknown_length(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), batches=0)
    run.fit()
    run.close()
    found = read_only_file(tmp_path / "a")
    assert [n["length"] for n in found.notes_of("epoch")] == [None, None]


def test_after_an_exception_what_was_recorded_is_there(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), fail_at=2)
    with pytest.raises(RuntimeError, match="the batch is bad"):
        run.fit()
    run.close()
    assert read_only_file(tmp_path / "a").steps() == [1, 2]
    with (
        pytest.raises(RuntimeError, match="the batch is bad"),
        module.MemBoardCallback(tmp_path / "b") as callback,
    ):
        trainer(callback, fail_at=2).fit()
    assert read_only_file(tmp_path / "b").close.how == "exception"


def test_no_failure_reaches_the_trainer(module, tmp_path, caplog, monkeypatch):
    logger.propagate = True
    with pytest.raises(ConfigError):
        module.MemBoardCallback(rsss=1)
    monkeypatch.setattr(module, "sizes_of", lambda batch: 1 / 0)
    run = trainer(module.MemBoardCallback(tmp_path / "a"))
    run.fit()
    run.close()
    assert caplog.text.count("the callback failed in batch_end") == 1
    assert read_only_file(tmp_path / "a").close.how == "closed"


def test_without_composer_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "composer", None)
    monkeypatch.delitem(
        sys.modules, "memboard.collector.integrations.composer", raising=False
    )
    with pytest.raises(ImportError, match="pip install mosaicml"):
        importlib.import_module("memboard.collector.integrations.composer")


ALWAYS = {"warmup": 0, "active": 0}


class Algorithm:
    """Applies at the end of each batch, and counts."""

    num_applied = 0

    def match(self, event, state):
        return event == "batch_end"

    def apply(self, event, state, logger):
        self.num_applied += 1
        return 42


class Other(standin.Callback):
    pass


def test_spans_have_composers_names_and_all_events_end(module, tmp_path):
    other, algorithm = Other(), Algorithm()
    callback = module.MemBoardCallback(tmp_path, schedule=ALWAYS)
    run = trainer(callback, algorithms=[algorithm])
    run.callbacks.append(other)
    run.fit()
    inside = copy.deepcopy(other)
    sent = pickle.loads(pickle.dumps(other))
    run.close()
    found = read_only_file(tmp_path)
    counts = Counter(row["name"] for row in spans_of(found))
    # A run of two epochs has both, and each begins and ends once.
    assert counts["event/epoch"] == 2
    assert counts["event/fit"] == 1
    assert counts["event/batch"] == counts["event/train_batch"] == 6
    assert counts["event/forward"] == 6
    assert counts["callback/Other/event/batch_end"] == 6
    assert counts["callback/Other/event/epoch_start"] == 2
    assert counts["algorithm/Algorithm/event/batch_end"] == 6
    assert algorithm.num_applied == 6
    assert not vars(other)
    assert not {"apply"} & vars(algorithm).keys()
    for copied in (inside, sent):  # have a method of their own in that place
        assert copied.run_event.__self__ is copied


def test_a_step_that_saves_has_its_events_too(module, tmp_path):
    """Composer's engine leaves the last batch of each cycle without beginnings."""
    schedule = {"skip_first": 1, "wait": 1, "warmup": 1, "active": 2}
    run = trainer(module.MemBoardCallback(tmp_path, schedule=schedule), batches=6)
    run.fit()
    run.close()
    found = read_only_file(tmp_path)
    batches = [
        (row["step"], STATES[row["state"]]) for row in named(found, "event/forward")
    ]
    assert [state for _, state in batches] == ["WARMUP", "ACTIVE", "ACTIVE_AND_SAVE"]
    assert len(named(found, "event/epoch")) == 2


def test_events_are_named_without_when_they_are():
    from memboard.collector.integrations.events import canonical

    assert canonical("epoch_start") == ("epoch", True)
    assert canonical("epoch_end") == ("epoch", False)
    assert canonical("eval_before_forward") == ("eval_forward", True)
    assert canonical("after_train_batch") == ("train_batch", False)
    assert canonical("batch_checkpoint") == ("batch_checkpoint", None)
