"""The kinds of collecting: their order, their functions, and one that fails.

A kind is opened when its first call is near, so that a recording that profiles nothing
imports nothing. One that cannot work here says so in a note; one that raises is off for
a while with a warning and a note (see `retry`), and the others go on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import Block, Breaker, guarded
from memboard.collector.core.source import SourceInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.core.calls import Call, Kind, Sink
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.functions.module_watch import ModuleWatch
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.sources.host.rss import PsutilSource, StatmSource

ALL: Final = "*"
"""In a list of functions: every one."""

_ASKED_FOR: Final = frozenset({"modules"})
"""Kinds that are off by themselves, and of which nothing else tells in time."""


def _failed(_where: str, error: BaseException, slot: Slot, *_: Any) -> None:
    slot.failed(error)


class Slot:
    """One kind: not opened yet, open, or off. Nothing here raises."""

    def __init__(
        self,
        name: str,
        functions: Iterable[str],
        open_kind: Callable[[], Kind],
        sink: Sink,
        warn_once: WarnOnce,
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
        self._warn_once = warn_once
        self._breaker = Breaker(
            SourceInfo(name=name, cost=""),
            sink.note_kind,
            warn_once,
            message="collecting %s failed and is off for now; training and the rest go"
            " on. %s",
            is_asked_for=is_asked_for,
        )

    def wants(self, function: str) -> bool:
        """Whether it collects calls of `function`."""
        return names(self._functions, function)

    def open(self) -> Kind | None:
        """The kind, opened now where it was not; None where it is off."""
        opener, breaker = self._open, self._breaker
        if self.kind is None and opener is not None and breaker.is_due():
            with breaker:
                self.kind = self._opened(opener)
                breaker.info = self.kind.info
        return self.kind

    # One kind must not cost the others.

    @guarded(_failed)
    def attach(self, model: Any, optimizers: Sequence[Any], /) -> None:
        """The model and optimizers are known, or others than before."""
        if self.kind is not None:
            self.kind.attach(model, optimizers)

    @guarded(_failed)
    def track_inputs(self, inputs: Sequence[Any], /) -> None:
        """Tell a kind that asks for them a step's inputs; others do not mind."""
        track_inputs = getattr(self.kind, "track_inputs", None)
        if track_inputs is not None:
            track_inputs(inputs)

    @guarded(_failed, instead=lambda *_: False)
    def begin(self, call: Call, /) -> bool:
        """A collected call starts; whether the kind has begun."""
        if self.kind is None:
            return False
        self.kind.begin(call)
        if self._breaker.said != "recorded":  # else it would be a call for nothing
            self._breaker.works()
        return True

    @guarded(_failed)
    def end(self, call: Call, error: BaseException | None, /) -> None:
        if self.kind is not None:
            self.kind.end(call, error)

    @guarded(_failed)
    def release(self, /) -> None:
        """The last window has ended."""
        if self.kind is not None:
            self.kind.release()

    def close(self) -> None:
        """The recording ends; it is off from then on."""
        self._close_kind()
        self.kind = self._open = None

    @guarded(_failed)
    def _close_kind(self, /) -> None:
        if self.kind is not None:
            self.kind.close()

    def _opened(self, opener: Callable[[], Kind]) -> Kind:
        try:
            return opener()
        except Unavailable:
            self._open = None
            raise
        except ModuleNotFoundError as error:
            self._open = None  # what is not installed does not come by waiting
            if error.name != "torch":
                raise
            remedy = "Install torch into this Python to record it."
            raise Unavailable("torch is not installed", remedy) from None

    def failed(self, error: BaseException) -> None:
        """The kind has raised: it is off for a while."""
        self._breaker.failed(error)
        kind = self.kind
        if kind is not None and not isinstance(error, Unavailable):
            # Else the next call may be different.
            self.kind = None
            with Block(self._not_closed):
                kind.close()  # leave model and torch alone, as far as that still goes

    def _not_closed(self, error: BaseException) -> None:
        self._warn_once(
            f"close {self.name}", "%s did not close", self.name, error=error
        )


def make_slots(
    config: RecordConfig,
    sink: Sink,
    device: Device,
    sizes: StatmSource | PsutilSource,
    warn_once: WarnOnce,
) -> tuple[Slot, ...]:
    """The kinds that are switched on, in the order in which they end."""
    named = config.functions
    # Hooks and saved tensors belong to every function of which memory is collected, on
    # whichever side, as with MemProfiler; the row of its ends has their values.
    captured = named.history if config.history.enabled else ()
    measured = (*named.default, *named.device, *named.host, *captured)
    functions: dict[str, tuple[str, ...]] = {
        "functions": measured,
        "hooks": measured,
        "activations": measured,
        "modules": named.modules,
        "history": named.history,
    }
    openers = _Openers(config, sink, device, sizes)
    for kind, its in functions.items() if named.enabled else ():
        if getattr(config, kind).enabled:
            asked, opener = kind in _ASKED_FOR, getattr(openers, kind)
            slot = Slot(kind, its, opener, sink, warn_once, is_asked_for=asked)
            openers.slots[kind] = slot
        else:
            _note_off(sink, kind)
    if not named.enabled:
        _note_off(sink, "functions")
    return tuple(openers.slots.values())


def names(functions: Iterable[str], function: str) -> bool:
    """Whether a list of functions has this one, by its own or its qualified name."""
    return ALL in functions or bool(
        {function, function.rpartition(".")[2]} & set(functions)
    )


class _Openers:
    """Opens kinds by name, each with what it needs of the others. May raise anything.

    Imports are here and not above, so that a recording that collects nothing is light.
    """

    def __init__(
        self,
        config: RecordConfig,
        sink: Sink,
        device: Device,
        sizes: StatmSource | PsutilSource,
    ) -> None:
        self.slots: dict[str, Slot] = {}
        self._config = config
        self._sink = sink
        self._device = device
        self._sizes = sizes
        self._watch: ModuleWatch | None = None

    def functions(self) -> Kind:
        from memboard.collector.functions.snaps import SnapsKind

        named = self._config.functions
        return SnapsKind(
            self._sink,
            self._device,
            self._sizes,
            on_device=partial(names, frozenset((*named.default, *named.device))),
            on_host=partial(names, frozenset((*named.default, *named.host))),
            hook_values=self._hook_values,
        )

    def hooks(self) -> Kind:
        from memboard.collector.functions.hooks_kind import HooksKind

        counted = self._saved_bytes if "activations" in self.slots else None
        return HooksKind(
            self._config.hooks, self._sink, self._sizes, self._watched(), counted
        )

    def activations(self) -> Kind:
        from memboard.collector.functions.activations import ActivationsKind

        return ActivationsKind(self._config.activations, self._sink, self._watched())

    def modules(self) -> Kind:
        from memboard.collector.modules.kind import ModulesKind

        return ModulesKind(self._config.modules, self._sink)

    def history(self) -> Kind:
        from memboard.collector.history.kind import open_kind

        return open_kind(self._config, self._sink)

    def _watched(self) -> ModuleWatch:
        from memboard.collector.functions.module_watch import ModuleWatch

        if self._watch is None:
            self._watch = ModuleWatch()
        return self._watch

    def _hook_values(self, call: Call) -> Callable[[], Mapping[str, float | None]]:
        slot = self.slots.get("hooks")
        hooks: Any = None if slot is None else slot.kind
        return dict if hooks is None else hooks.root_values(call)

    def _saved_bytes(self) -> int | None:
        activations: Any = self.slots["activations"].kind
        return None if activations is None else activations.npp_compat_bytes()


def _note_off(sink: Sink, setting: str) -> None:
    sink.note_kind(
        SourceInfo(name=setting, cost=""),
        "off",
        "switched off in the configuration",
        f"Set {setting}: true to record it.",
    )
