"""A stand-in for Composer, which `tests/peers` runs for real in an environment of its own.

It has what Composer documents of `Callback`, `Event`, `State` and `Time` (0.6 to 0.33),
and a `Trainer` that runs the events in the documented order: nothing of its workings.
"""

from __future__ import annotations

import sys
import types
from typing import Any

EVENTS = (
    "init",
    "before_load",
    "after_load",
    "fit_start",
    "iteration_start",
    "epoch_start",
    "before_dataloader",
    "after_dataloader",
    "batch_start",
    "before_train_batch",
    "before_forward",
    "after_forward",
    "before_loss",
    "after_loss",
    "before_backward",
    "after_backward",
    "after_train_batch",
    "batch_end",
    "batch_checkpoint",
    "epoch_end",
    "epoch_checkpoint",
    "iteration_end",
    "iteration_checkpoint",
    "fit_end",
    "eval_before_all",
    "eval_start",
    "eval_batch_start",
    "eval_before_forward",
    "eval_after_forward",
    "eval_batch_end",
    "eval_end",
    "eval_after_all",
    "eval_standalone_start",
    "eval_standalone_end",
    "predict_start",
    "predict_batch_start",
    "predict_before_forward",
    "predict_after_forward",
    "predict_batch_end",
    "predict_end",
)


class Callback:
    """Each event calls the method of its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def run_event(self, event: str, state: Any, logger: Any) -> None:
        return getattr(self, event)(state, logger)

    def close(self, state: Any, logger: Any) -> None:
        """Called where the trainer closes, after errors too."""

    def post_close(self) -> None:
        """Called after every callback's close."""


for _event in (*EVENTS,):
    setattr(Callback, _event, lambda self, state, logger: None)


class Time:
    """A number with a unit; of it int() is what callbacks are told to take."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __int__(self) -> int:
        return self.value


class TensorboardLogger:
    def __init__(self, log_dir: Any = None) -> None:
        self.log_dir = log_dir


class Trainer:
    def __init__(
        self, *, model: Any, optimizers: Any, callbacks: list, **given: Any
    ) -> None:
        self.callbacks = callbacks
        self.given = {"batches": 3, "epochs": 2, "evals": 2, "fail_at": None, **given}
        self.logger = types.SimpleNamespace(destinations=given.get("loggers", ()))
        self.state = types.SimpleNamespace(
            model=model,
            optimizers=optimizers,
            run_name="1790-brave-otter",
            batch=None,
            dataloader_len=None,
            callbacks=callbacks,
            algorithms=given.get("algorithms", ()),
            timestamp=types.SimpleNamespace(epoch=Time(0), batch=Time(0)),
        )
        for event in ("init", "before_load", "after_load"):
            self._run(event)

    def fit(self) -> None:
        state, given = self.state, self.given
        self._run("fit_start", "iteration_start")
        for epoch in range(given["epochs"]):
            state.dataloader_len = Time(given["batches"]) if given["batches"] else None
            self._run("epoch_start")
            for batch in self._batches(given["batches"]):
                state.batch = batch
                self._run("after_dataloader", "batch_start", "before_train_batch")
                if int(state.timestamp.batch) == given["fail_at"]:
                    raise RuntimeError("the batch is bad")
                self._run("before_forward", "after_forward", "after_train_batch")
                # Incremented right before BATCH_END, as the documents say.
                state.timestamp.batch = Time(int(state.timestamp.batch) + 1)
                self._run("batch_end", "batch_checkpoint")
            state.timestamp.epoch = Time(epoch + 1)
            self._run("epoch_end")
            self._evaluate("eval", given["evals"])
            self._run("epoch_checkpoint")
        self._run("iteration_end", "fit_end")

    def eval(self) -> None:
        self._run("eval_standalone_start")
        self._evaluate("eval", self.given["evals"])
        self._run("eval_standalone_end")

    def predict(self) -> None:
        self._evaluate("predict", self.given["evals"])

    def close(self) -> None:
        for callback in self.callbacks:
            callback.close(self.state, self.logger)
        for callback in self.callbacks:
            callback.post_close()

    def _evaluate(self, kind: str, number: int) -> None:
        self._run(f"{kind}_start")
        for batch in self._batches(number):
            self.state.batch = batch
            self._run(f"{kind}_batch_start", f"{kind}_batch_end")
        self._run(f"{kind}_end")

    def _batches(self, number: int) -> list:
        import numpy as np

        return [{"input_ids": np.zeros((4, 8))} for _ in range(number or 2)]

    def _run(self, *events: str) -> None:
        for event in events:
            for algorithm in self.state.algorithms:
                if algorithm.match(event, self.state):
                    algorithm.apply(event, self.state, self.logger)
            for callback in self.callbacks:
                callback.run_event(event, self.state, self.logger)


def install(monkeypatch: Any) -> None:
    """Make `import composer` find this, and the callback be made on it."""
    composer = types.ModuleType("composer")
    composer.Callback = Callback  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "composer", composer)
    monkeypatch.delitem(
        sys.modules, "memboard.collector.integrations.composer", raising=False
    )
