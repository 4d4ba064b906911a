"""Recording inside a Lightning Trainer: `Trainer(callbacks=[MemBoardCallback()])`.

Defined where one might wonder:

- It serves the package that the program uses, `lightning` or `pytorch_lightning`.
- Each call of fit, validate, test or predict is one start of the run, from the trainer's
  setup on, before the model moves to its device.
- A step is one training batch, from the end of the batch before to its own end: loading,
  forward, backward and every optimizer; numbered as Lightning counts batches.
- Validation inside of fit is the phase `val`, sanity checks are `sanity`.
- Spans come from what Lightning tells its profiler, whichever that is: `event/fit`,
  `event/epoch`, `event/batch`, `event/<hook>` of the module and the strategy, and
  `callback/<Class>/event/<hook>` of the other callbacks. The `training_step` counts as
  the step's forward, as do those of validation, test and prediction.
- Where there are several ranks and no `logdir`, all of them must have the callback:
  which directory the logger chose is asked of rank 0, as checkpoints do.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.integrations.batches import sizes_of
from memboard.collector.integrations.events import CALLBACK, EVENT
from memboard.collector.integrations.session import RecordingCallback, guarded

if TYPE_CHECKING:
    Callback = object
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError as error:
            raise ImportError(
                "Lightning is not installed. Install it with: pip install lightning"
            ) from error

_PHASES: Final = {
    "fit": "train",
    "validate": "val",
    "test": "test",
    "predict": "predict",
}
"""By what the trainer was asked to do."""


_ACTIONS: Final = {
    "run_training_epoch": ("event/epoch", EVENT),
    "run_training_batch": ("event/batch", EVENT),
    "save_checkpoint": ("event/save_checkpoint", "checkpoint"),
}
"""Spans by what Lightning's profiler is told, where that is no hook of anybody's."""

_FORWARDS: Final = frozenset(
    {"training_step", "validation_step", "test_step", "predict_step"}
)


class MemBoardCallback(RecordingCallback, Callback):
    """Records what the trainer runs, into its log directory."""

    # The beginning and the end.

    @guarded
    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Start recording: the process group is there, the model is on no device."""
        # Asking may wait for the other ranks, so either all ask or none.
        where = trainer.log_dir if self._session.logdir is None else None
        self._session.start(where or trainer.default_root_dir)
        recorder = self.recorder
        recorder.attach(model=pl_module)
        self._session.spans.begin(f"event/{getattr(stage, 'value', stage)}")
        self._listen(trainer.profiler)
        if stage != "fit":
            recorder.phase(_PHASES.get(stage, stage))

    @guarded
    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._session.end(None)

    @guarded
    def on_exception(
        self, trainer: Any, pl_module: Any, exception: BaseException
    ) -> None:
        """End the recording with the exception."""
        self._session.end(exception)

    # Training.

    @guarded
    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Attach the optimizers: the strategy has made them by now."""
        self.recorder.attach(optimizer=list(trainer.optimizers))

    @guarded
    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the phase of sanity checks."""
        self.recorder.phase("sanity")

    @guarded
    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self.recorder.phase("train")

    @guarded
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Say which epoch begins and how many steps it has, where that is known."""
        length = trainer.num_training_batches
        num_batches = length if isinstance(length, int) else None  # else it is infinity
        self.recorder.epoch(trainer.current_epoch, length=num_batches)

    @guarded
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        samples, tokens = sizes_of(batch)
        number = trainer.fit_loop.total_batch_idx
        self.recorder.step(number, samples=samples, tokens=tokens)

    # Evaluation, inside of training or by itself.

    @guarded
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the phase, unless it is a sanity check."""
        if not trainer.sanity_checking:
            self.recorder.phase("val")

    @guarded
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Go on with training, where that is what was interrupted."""
        if not trainer.sanity_checking:
            self.recorder.phase(_PHASES.get(str(trainer.state.fn.value), "train"))

    @guarded
    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """A batch of validation, a sanity check, a test or predictions is done."""
        samples, tokens = sizes_of(batch)
        self.recorder.step(samples=samples, tokens=tokens)

    on_test_batch_end = on_predict_batch_end = on_validation_batch_end

    def _listen(self, profiler: Any) -> None:
        """Be told what the profiler is told: what begins and what ends."""
        spans, start, stop = self._session.spans, profiler.start, profiler.stop

        def begun(action_name: str, *args: Any, **kwargs: Any) -> Any:
            span_name, category = _span_of(action_name)
            if span_name:
                spans.begin(span_name, category)
            return start(action_name, *args, **kwargs)

        def ended(action_name: str, *args: Any, **kwargs: Any) -> Any:
            result = stop(action_name, *args, **kwargs)
            spans.end(_span_of(action_name)[0])
            return result

        spans.replace(profiler, "start", begun)
        spans.replace(profiler, "stop", ended)


@cache
def _span_of(action: str) -> tuple[str, str]:
    """Name and category of the span for what Lightning calls an action; empty: none.

    `[Callback]ModelCheckpoint{'monitor': None}.on_train_start` is one, `[Strategy]X.hook`
    another, and `run_training_epoch`.
    """
    if action in _ACTIONS:
        return _ACTIONS[action]
    kind, _, rest = action.partition("]")
    if not rest:
        return f"event/{action}", EVENT
    hook = rest.rpartition(".")[2]
    if kind == "[Callback":
        owner = re.match(r"\w*", rest)
        callback = owner.group() if owner else ""
        ours = callback == MemBoardCallback.__name__
        return ("", "") if ours else (f"callback/{callback}/event/{hook}", CALLBACK)
    if kind == "[Strategy" and hook in _FORWARDS:
        return f"event/{hook}", "forward"
    if hook.endswith("dataloader_next"):
        return "event/dataloader", "dataloader"
    return f"event/{hook}", EVENT
