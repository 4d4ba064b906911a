"""A few steps of a simulated rank, run once more to be looked at closely."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from memboard.collector.simulate.memory import allocate_kept, device_at
from memboard.collector.simulate.program import Training

if TYPE_CHECKING:
    from memboard.collector.simulate.series import RankSeries, Scenario

training_of = cache(Training)
"""Training of a job of so many ranks: made once in a process."""


class Replay:
    """A rank's device from the start of a step on, with all that it held by then."""

    def __init__(self, scenario: Scenario, series: RankSeries, step: int) -> None:
        self.training = training_of(scenario.run.num_ranks)
        self._profile, self._series = scenario.profile, series
        oom = scenario.fault_of(series.rank, "oom")
        # Which pages it has once it gave some back is known from running alone.
        self._next = step if oom is None else min(step, oom.first_retry)
        of_rank = (scenario.profile, series.lengths, series.keeps)
        self.device = device_at(self.training, *of_rank, self._next)
        while self._next < step:
            self.step()

    def step(self) -> None:
        """The next step, at its time.

        Raises:
            OutOfMemory: the device is full.
        """
        number, device, series = self._next, self.device, self._series
        self._next += 1
        device.step = number
        device.reset_peaks()
        device.now_us, device.speed = series.began_ns(number) / 1000, 0.0
        allocate_kept(device, series.keeps, number)
        clock = {
            part: (start / 1000, length / 1000)
            for part, (start, length) in series.parts(number).items()
        }
        tokens = int(self._profile.tokens[series.lengths[number]])
        self.training.step(device, tokens, clock)
