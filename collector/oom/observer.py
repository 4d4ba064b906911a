"""The one observer that torch calls at an out-of-memory error, for all recorders.

torch cannot be made to forget an observer, so there is one per process and device type.
It holds no recorder: it asks, each time, which one lives. The newest that reports such
errors is told; none that is closed, and none in a forked child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from collector.core import lifecycle
from collector.core.process_lock import ProcessLock
from collector.core.warn_once import warn

if TYPE_CHECKING:
    from collector.oom.torch_side import TorchSide


class Witness(Protocol):
    """A recorder's part that reports errors. None of these may raise."""

    def observed(
        self, device: int, requested: int, limit: int, free: int, device_type: str
    ) -> None:
        """A request could not be served; the exception is yet to be raised."""

    def uncaught(self, error: BaseException, thread: str) -> None:
        """An exception has reached the end of a thread."""

    def signalled(self, name: str) -> None:
        """A signal is about to end the process."""


def newest_witness() -> Witness | None:
    """Of the newest live recorder that reports errors; None: there is none."""
    for recorder in reversed(lifecycle.all_live()):
        witness: Witness | None = getattr(recorder, "witness", None)
        if witness is not None:
            return witness
    return None


def attach_once(side: TorchSide) -> None:
    """Attach the observer to a type of device, which this starts. Raises what torch raises."""
    with _lock.now:
        if side.device_type in _attached:
            return
        side.attach(_Observer(side.device_type))
        _attached.add(side.device_type)


def is_attached(device_type: str) -> bool:
    """Whether torch calls us for devices of this type."""
    return device_type in _attached


class _Observer:
    """What torch holds for ever."""

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    def __call__(self, device: int, requested: int, limit: int, free: int) -> None:
        """Called on the thread that allocates. An exception here would hide the user's."""
        try:
            witness = newest_witness()
            if witness is not None:
                witness.observed(device, requested, limit, free, self._device_type)
        except Exception as error:  # noqa: BLE001  # the border to training
            warn("an out-of-memory error could not be reported", error=error)


_attached: Final[set[str]] = set()
_lock: Final = ProcessLock()
