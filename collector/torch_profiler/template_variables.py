"""The moment of a trace, in the variables that Composer's file names may hold."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from memboard.collector.config.templates import MOMENT
from memboard.collector.core.plain import forgiving

if TYPE_CHECKING:
    from memboard.collector.process.rank import Identity
    from memboard.collector.steps.progress import Progress


class TemplateVariables:
    """Counts within each epoch, and the seconds of run, epoch and step."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        now = time.monotonic()
        self._run_began = self._epoch_began = self._step_began = now
        self._step_took = 0.0
        self._epoch = progress.epoch
        self._num_steps = 0
        """Ended ones, whatever their numbers: some count from 1."""
        self._before = self._at_begin = self._counts()
        """Steps, samples and tokens where the epoch and the step under way began."""

    def begin(self) -> None:
        self._step_began = time.monotonic()
        self._at_begin = self._counts()

    def end(self) -> None:
        self._notice_epoch()
        self._num_steps += 1
        self._step_took = time.monotonic() - self._step_began

    def values(self, batch: int) -> dict[str, Any]:
        """By variable; `batch`: finished training steps.

        Seconds are rounded to milliseconds, counts that nobody reported are 0. What the
        training says itself is taken from there.
        """
        self._notice_epoch()
        now = time.monotonic()
        num_steps, samples, tokens = self._counts()
        steps_before, samples_before, tokens_before = self._before
        return {
            "epoch": self._progress.epoch or 0,
            "batch": batch,
            "batch_in_epoch": num_steps - steps_before,
            "sample": samples,
            "sample_in_epoch": samples - samples_before,
            "token": tokens,
            "token_in_epoch": tokens - tokens_before,
            "total_wct": round(now - self._run_began, 3),
            "epoch_wct": round(now - self._epoch_began, 3),
            "batch_wct": round(self._step_took, 3),
            **self._from_training(),
        }

    def _from_training(self) -> dict[str, Any]:
        moment = self._progress.moment
        if moment is not None:
            with forgiving:  # it may be the user's
                values = moment()
                return {
                    name: round(value, 3) if isinstance(value, float) else int(value)
                    for name in MOMENT
                    if isinstance(value := values.get(name), int | float)
                }
        return {}

    def _notice_epoch(self) -> None:
        """An epoch is announced between two steps, when its first one has begun."""
        if self._progress.epoch != self._epoch:
            self._epoch = self._progress.epoch
            self._epoch_began = self._step_began
            self._before = self._at_begin

    def _counts(self) -> tuple[int, int, int]:
        training = self._progress.train
        return self._num_steps, training.samples or 0, training.tokens or 0


def identity_values(identity: Identity, run_name: str) -> dict[str, Any]:
    """The variables of a process; what is unknown counts as one node, one process."""
    return {
        "run_name": run_name,
        "rank": identity.rank,
        "local_rank": identity.local_rank,
        "world_size": identity.world_size,
        "local_world_size": identity.local_world_size or 1,
        "node_rank": identity.node_rank or 0,
    }
