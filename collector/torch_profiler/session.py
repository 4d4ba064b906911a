"""One trace of torch's profiler, from being made ready to its end, on one thread."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.plain import forgiving
from memboard.collector.format.own.slices import METADATA_KEY, TRACKS_MODULES

if TYPE_CHECKING:
    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.torch_profiler.other_profilers import OtherProfilers

_NAMES: Final = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "xpu": "XPU",
    "mtia": "MTIA",
    "hpu": "HPU",
    "privateuse1": "PrivateUse1",
}
"""Activities as settings and as torch spell them."""

OPTIONS: Final = (
    "record_shapes",
    "profile_memory",
    "with_stack",
    "with_flops",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerOptions:
    """What torch is asked to record."""

    activities: tuple[str, ...]
    """As settings spell them; never empty."""
    options: dict[str, bool]


def wanted_of(settings: TorchProfilerConfig, device_type: str) -> ProfilerOptions:
    """What the settings ask for, of what this torch can.

    `device_type`: of the device that this rank uses.
    """
    chosen = settings.activities or ("cpu", device_type)
    can = supported()
    activities = tuple(name for name in dict.fromkeys(chosen) if name in can)
    return ProfilerOptions(
        activities=activities or ("cpu",),
        options={name: getattr(settings, name) for name in OPTIONS},
    )


def supported() -> set[str]:
    """Activities that this torch records on this machine."""
    from torch import profiler

    supported_activities: Any = profiler.supported_activities
    names_of_torch = {
        str(activity).rpartition(".")[2] for activity in supported_activities()
    }
    names = {ours for ours, theirs in _NAMES.items() if theirs in names_of_torch}
    return {name for name in names if _is_available(name)} | {"cpu"}


class Session:
    """Made, then `prepare`, `start`, steps, and `stop` or `cancel`. Raises what torch does."""

    def __init__(self, wanted: ProfilerOptions, others: OtherProfilers) -> None:
        from torch import profiler

        options: dict[str, Any] = dict(wanted.options)
        self.thread = threading.get_ident()
        """Where all of it happens: torch's profiler belongs to a thread."""
        self.is_recording = False
        self.is_lost = False
        """Whether the program's own profiler took torch's away."""
        self.start_ns = 0
        self.end_ns = 0  # Wall clock
        self.stop_us = 0
        """How long training waited for torch to end it."""
        self.tracks_modules = False
        """Whether our dispatch mode was seen on it."""
        self._others = others
        self._step: Any = None
        self._is_prepared = False
        self.profile: Any = profiler.profile(
            activities=[
                getattr(profiler.ProfilerActivity, _NAMES[name])
                for name in wanted.activities
            ],
            **options,
        )

    def prepare(self) -> None:
        """Make torch's profiler ready: the first time on a device takes seconds."""
        with self._others.ourselves():
            self.profile.prepare_trace()
        self._is_prepared = True

    def start(self) -> None:
        with self._others.ourselves():
            self.profile.start_trace()
        self.start_ns = time.time_ns()
        self.is_recording = True
        self._look_for_mode()

    def begin_step(self, step: int) -> None:
        """A training step begins; torch's own tools find it by this name."""
        from torch.autograd.profiler import record_function

        self.end_step()
        self._step = record_function(f"ProfilerStep#{step}")
        self._step.__enter__()

    def end_step(self) -> None:
        self._look_for_mode()
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def stop(self) -> None:
        """Record no longer. Waits for the device, and for torch to sort its events."""
        self.end_ns = time.time_ns()
        began = time.perf_counter_ns()
        try:
            self.end_step()
            self._name_mode()
        finally:
            self.is_recording = self._is_prepared = False
            with self._others.ourselves():
                self.profile.stop_trace()
        self.stop_us = (time.perf_counter_ns() - began) // 1000

    def _look_for_mode(self) -> None:
        """Our dispatch mode is on around whole steps: at an end of one it is seen."""
        from memboard.collector.modules.dispatch import is_watching

        if self.is_recording and not self.tracks_modules:
            with forgiving:
                self.tracks_modules = is_watching()

    def _name_mode(self) -> None:
        """Have the trace say that operators are called twice, and by whom."""
        if self.tracks_modules:
            own = json.dumps({TRACKS_MODULES: True})
            with forgiving:  # the trace is one without it
                self.profile.add_metadata_json(METADATA_KEY, own)

    def cancel(self) -> None:
        """Leave torch as it was and keep nothing."""
        if self._is_prepared:
            if not self.is_recording:
                # torch complains of one that was made ready and ends without a start.
                with forgiving:
                    self.start()
            self.stop()
        self.profile = None


def _is_available(activity: str) -> bool:
    import torch

    if activity in ("cpu", "privateuse1"):
        return True
    module = getattr(torch, activity, None)
    return bool(module is not None and module.is_available())
