"""The Composer callback on a stand-in that has Composer's documented interface."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import collector
from collector.errors import ConfigError
from collector.format.names import RANK_FILES_DIR
from collector.trouble import logger
from tests.collector.integrations import composer_standin as standin
from tests.collector.recordings import read


@pytest.fixture
def module(monkeypatch, tmp_path):
    standin.install(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield importlib.import_module("collector.integrations.composer")
    sys.modules.pop("collector.integrations.composer")


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


def files(run_dir) -> list[Path]:
    return sorted(Path(run_dir).joinpath(*RANK_FILES_DIR).glob("*.events"))


def test_a_fit_with_its_phases_epochs_steps_and_sizes(module):
    run = trainer(module.MemBoardCallback())
    run.fit()
    run.close()
    (path,) = files("tensorboard_logs/1790-brave-otter")
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
    assert collector.active() is None


def test_it_records_beside_composers_own_tensorboard_logs(module, tmp_path):
    loggers = [object(), standin.TensorboardLogger(tmp_path / "tb")]
    run = trainer(module.MemBoardCallback(), loggers=loggers)
    run.fit()
    run.close()
    assert len(files(tmp_path / "tb" / "1790-brave-otter")) == 1
    run = trainer(module.MemBoardCallback(tmp_path / "mine"), loggers=loggers)
    run.fit()
    run.close()
    assert len(files(tmp_path / "mine")) == 1


def test_evaluation_and_prediction_by_themselves(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"))
    run.eval()
    run.predict()
    run.close()
    found = read(files(tmp_path / "a")[0])
    assert found.steps("val") == found.steps("predict") == [0, 1]
    assert found.steps() == []


def test_fits_of_one_trainer_are_one_recording(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), epochs=1)
    run.fit()
    run.eval()
    run.fit()
    run.close()
    found = read(files(tmp_path / "a")[0])
    assert found.steps() == [1, 2, 3, 4, 5, 6]
    assert found.steps("val") == list(range(6))


def test_epochs_of_unknown_length(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), batches=0)
    run.fit()
    run.close()
    found = read(files(tmp_path / "a")[0])
    assert [n["length"] for n in found.notes_of("epoch")] == [None, None]


def test_after_an_exception_what_was_recorded_is_there(module, tmp_path):
    run = trainer(module.MemBoardCallback(tmp_path / "a"), fail_at=2)
    with pytest.raises(RuntimeError, match="the batch is bad"):
        run.fit()
    run.close()
    assert read(files(tmp_path / "a")[0]).steps() == [1, 2]
    with (
        pytest.raises(RuntimeError, match="the batch is bad"),
        module.MemBoardCallback(tmp_path / "b") as callback,
    ):
        trainer(callback, fail_at=2).fit()
    assert read(files(tmp_path / "b")[0]).close.how == "exception"


def test_no_failure_reaches_the_trainer(module, tmp_path, caplog, monkeypatch):
    logger.propagate = True
    with pytest.raises(ConfigError):
        module.MemBoardCallback(rsss=1)
    monkeypatch.setattr(module, "sizes_of", lambda batch: 1 / 0)
    run = trainer(module.MemBoardCallback(tmp_path / "a"))
    run.fit()
    run.close()
    assert caplog.text.count("the callback failed in batch_end") == 1
    assert read(files(tmp_path / "a")[0]).close.how == "closed"


def test_without_composer_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "composer", None)
    monkeypatch.delitem(sys.modules, "collector.integrations.composer", raising=False)
    with pytest.raises(ImportError, match="pip install mosaicml"):
        importlib.import_module("collector.integrations.composer")
