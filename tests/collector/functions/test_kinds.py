"""Kinds that cannot record: what is said of it, and when."""

from __future__ import annotations

from tests.collector.functions.test_recording import Trainer, record
from tests.collector.recordings import read_only_file


def test_modules_without_a_model_are_told_once_while_there_is_time(tmp_path, caplog):
    every = {"warmup": 0, "active": 0}
    with record(tmp_path / "run", modules=True, schedule=every) as rec:
        for _ in range(4):
            rec.step()
    (told,) = [r.getMessage() for r in caplog.records]
    assert "modules is switched on, and nothing of it is recorded" in told
    assert "collector.record(model=...)" in told


def test_a_model_that_comes_before_the_first_collected_call_is_in_time(
    tmp_path, caplog
):
    trainer = Trainer()
    with record(tmp_path / "run", modules=True) as rec:  # the second step is collected
        rec.attach(model=trainer.model)
        trainer.fit(rec, num_batches=3)
    assert caplog.records == []
    assert len(read_only_file(tmp_path / "run").captures_of("modules")) == 1
