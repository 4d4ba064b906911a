"""The Transformers callback inside the real Trainer."""

from __future__ import annotations

import socket
import types
from collections import Counter
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import Dataset  # noqa: E402

import memboard as mb  # noqa: E402
from memboard.collector.core.warn_once import logger  # noqa: E402
from memboard.collector.errors import ConfigError  # noqa: E402
from memboard.collector.integrations import transformers as module  # noqa: E402
from memboard.collector.integrations.transformers import MemBoardCallback  # noqa: E402
from tests.collector.recordings import rank_files, read, read_only_file  # noqa: E402
from tests.collector.steps.test_span_log import spans_of  # noqa: E402

# Transformers and torch warn of things that are no business of the callback.
pytestmark = pytest.mark.filterwarnings("ignore")

LENGTH = 5


class Tokens(Dataset):
    def __init__(self, number: int) -> None:
        self.number = number

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, at: int) -> dict:
        return {"input_ids": torch.full((LENGTH,), at % 7), "labels": torch.tensor(1.0)}


class Model(nn.Module):
    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        self.layer = nn.Embedding(7, 1)
        self.fail_at = fail_at
        self.num_calls = 0

    def forward(self, input_ids, labels=None):
        if self.num_calls == self.fail_at:
            raise RuntimeError("the batch is bad")
        self.num_calls += 1
        out = self.layer(input_ids).mean(dim=(1, 2))
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}


def trainer(tmp_path, callback, *, model=None, number=8, **changed):
    given = {
        "output_dir": str(tmp_path),
        "num_train_epochs": 2,
        "per_device_train_batch_size": 2,
        "per_device_eval_batch_size": 2,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
    }
    return transformers.Trainer(
        model=model or Model(),
        args=transformers.TrainingArguments(**{**given, **changed}),
        train_dataset=Tokens(number),
        eval_dataset=Tokens(6),
        callbacks=[callback],
    )


def recorded(tmp_path):
    return read_only_file(tmp_path / "runs" / "memory")


def test_a_training_with_its_epochs_steps_and_tokens(tmp_path):
    run = trainer(tmp_path, MemBoardCallback(), include_num_input_tokens_seen="all")
    run.train()
    found = recorded(tmp_path)
    assert found.steps() == list(range(1, 9))  # as the trainer's own logs count
    assert found.column("tokens") == [2 * LENGTH * n for n in range(1, 9)]
    assert found.column("epoch") == [0] * 4 + [1] * 4
    epochs = [(n["epoch"], n["length"]) for n in found.notes_of("epoch")]
    assert epochs == [(0, 4), (1, 4)]
    assert found.notes_of("model")[0]["type"] == "Model"
    assert [n["type"] for n in found.notes_of("optimizer")] == ["AdamW"]
    assert found.close.how == "closed"
    assert found.snaps("step") == ["step.2.start", "step.2.end"]
    assert mb.active() is None


def test_a_step_is_an_optimizer_step_with_all_its_batches(tmp_path):
    trainer(tmp_path, MemBoardCallback(), gradient_accumulation_steps=3).train()
    found = recorded(tmp_path)
    assert found.steps() == [1, 2, 3, 4]
    assert [n["length"] for n in found.notes_of("epoch")] == [2, 2]
    assert found.column("tokens") == [None] * 4  # nobody counted them


@pytest.mark.parametrize("strategy", ["epoch", "steps"])
def test_evaluation_within_training_is_a_phase_of_its_own(tmp_path, strategy):
    run = trainer(tmp_path, MemBoardCallback(), eval_strategy=strategy, eval_steps=4)
    run.train()
    found = recorded(tmp_path)
    assert found.steps() == list(range(1, 9))
    assert found.steps("val") == list(range(6))  # three batches, twice
    phases = [note["phase"] for note in found.notes_of("phase")]
    assert phases[:3] == ["val", "train", "val"]


def test_evaluation_before_training(tmp_path):
    run = trainer(
        tmp_path, MemBoardCallback(), eval_strategy="epoch", eval_on_start=True
    )
    run.train()
    found = recorded(tmp_path)
    assert found.steps() == list(range(1, 9))
    assert len(found.steps("val")) == 2 + 6


def test_evaluation_and_prediction_by_themselves(tmp_path):
    run = trainer(tmp_path, MemBoardCallback())
    run.evaluate()
    run.predict(Tokens(8))
    first, second = (read(path) for path in rank_files(tmp_path / "runs" / "memory"))
    assert first.steps("val") == [0, 1]  # when the first batch began is not known
    assert second.steps("predict") == [0, 1, 2]
    assert first.close.how == second.close.how == "closed"
    assert mb.active() is None


def test_an_exception_is_recorded_where_the_callback_is_a_context(tmp_path):
    with (
        pytest.raises(RuntimeError, match="the batch is bad"),
        MemBoardCallback() as callback,
    ):
        trainer(tmp_path, callback, model=Model(fail_at=3)).train()
    found = recorded(tmp_path)
    assert found.steps() == [1, 2, 3]
    assert found.close.message == "RuntimeError: the batch is bad"


def test_a_caught_exception_costs_the_next_training_nothing(tmp_path):
    callback = MemBoardCallback()
    with pytest.raises(RuntimeError, match="the batch is bad"):
        trainer(tmp_path, callback, model=Model(fail_at=1)).train()
    trainer(tmp_path, callback).train()
    first, second = (read(path) for path in rank_files(tmp_path / "runs" / "memory"))
    assert first.steps() == [1]
    assert second.steps() == list(range(1, 9))
    assert mb.active() is None


def test_resumed_training_goes_on_in_number(tmp_path):
    once = {"save_strategy": "steps", "save_steps": 4, "save_only_model": False}
    trainer(tmp_path / "a", MemBoardCallback(), num_train_epochs=1, **once).train()
    run = trainer(tmp_path / "b", MemBoardCallback())
    run.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-4"))
    assert recorded(tmp_path / "b").steps() == [5, 6, 7, 8]


def test_the_directory_all_ranks_agree_on(tmp_path, monkeypatch):
    def where(**more):
        args = types.SimpleNamespace(output_dir=tmp_path, **more)
        plain = types.SimpleNamespace(is_hyper_param_search=False, trial_name=None)
        return module._log_dir(args, plain)

    assert where() == tmp_path / "runs" / "memory"
    default = f"out/runs/Jan01_{socket.gethostname()}"  # differs from rank to rank
    assert where(logging_dir=default) == tmp_path / "runs" / "memory"
    assert where(logging_dir="logs/exp") == Path("logs/exp")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "tb/exp")
    assert where(logging_dir="logs/exp") == Path("tb/exp")
    trial = types.SimpleNamespace(is_hyper_param_search=True, trial_name="run-3")
    args = types.SimpleNamespace(output_dir=tmp_path)
    assert module._log_dir(args, trial) == Path("tb/exp/run-3")


def test_a_given_directory_wins_and_settings_are_checked(tmp_path):
    with pytest.raises(ConfigError, match="rsss"):
        MemBoardCallback(rsss=True)
    callback = MemBoardCallback(tmp_path / "mine", config={"scalars": False})
    trainer(tmp_path, callback, max_steps=1).train()
    (path,) = rank_files(tmp_path / "mine")
    assert read(path).header.config["scalars"] is False


def test_no_failure_reaches_the_trainer(tmp_path, caplog, monkeypatch):
    logger.propagate = True
    run = trainer(tmp_path, MemBoardCallback("s3://bucket/run"))
    run.train()
    assert run.state.global_step == 8
    assert caplog.text.count("the callback failed in on_train_begin") == 1
    assert list(tmp_path.rglob("*.events")) == []
    monkeypatch.setattr(module, "_epoch_length", lambda *_: 1 / 0)
    run = trainer(tmp_path, MemBoardCallback())
    run.train()
    assert caplog.text.count("the callback failed in on_epoch_begin") == 1
    assert recorded(tmp_path).steps() == list(range(1, 9))


class Quiet(transformers.TrainerCallback):
    def __init__(self):
        self.num_steps = 0

    def on_step_end(self, args, state, control, **kwargs):
        self.num_steps += 1


def test_events_and_callbacks_are_spans_and_nothing_is_left_of_it(tmp_path):
    callback = MemBoardCallback(schedule={"warmup": 0, "active": 0})
    run = trainer(tmp_path, callback)
    other = Quiet()
    run.add_callback(other)
    run.train()
    assert other.num_steps == 8
    found = recorded(tmp_path)
    counts = Counter(row["name"] for row in spans_of(found))
    assert counts["event/fit"] == 1
    assert counts["event/epoch"] == 2
    assert counts["event/step"] == 8
    assert counts["callback/Quiet/event/on_step_end"] == 8
    assert counts["callback/DefaultFlowCallback/event/on_step_end"] == 8
    assert not [name for name in counts if "MemBoard" in name]
    assert all(seconds > 0 for seconds in found.column("forward_seconds"))
    assert vars(other) == {"num_steps": 8}
