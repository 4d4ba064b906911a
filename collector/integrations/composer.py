"""Recording inside a Composer Trainer: `Trainer(callbacks=[MemBoardCallback()])`.

What is relied on is `composer.Callback` with its methods named after events, `close`, and
of `State`: `model`, `optimizers`, `run_name`, `batch`, `dataloader_len`, and `timestamp`
with its counts and durations.

Defined where one might wonder:

- Recording starts with the first fit, evaluation or prediction and ends where Composer
  closes its callbacks.
- A step is one training batch with all its microbatches, from the end of the batch before
  to its own end; numbered by the trainer's timestamp, as its logs are.
- Evaluation is the phase `val`, whether inside of fit or by itself.
- Spans are named as Composer's profiler names them: `event/fit`, `event/epoch` and so on
  from the event's beginning to its end, `callback/<Class>/event/<event>` for each event of
  each other callback, `algorithm/<Class>/event/<event>` where an algorithm applies.
- The default directory is that of Composer's TensorboardLogger where there is one, else
  `tensorboard_logs/<run_name>`, which is where it would be.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memboard.collector.config.templates import MOMENT
from memboard.collector.core.guard import Block
from memboard.collector.integrations.batches import sizes_of
from memboard.collector.integrations.events import canonical
from memboard.collector.integrations.session import RecordingCallback, guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    Callback = object
else:
    try:
        from composer import Callback
    except ImportError as error:
        raise ImportError(
            "Composer is not installed. Install it with: pip install mosaicml"
        ) from error


class MemBoardCallback(RecordingCallback, Callback):
    """Records what the trainer runs, beside its TensorBoard logs."""

    _trains = False
    _attached: tuple[Any, ...] = ()

    def run_event(self, event: Any, state: Any, logger: Any) -> None:
        """Composer's way to every event: each is a span from its beginning to its end."""
        event_name = _event_name(event)
        shown, begins = canonical(event_name)
        self._before(f"event/{shown}", begins)
        with Block(partial(self._session.tell, event_name)):
            self._happens(event_name, state, logger)
        super().run_event(event, state, logger)  # type: ignore[misc]  # Callback's
        self._after(f"event/{shown}", begins)

    @guarded
    def _before(self, span: str, begins: bool | None) -> None:
        if begins is False:
            self._session.spans.end(span)

    @guarded
    def _after(self, span: str, begins: bool | None) -> None:
        if begins and self._session.is_live:
            self._session.spans.begin(span)

    def _happens(self, event: str, state: Any, logger: Any) -> None:
        """What an event is to the recorder; evaluation may lie inside of training or not."""
        match event:
            case "fit_start":
                self._trains = True
                self._start(state, logger)
                self.recorder.phase("train")
            case "fit_end":
                self._trains = False  # what follows is not training
            case "epoch_start":
                length = state.dataloader_len
                num_batches = None if length is None else int(length)
                self.recorder.epoch(int(state.timestamp.epoch), length=num_batches)
            case "batch_end":
                self._step(state, int(state.timestamp.batch))
            case "eval_start" | "predict_start":
                self._start(state, logger)
                self.recorder.phase("val" if event == "eval_start" else "predict")
            case "eval_batch_end" | "predict_batch_end":
                self._step(state, None)
            case "eval_end" | "predict_end" if self._trains:
                self.recorder.phase("train")

    @guarded
    def close(self, state: Any, logger: Any) -> None:
        """End the recording; Composer calls this after errors too."""
        self._attached = ()
        self._session.end(None)

    # Behind them.

    def _start(self, state: Any, logger: Any) -> None:
        if not self._session.is_live:
            self._session.start(_log_dir(state, logger))
            self._attached = ()
            self.recorder.moments_from(partial(_moment, state))
            self._time_others(state)
        # Looked at anew each time: optimizers may come with fit, the model be wrapped.
        parts = (state.model, *(state.optimizers or ()))
        if list(map(id, parts)) != list(map(id, self._attached)):
            self._attached = parts
            model, *optimizers = parts
            self.recorder.attach(model=model, optimizer=optimizers)

    def _time_others(self, state: Any) -> None:
        spans = self._session.spans
        for callback in getattr(state, "callbacks", None) or ():
            if callback is not self:
                span_name = _named("callback", callback)
                spans.time_method(callback, "run_event", span_name)
        for algorithm in getattr(state, "algorithms", None) or ():
            spans.time_method(algorithm, "apply", _named("algorithm", algorithm))

    def _step(self, state: Any, number: int | None) -> None:
        samples, tokens = sizes_of(state.batch)
        self.recorder.step(number, samples=samples, tokens=tokens)


def _moment(state: Any) -> dict[str, object]:
    """Composer's own counts: of all ranks, and of the starts before a resumption too."""
    timestamp = state.timestamp
    return {
        variable: getattr(timestamp, variable).total_seconds()
        if variable.endswith("_wct")
        else int(getattr(timestamp, variable))
        for variable in MOMENT
    }


def _named(kind: str, callback: Any) -> Callable[..., str]:
    prefix = f"{kind}/{type(callback).__name__}/event/"
    return lambda event, *_: prefix + _event_name(event)


def _event_name(event: Any) -> str:
    return str(getattr(event, "value", event))


def _log_dir(state: Any, logger: Any) -> Path:
    parent: Any = None
    for destination in getattr(logger, "destinations", ()):
        if type(destination).__name__ == "TensorboardLogger":
            parent = getattr(destination, "log_dir", None)
    return Path(parent or "tensorboard_logs", state.run_name)
