"""Recording inside a Transformers Trainer: `Trainer(callbacks=[MemBoardCallback()])`.

Defined where one might wonder:

- A step is one optimizer step, with all batches it accumulates, from the end of the step
  before to its own end; numbered by the trainer's `global_step`, as its logs are.
- Evaluation, inside of training or by itself, is the phase `val`; `Trainer.predict` is
  `predict`. A step of theirs is one batch.
- Tokens are recorded where the trainer counts them (`include_num_input_tokens_seen`):
  its sum over all ranks, divided by their number. It does not tell how many samples a
  step really had.
- The trainer does not tell its callbacks of an exception. One that ends the program is
  recorded all the same; of one that is caught, only where the callback is used as a
  context manager: `with MemBoardCallback() as callback:`.
- Spans are `event/fit`, `event/epoch` and `event/step` from their beginning to their end,
  and `callback/<Class>/event/<hook>` for each hook of each other callback.
- The default directory is that of `TENSORBOARD_LOGGING_DIR`, or `logging_dir` where the
  trainer has it, else `runs/memory` in its `output_dir`. Its own default holds time and
  host, on which ranks do not agree.
"""

from __future__ import annotations

import math
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.integrations.session import RecordingCallback, guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    TrainerCallback = object
else:
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise ImportError(
            "Transformers is not installed. Install it with: pip install transformers"
            " 'accelerate>=1.1'"
        ) from error

_CALLERS: Final = {"evaluate": "val", "predict": "predict"}
"""By the trainer's method: the phase it is."""

_MAX_FRAMES: Final = 10
_ALMOST: Final = 1e-6
"""An epoch's number is a sum of fractions."""


class MemBoardCallback(RecordingCallback, TrainerCallback):
    """Records what the trainer runs, into its log directory."""

    _trains = False
    _evaluates = False
    _tokens_seen = 0

    # Training.

    @guarded
    def on_train_begin(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Start recording: all ranks are there, model and optimizer are ready."""
        self._trains, self._evaluates = True, False
        self._tokens_seen = state.num_input_tokens_seen
        self._start(args, state, kwargs)
        self._session.spans.begin("event/fit")

    @guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trains = False
        self._session.end(None)

    @guarded
    def on_epoch_begin(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Say which epoch begins and how many steps it has, where that is known."""
        self._leave_evaluation()
        self._session.spans.begin("event/epoch")
        length = _epoch_length(kwargs.get("train_dataloader"), args)
        self.recorder.epoch(int((state.epoch or 0) + _ALMOST), length=length)

    @guarded
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Go on with training, where evaluation interrupted it."""
        self._leave_evaluation()
        self._session.spans.begin("event/step")

    @guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An optimizer step is done."""
        self._session.spans.end("event/step")
        seen = state.num_input_tokens_seen
        tokens = (seen - self._tokens_seen) // max(1, args.world_size)
        self._tokens_seen = seen
        self.recorder.step(state.global_step, tokens=tokens or None)
        self._foresee_evaluation(control)

    @guarded
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An epoch is done; evaluation may follow."""
        self._session.spans.end("event/epoch")
        self._foresee_evaluation(control)

    # Evaluation.

    @guarded
    def on_prediction_step(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """A batch is done; the first one of an evaluation by itself begins its phase."""
        if self._evaluates:
            self.recorder.step()
            return
        self._evaluates = True
        if not self._session.is_live:
            self._start(args, state, kwargs)
        # No step: when this batch began is not known. Its peak is in the next one's row.
        self.recorder.phase(_asked_for())

    @guarded
    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._evaluated()

    @guarded
    def on_predict(
        self, args: Any, state: Any, control: Any, metrics: Any, **kwargs: Any
    ) -> None:
        self._evaluated()

    # Behind them.

    def _start(self, args: Any, state: Any, kwargs: dict[str, Any]) -> None:
        self._session.start(_log_dir(args, state))
        self.recorder.moments_from(lambda: {"batch": state.global_step})
        # Accelerate wraps the optimizer; the one inside holds the states.
        optimizer = kwargs.get("optimizer")
        optimizer = getattr(optimizer, "optimizer", optimizer)
        self.recorder.attach(model=kwargs.get("model"), optimizer=optimizer)
        self._time_others(_callbacks())

    def _time_others(self, callbacks: Iterable[Any]) -> None:
        hooks = [method for method in dir(TrainerCallback) if method.startswith("on_")]
        for callback in callbacks:
            if callback is self:
                continue
            prefix = f"callback/{type(callback).__name__}/event/"
            for hook in hooks:
                own = getattr(type(callback), hook, None)
                if own not in (None, getattr(TrainerCallback, hook)):
                    span_name = prefix + hook
                    self._session.spans.time_method(
                        callback, hook, lambda *_, name=span_name: name
                    )

    def _evaluated(self) -> None:
        if self._trains:
            self._leave_evaluation()
        else:
            self._evaluates = False
            self._session.end(None)

    def _foresee_evaluation(self, control: Any) -> None:
        """Where evaluation comes next, its phase begins before its first batch."""
        if control.should_evaluate and not self._evaluates:
            self._evaluates = True
            self.recorder.phase("val")

    def _leave_evaluation(self) -> None:
        if self._evaluates:
            self._evaluates = False
            self.recorder.phase("train")


def _log_dir(args: Any, state: Any) -> Path:
    """A directory that all ranks agree on; see the module."""
    chosen = os.environ.get("TENSORBOARD_LOGGING_DIR") or ""
    if not chosen:
        chosen = getattr(args, "logging_dir", None) or ""
        if chosen.endswith(socket.gethostname()):  # the default, made of time and host
            chosen = ""
    path = Path(chosen or Path(args.output_dir, "runs", "memory"))
    trial = state.trial_name if state.is_hyper_param_search else None
    return path / str(trial) if trial else path


def _epoch_length(dataloader: Any, args: Any) -> int | None:
    """Optimizer steps of an epoch; None of a stream."""
    try:
        num_batches: int = len(dataloader)
    except TypeError:
        return None
    return max(1, math.ceil(num_batches / int(args.gradient_accumulation_steps)))


def _callbacks() -> Iterable[Any]:
    """All of the trainer's; it does not tell one of the others, so this looks who calls."""
    for frame in _callers():
        if frame.f_code.co_name == "call_event":
            callbacks = getattr(frame.f_locals.get("self"), "callbacks", ())
            return tuple(callbacks)
    return ()


def _callers() -> Iterator[FrameType]:
    """The nearest frames, the innermost first."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # documented
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _asked_for() -> str:
    """The phase: `predict` below `Trainer.predict`, else `val`.

    The trainer evaluates and predicts in one loop and tells callbacks only afterwards
    which it was, so this looks who is calling.
    """
    for frame in _callers():
        if frame.f_code.co_name in _CALLERS:
            return _CALLERS[frame.f_code.co_name]
    return "val"
