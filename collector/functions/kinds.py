"""The kinds of collecting: their order, their functions, and one that fails.

A kind is opened when its first call is near, so that a recording that profiles nothing
imports nothing. One that cannot work here says so in a note; one that raises is off for
a while with a warning and a note (see `retry`), and the others go on.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from collector.core.retry import Retry
from collector.sources.contract import SourceInfo, Unavailable, remedy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from collector.config import RecordConfig
    from collector.core.warn_once import Troubles
    from collector.functions.contract import Call, Kind, Sink
    from collector.functions.hooks.module_watch import ModuleWatch
    from collector.sources.device.accelerator import Device

ALL: Final = "*"
"""In a list of functions: every one."""

HOMES: Final = {
    "modules": "collector.modules",
    "history": "collector.history",
}
"""Kinds that are packages of their own, with `open_kind(config, sink)`."""

_ASKED_FOR: Final = frozenset({"modules"})
"""Kinds that are off by themselves, and of which nothing else tells in time."""


class Slot:
    """One kind: not opened yet, open, or off. Nothing here raises."""

    def __init__(
        self,
        name: str,
        functions: Iterable[str],
        open_kind: Callable[[], Kind],
        sink: Sink,
        troubles: Troubles,
        *,
        is_asked_for: bool = False,
    ) -> None:
        """`functions`: those it collects. `open_kind` may raise anything.

        `is_asked_for`: somebody switched it on and counts on it, so it is also logged
        where it cannot collect.
        """
        self.name = name
        self.kind: Kind | None = None
        self._functions = frozenset(functions)
        self._open: Callable[[], Kind] | None = open_kind
        """None: it cannot work here, or is closed."""
        self._retry = Retry()
        self._is_failing = False
        self._sink = sink
        self._troubles = troubles
        self._is_asked_for = is_asked_for
        self._told: set[str] = set()
        self._lacking = False
        """Whether it said that it could not collect the last call."""

    def wants(self, function: str) -> bool:
        """Whether it collects calls of `function`."""
        return names(self._functions, function)

    def open(self) -> Kind | None:
        """The kind, opened now where it was not; None where it is off."""
        opener = self._open
        if self.kind is None and opener is not None and self._retry.is_due():
            try:
                self.kind = opener()
            except Unavailable as missing:
                self._open = None
                self._absent(SourceInfo(name=self.name, cost=""), missing)
            except ModuleNotFoundError as error:
                self._not_installed(error)
            except Exception as error:  # noqa: BLE001  # one must not cost the others
                self._failed(SourceInfo(name=self.name, cost=""), error)
            else:
                self._is_failing = False
                self._sink.note_kind(self.kind.info, "recorded", "", "")
        return self.kind

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """See `Kind.attach`."""
        self._guarded("attach", model, optimizers)

    def track_inputs(self, inputs: Sequence[Any]) -> None:
        """Tell a kind that asks for them a step's inputs; others do not mind."""
        if hasattr(self.kind, "track_inputs"):
            self._guarded("track_inputs", inputs)

    def begin(self, call: Call) -> bool:
        """See `Kind.begin`; whether it has begun."""
        begun = self._guarded("begin", call)
        if begun and self._lacking and self.kind is not None:
            self._lacking = False
            self._sink.note_kind(self.kind.info, "recorded", "", "")
        return begun

    def end(self, call: Call, error: BaseException | None) -> None:
        """See `Kind.end`."""
        self._guarded("end", call, error)

    def release(self) -> None:
        """See `Kind.release`."""
        self._guarded("release")

    def close(self) -> None:
        """See `Kind.close`; it is off from then on."""
        self._guarded("close")
        self.kind = self._open = None

    def _guarded(self, method: str, *arguments: Any) -> bool:
        kind = self.kind
        if kind is None:
            return False
        try:
            getattr(kind, method)(*arguments)
        except Unavailable as missing:  # of this call: the next one may be different
            self._absent(kind.info, missing)
            return False
        except Exception as error:  # noqa: BLE001  # the border to training
            self.kind = None
            self._failed(kind.info, error)
            self._leave(kind)
            return False
        return True

    def _leave(self, kind: Kind) -> None:
        """Whatever it left on model and torch goes, as far as it still can."""
        try:
            kind.close()
        except Exception as error:  # noqa: BLE001  # said while failing anyway
            self._troubles.tell(
                f"close {self.name}", "%s did not close", self.name, error=error
            )

    def _not_installed(self, error: ModuleNotFoundError) -> None:
        info = SourceInfo(name=self.name, cost="")
        self._open = None  # what is not installed does not come by waiting
        if error.name != "torch":
            self._failed(info, error)
            return
        remedy = "Install torch into this Python to record it."
        self._absent(info, Unavailable("torch is not installed", remedy))

    def _absent(self, info: SourceInfo, missing: Unavailable) -> None:
        self._lacking = True
        if missing.reason not in self._told:
            self._told.add(missing.reason)
            self._sink.note_kind(info, "absent", missing.reason, missing.remedy)
            if self._is_asked_for:
                self._troubles.tell(
                    f"absent {self.name} {missing.reason}",
                    "%s is switched on, and nothing of it is recorded: %s. %s",
                    self.name,
                    missing.reason,
                    missing.remedy,
                )

    def _failed(self, info: SourceInfo, error: BaseException) -> None:
        self._retry.failed()
        remedy = remedy_of(self.name, error)
        if not self._is_failing:
            self._is_failing = True
            reason = f"{type(error).__name__}: {error}"
            self._sink.note_kind(info, "failed", reason, remedy)
        self._troubles.tell(
            f"source {self.name}",
            "collecting %s failed and is off for now; training and the rest go on. %s",
            self.name,
            remedy,
            error=error,
        )


def make_slots(
    config: RecordConfig, sink: Sink, device: Device, troubles: Troubles
) -> tuple[Slot, ...]:
    """The kinds that are switched on, in the order in which they end."""
    if not config.functions.enabled:
        _note_off(sink, "functions")
        return ()
    named = config.functions
    functions: dict[str, tuple[str, ...]] = {
        "functions": (*named.default, *named.device, *named.host),
        "hooks": named.default,
        "activations": named.default,
        "modules": named.modules,
        "history": named.history,
    }
    openers = _Openers(config, sink, device)
    slots = []
    for name, its in functions.items():
        if getattr(config, name).enabled:
            slot = Slot(
                name,
                its,
                partial(openers.open, name),
                sink,
                troubles,
                is_asked_for=name in _ASKED_FOR,
            )
            openers.slots[name] = slot
            slots.append(slot)
        else:
            _note_off(sink, name)
    return tuple(slots)


def names(functions: Iterable[str], function: str) -> bool:
    """Whether a list of functions has this one, by its own or its qualified name."""
    return ALL in functions or bool(
        {function, function.rpartition(".")[2]} & set(functions)
    )


class _Openers:
    """Opens kinds, each with what it needs of the others."""

    def __init__(self, config: RecordConfig, sink: Sink, device: Device) -> None:
        self.slots: dict[str, Slot] = {}
        self._config = config
        self._sink = sink
        self._device = device
        self._watch: ModuleWatch | None = None

    def open(self, name: str) -> Kind:
        """Open one kind. May raise anything."""
        if name == "functions":
            return self._snaps()
        if name == "hooks":
            return self._hooks()
        if name == "activations":
            return self._activations()
        home = import_module(HOMES[name])
        kind: Kind = home.open_kind(self._config, self._sink)
        return kind

    def _snaps(self) -> Kind:
        from collector.functions.snaps import SnapsKind

        named = self._config.functions
        on_device = frozenset((*named.default, *named.device))
        on_host = frozenset((*named.default, *named.host))
        return SnapsKind(
            self._sink,
            self._device,
            on_device=partial(names, on_device),
            on_host=partial(names, on_host),
            hook_values=self._hook_values,
        )

    def _hooks(self) -> Kind:
        from collector.functions.hooks.kind import HooksKind

        counting = "activations" in self.slots
        return HooksKind(
            self._config.hooks,
            self._sink,
            self._watched(),
            self._saved_bytes if counting else None,
        )

    def _activations(self) -> Kind:
        from collector.functions.saved.activations import ActivationsKind

        return ActivationsKind(self._config.activations, self._sink, self._watched())

    def _watched(self) -> ModuleWatch:
        from collector.functions.hooks.module_watch import ModuleWatch

        if self._watch is None:
            self._watch = ModuleWatch()
        return self._watch

    def _hook_values(self, call: Call) -> Mapping[str, Any]:
        slot = self.slots.get("hooks")
        hooks: Any = None if slot is None else slot.kind
        return {} if hooks is None else hooks.root_values(call)

    def _saved_bytes(self) -> int | None:
        activations: Any = self.slots["activations"].kind
        return None if activations is None else activations.npp_compat_bytes()


def _note_off(sink: Sink, name: str) -> None:
    sink.note_kind(
        SourceInfo(name=name, cost=""),
        "off",
        "switched off in the configuration",
        f"Set {name}: true to record it.",
    )
