"""The accelerator of this rank, as every source that measures it sees it.

A process that has not used its accelerator must not be made to by watching it: a CUDA
context costs hundreds of megabytes and forbids forking. So nothing here initialises a
device; until training does, readings are None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memboard.collector.core.source import TORCH_ERRORS, Unavailable
from memboard.collector.format.records import DeviceIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from memboard.collector.sources.device.peaks import PeakLedger


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A function of torch that takes a device index, and where it is looked up."""

    owner: Any
    name: str
    resets: bool
    """True: it resets peaks; False: it returns the nested statistics."""


class Device:
    """The device this rank records; shared by its sources, made once per recorder.

    `absent` says why there is none (then `type` is cpu and `index` None). Left to
    choose by itself, it starts with the current device or the one of the local rank,
    and moves to where this process allocates as long as its own choice stays empty.
    """

    def __init__(
        self,
        backend: Backend | None = None,
        index: int | None = None,
        *,
        absent: Unavailable | None = None,
        fixed: bool = True,
    ) -> None:
        """`fixed`: the user named the index, so it never moves."""
        self.backend = backend
        self.type = "cpu" if backend is None else backend.type
        self.index = index
        self.absent = absent
        self.ledger: PeakLedger | None = None
        """The peak ledger, while the device source is open."""
        self._fixed = fixed
        self._num_tries = 0
        self._identity: DeviceIdentity | None = None

    def in_use(self) -> bool:
        """Whether the device can be asked without initialising it."""
        return self.backend is not None and self.backend.in_use()

    def identity(self) -> DeviceIdentity:
        """What is known by now; complete once training uses the device. Cheap."""
        identity = self._identity
        if identity is not None and identity.device_index == self.index:
            return identity
        if self.backend is None or self.index is None or not self.backend.in_use():
            return DeviceIdentity(device_type=self.type, device_index=self.index)
        self._identity = self.backend.identity(self.index)
        return self._identity

    def settle(self) -> bool:
        """Move to the device this process allocates on; whether it moved.

        To be asked while nothing is reserved on the present one; tries ever less often.
        """
        if self._fixed or self.backend is None:
            return False
        self._num_tries += 1
        if self._num_tries & (self._num_tries - 1):
            return False
        reserved = [
            self.backend.stats(index)["reserved_bytes"]["all"]["current"]
            for index in range(self.backend.count())
        ]
        if not any(reserved):
            return False
        best = reserved.index(max(reserved))
        moved, self.index = best != self.index, best
        return moved


def find_device(choice: str | int, *, local_rank: int) -> Device:
    """The device to record, from the setting `device` (auto, off or an index).

    Never raises and initialises nothing; where there is no device, `absent` says why.
    """
    if choice == "off":
        return Device(absent=Unavailable("switched off in the configuration"))
    try:
        backend = _backend()
        count = backend.count()
        current = backend.current() if backend.in_use() else 0
    except Unavailable as absent:
        return Device(absent=absent)
    except TORCH_ERRORS as error:
        reason = f"looking for an accelerator failed: {type(error).__name__}: {error}"
        return Device(absent=Unavailable(reason, "Check the driver."))
    if count == 0:
        return Device(
            absent=Unavailable(
                f"torch supports {backend.type} but sees no such device",
                "Check the driver and, for CUDA, CUDA_VISIBLE_DEVICES.",
            )
        )
    if isinstance(choice, int):
        if choice < count:
            return Device(backend, choice)
        return Device(
            absent=Unavailable(
                f"the configuration names device {choice}, torch sees {count}",
                f"Set device to auto or to an index below {count}.",
            )
        )
    if current == 0 and local_rank < count:
        current = local_rank
    return Device(backend, current, fixed=count == 1)


def _backend() -> Backend:
    try:
        import torch
    except ImportError:
        raise Unavailable(
            "torch is not installed", "Install torch to record device memory."
        ) from None
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None:
        raise Unavailable(
            "this torch is built without an accelerator",
            "Nothing to do on a machine without one; else install torch for it.",
        )
    if accelerator.type == "cuda":
        try:
            return CudaBackend(torch)
        except AttributeError:  # another release renamed them: the generic ones remain
            pass
    return Backend(torch, accelerator.type)


class Backend:
    """The few calls into torch that the sources rest on, for any kind of accelerator.

    This one uses what torch.accelerator tells of its memory. Raises Unavailable where
    torch offers no statistics.
    """

    def __init__(self, torch: ModuleType, kind: str) -> None:
        self.type = kind
        self._accelerator = torch.accelerator
        self._module = getattr(torch, kind, None)
        self._c = torch._C  # noqa: SLF001
        try:
            self._c._accelerator_isAllocatorInitialized()  # noqa: SLF001  # mps raises
            self._stats: Callable[[int], Mapping[str, Any]] = original(
                self._c._accelerator_getDeviceStats  # noqa: SLF001
            )
            self._reset: Callable[[int], None] = original(
                self._c._accelerator_resetPeakStats  # noqa: SLF001
            )
        except (AttributeError, RuntimeError):
            raise Unavailable(
                f"torch {torch.__version__} has no memory statistics for {kind}",
                "Newer releases may have them.",
            ) from None

    def in_use(self) -> bool:
        """Whether this process has initialised the device and may ask it."""
        initialized = getattr(self._module, "is_initialized", None)
        if initialized is not None and not initialized():
            return False
        return bool(self._c._accelerator_isAllocatorInitialized())  # noqa: SLF001

    def count(self) -> int:
        """Number of visible devices, found without initialising them."""
        return int(self._accelerator.device_count())

    def current(self) -> int:
        """The current device; this and all that follows only while in use."""
        return int(self._accelerator.current_device_index())

    def stats(self, index: int) -> Mapping[str, Any]:
        """The allocator's statistics as a nested dict."""
        return self._stats(index)

    def reset_peaks(self, index: int) -> None:
        """Set every peak to its current value."""
        self._reset(index)

    def memory_info(self, index: int) -> tuple[int, int] | None:
        """Free and total bytes of the device.

        None where asking would create a context: hundreds of megabytes of the device.
        """
        free, total = self._accelerator.get_memory_info(index)
        return int(free), int(total)

    def identity(self, index: int) -> DeviceIdentity:
        properties = getattr(self._module, "get_device_properties", None)
        device_properties = None if properties is None else properties(index)
        uuid = getattr(device_properties, "uuid", None)
        total = getattr(device_properties, "total_memory", None)
        return DeviceIdentity(
            device_type=self.type,
            device_index=index,
            device_name=getattr(device_properties, "name", None),
            device_uuid=None if uuid is None else str(uuid),
            device_total_bytes=None if total is None else int(total),
        )

    def entry_points(self) -> tuple[EntryPoint, ...]:
        """The functions through which user code reads and resets peaks.

        The device's own module calls functions of its own.
        """
        points = (
            EntryPoint(self._c, "_accelerator_getDeviceStats", resets=False),
            EntryPoint(self._c, "_accelerator_resetPeakStats", resets=True),
            EntryPoint(self._c, f"_{self.type}_memoryStats", resets=False),
            EntryPoint(self._c, f"_{self.type}_resetPeakMemoryStats", resets=True),
        )
        return tuple(point for point in points if hasattr(point.owner, point.name))


class CudaBackend(Backend):
    """CUDA and ROCm, through the C functions that torch.cuda itself calls."""

    def __init__(self, torch: ModuleType) -> None:
        self.type = "cuda"
        self._module = self._cuda = torch.cuda
        self._c = torch._C  # noqa: SLF001  # the nested dict without flattening
        # Kept now, so that they stay torch's own while wrapped ones are in their place.
        self._stats = original(self._c._cuda_memoryStats)  # noqa: SLF001
        self._reset = original(self._c._cuda_resetPeakMemoryStats)  # noqa: SLF001

    def in_use(self) -> bool:
        """False in a forked child, where CUDA cannot be used."""
        return bool(self._cuda.is_initialized())

    def count(self) -> int:
        """Torch asks NVML, which leaves forking possible."""
        return int(self._cuda.device_count())

    def current(self) -> int:
        return int(self._cuda.current_device())

    def memory_info(self, index: int) -> tuple[int, int] | None:
        """CUDA in use does not mean this device is: training may have chosen another."""
        has_context = getattr(self._c, "_cuda_hasPrimaryContext", None)
        if has_context is not None and not has_context(index):
            return None
        free, total = self._cuda.mem_get_info(index)
        return int(free), int(total)


def original(function: Any) -> Any:
    """Torch's own function behind one that a peak ledger has wrapped."""
    return getattr(function, "__memboard_original__", function)
