"""A few steps of a simulated rank, run once more to be looked at closely."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from collector.simulate.device import LARGE, SMALL, Device
from collector.simulate.memory import LIMIT_BYTES, reserved
from collector.simulate.program import Training

if TYPE_CHECKING:
    from collector.simulate.series import RankSeries, Scenario

training_of = cache(Training)
"""What a job of so many ranks trains: made once in a process."""


class Replay:
    """A rank's device from the start of a step on, with all that it held by then."""

    def __init__(self, scenario: Scenario, series: RankSeries, step: int) -> None:
        self.device = Device(LIMIT_BYTES)
        self.training = training_of(scenario.run.num_ranks)
        self._profile, self._series = scenario.profile, series
        self._next = step
        self.training.begin(self.device)
        for earlier in range(step):
            self._keep(earlier)
        if step:
            lengths = series.lengths[:step]
            small, large = reserved(scenario.profile, lengths, series.keeps)
            self.device.map_to(SMALL, int(small[-1]))
            self.device.map_to(LARGE, int(large[-1]))

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
        self._keep(number)
        clock = {
            part: (start / 1000, length / 1000)
            for part, (start, length) in series.parts(number).items()
        }
        tokens = int(self._profile.tokens[series.lengths[number]])
        self.training.step(device, tokens, clock)

    def _keep(self, step: int) -> None:
        for one in self._series.keeps:
            for size in one.blocks(step):
                self.device.alloc(size, one.site, "other")
