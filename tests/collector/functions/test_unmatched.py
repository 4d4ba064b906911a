"""Settings that do nothing say so."""

from __future__ import annotations

import logging

import torch

import memboard as mb
from tests.collector.functions.models import Trainer, record
from tests.collector.recordings import ONLY_STEPS, read_only_file

ON = {**ONLY_STEPS, "schedule": {"warmup": 0, "active": 0}}


def told(caplog, words):
    return [r.getMessage() for r in caplog.records if words in r.getMessage()]


def test_a_name_of_which_no_call_was_seen_is_told_at_the_end(tmp_path, caplog):
    @mb.profiled
    def training_step():
        return 1

    functions = {"default": ["trainign_step", "training_step"], "device": ["eval"]}
    with mb.record(tmp_path / "run", **{**ON, "functions": functions}) as rec:
        for _ in range(2):
            training_step()
            rec.step()
    found = read_only_file(tmp_path / "run")
    missed = found.source("function trainign_step")
    assert missed["status"] == "absent"
    assert "Did you mean 'training_step'?" in missed["remedy"]
    assert len(told(caplog, "no call of a function 'trainign_step' was seen")) == 1
    assert len(told(caplog, "no call of a function 'eval' was seen")) == 1
    assert not told(caplog, "'training_step' was seen")


def test_a_name_that_its_module_does_not_have_is_told_at_once(tmp_path, caplog):
    functions = {"default": ["collections.abc.nonsense", "no_such_module.train"]}
    with mb.record(tmp_path / "run", **{**ON, "functions": functions}):
        (words,) = told(caplog, "the module")
        assert "the module collections.abc has no 'nonsense'" in words


def test_functions_that_are_switched_off_miss_nothing(tmp_path, caplog):
    functions = {"enabled": False, "default": ["nonsense"]}
    with mb.record(tmp_path / "run", **{**ON, "functions": functions}):
        pass
    assert not told(caplog, "nonsense")


def test_modules_without_an_optimizer_say_what_is_missing(tmp_path, caplog):
    model = torch.nn.Linear(2, 2)
    settings = {**ON, "functions": True, "modules": True, "hooks": False}
    with (
        caplog.at_level(logging.WARNING),
        mb.record(tmp_path / "run", model=model, **settings) as rec,
    ):
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert "optimizer states are missing" in found.source("modules.optimizer")["reason"]
    assert "rec.attach(optimizer=...)" in found.source("modules.optimizer")["remedy"]
    assert len(told(caplog, "no optimizer was attached")) == 1


def test_modules_with_an_optimizer_miss_nothing(tmp_path, caplog):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    settings = {**ON, "functions": True, "modules": True, "hooks": False}
    with mb.record(tmp_path / "run", model=model, **settings) as rec:
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            rec.step()
    assert not told(caplog, "no optimizer was attached")


def test_modules_without_a_model_are_told_once_while_there_is_time(tmp_path, caplog):
    every = {"warmup": 0, "active": 0}
    with record(tmp_path / "run", modules=True, schedule=every) as rec:
        for _ in range(4):
            rec.step()
    (told,) = [r.getMessage() for r in caplog.records]
    assert "modules is switched on, and nothing of it is recorded" in told
    assert "mb.record(model=...)" in told


def test_a_model_that_comes_before_the_first_collected_call_is_in_time(
    tmp_path, caplog
):
    trainer = Trainer()
    with record(tmp_path / "run", modules=True) as rec:  # the second step is collected
        rec.attach(model=trainer.model)
        trainer.fit(rec, num_batches=3)
    assert caplog.records == []
    assert len(read_only_file(tmp_path / "run").captures_of("modules")) == 1
