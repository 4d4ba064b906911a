"""MemProfiler's settings, as finetuning-scheduler's users have them, become ours.

Every key of `memprofiler_cfg` is accounted for in a list of what it became, so that
nothing is dropped in silence. Keys that are not given have MemProfiler's defaults, which
are not ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collector.config import sections, settings
from collector.config_checks import Found, written
from collector.config_code import UNCHANGED
from collector.config_file import Document, refuse_twice
from collector.config_memprofiler_keys import (
    BUILT_IN_ATTRS,
    IDENTITY,
    NAME,
    Given,
    find,
    is_built_in,
    read_keys,
)
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OFF: Final = "off, because enabled is false"
_WHOLE_STEP: Final = (
    "add `step` for backward and optimizer, where the trainer runs them outside"
)


class Became(NamedTuple):
    """What one key became."""

    key: str
    value: Any
    given: bool
    """False: the key is not there, and MemProfiler's default counts."""
    leaves: Mapping[str, Any]
    """Our settings, by path; none where MemBoard needs no such key."""
    note: str

    def __str__(self) -> str:
        became = ", ".join(f"{p}: {written(v)}" for p, v in self.leaves.items())
        note = f" ({self.note})" if became and self.note else self.note
        value = written(self.value).replace(UNCHANGED, IDENTITY)
        return f"{self.key}: {value} -> {became or 'nothing: '}{note}"


class Imported(NamedTuple):
    """MemProfiler's settings of one file or mapping, as ours."""

    place: str
    leaves: Mapping[str, Found]
    """Our settings by path, with the place that each comes from."""
    entries: tuple[Became, ...]
    """Every key of `MemProfilerCfg`, in its order."""
    beside: tuple[str, ...]
    """Keys beside `memprofiler_cfg` that are ours, and count."""
    left_out: tuple[str, ...]
    """Those that are not."""


def imported(document: Document, place: str) -> Imported | None:
    """Our settings for the `memprofiler_cfg` in a document; None where there is none.

    Args:
        document: what a file or mapping holds.
        place: what it is called in errors.

    Raises:
        ConfigError: there are several, or a key or value of it is wrong.
    """
    found = find(document.plain, place, document.lines)
    if found is None:
        return None
    path, value = found
    refuse_twice(document, place, path)
    conversion = _Conversion(read_keys(path, value, place, document.lines))
    conversion.functions()
    conversion.kinds()
    conversion.hooks()
    conversion.saved_tensors()
    conversion.files()
    others = [key for key in document.plain if str(key) != path]
    # Beside a `memprofiler_cfg` at the top our own keys count too; a trainer's file
    # with one somewhere below may have keys of its own that are merely called alike.
    known = {*settings(), *sections()} if path in document.plain else set()
    return Imported(
        place=place,
        leaves=conversion.leaves,
        entries=conversion.entries(),
        beside=tuple(key for key in others if key in known),
        left_out=tuple(str(key) for key in others if key not in known),
    )


def summary(found: Imported) -> str:
    """What the keys that are given became, a line each, for the log."""
    lines = [f"{found.place} holds MemProfiler's settings; they became:"]
    told = [entry for entry in found.entries if entry.given or entry.key == "enabled"]
    lines += [f"  {entry}" for entry in told]
    if found.left_out:
        lines.append(f"  not of {NAME}, left out: {', '.join(found.left_out)}")
    lines.append(
        "  All other keys have MemProfiler's defaults. `memboard import-config` lists"
        " them and writes the file in MemBoard's words."
    )
    return "\n".join(lines)


class _Conversion:
    """Ours from theirs, key by key."""

    def __init__(self, keys: Mapping[str, Given]) -> None:
        self._keys = keys
        self._entries: dict[str, Became] = {}
        self.leaves: dict[str, Found] = {}

    def entries(self) -> tuple[Became, ...]:
        """What each key became, in MemProfiler's order."""
        return tuple(self._entries[key] for key in self._keys)

    def _value(self, key: str) -> Any:
        return self._keys[key].value

    def _become(self, key: str, leaves: Mapping[str, Any], note: str = "") -> None:
        held = self._keys[key]
        self._entries[key] = Became(key, held.value, held.given, leaves, note)
        for path, value in leaves.items():
            self.leaves[path] = Found(value, held.place)

    def functions(self) -> None:
        """Which functions, and which of their calls."""
        default = self._value("collect_funcs.default")
        enabled = self._value("enabled")
        note = "" if enabled else "steps are recorded all the same"
        self._become("enabled", {"functions.enabled": enabled}, note)
        self._become(
            "collect_funcs.default",
            {"functions.default": default},
            "decorate them with @collector.profiled",
        )
        for name, leaf in (("cpu", "host"), ("cuda", "device")):
            key = f"collect_funcs.{name}"
            self._become(key, {f"functions.{leaf}": self._value(key)})
        for name, leaf, note in (
            ("cuda_allocator_history", "history", ""),
            ("fsdp", "modules", f"; {_WHOLE_STEP}"),
        ):
            key = f"collect_funcs.{name}"
            both = tuple(dict.fromkeys((*default, *self._value(key))))
            self._become(
                key, {f"functions.{leaf}": both}, f"with those of default{note}"
            )
        for name in ("warmup_iters", "max_iter"):
            key = f"schedule.{name}"
            self._become(key, {key: self._value(key)})

    def kinds(self) -> None:
        """Allocator history and module memory."""
        enabled = self._value("enabled")
        for key, section, note in (
            (
                "cuda_allocator_history",
                "history",
                "bounded, Python stacks alone, stopped after the last collected call",
            ),
            (
                "track_fsdp_mem",
                "modules",
                "FSDP and plain modules, forward, backward and all optimizers",
            ),
        ):
            on = self._value(key)
            file = "history" if section == "history" else "fsdp_report"
            self._become(
                key,
                {f"{section}.enabled": enabled and on, f"dumps.{file}": enabled and on},
                note if enabled or not on else _OFF,
            )
        root = "fsdp_mem_tracker_root_module"
        self._become(root, {"modules.root": self._value(root)})

    def hooks(self) -> None:
        """Hooks on modules; MemProfiler's own are built in here."""
        key = "enable_memory_hooks"
        self._become(key, {"hooks.enabled": self._value(key)})
        rss = all(
            any(map(is_built_in, self._value(f"memory_hooks.{name}_hooks")))
            for name in ("pre_forward", "post_forward")
        )
        for name, leaf, note in (
            ("pre_forward", "pre_forward", ""),
            ("post_forward", "post_forward", ""),
            ("reset_state", "reset", "; yours are called as hook(module)"),
        ):
            key = f"memory_hooks.{name}_hooks"
            own = tuple(code for code in self._value(key) if not is_built_in(code))
            leaves: dict[str, Any] = {f"hooks.{leaf}": own}
            if leaf == "pre_forward":
                leaves["hooks.rss"] = rss
            self._become(key, leaves, f"MemProfiler's own are built in{note}")
        attrs = self._value("save_hook_attrs")
        provided = BUILT_IN_ATTRS if rss else ()
        self._become(
            "save_hook_attrs",
            {"hooks.save_attrs": tuple(a for a in attrs if a not in provided)},
            "rss_* and npp_* are always kept, of every module" if rss else "",
        )
        self._become(
            "retain_hooks_for_funcs",
            {},
            "MemProfiler overwrites this key; hooks leave with the last collected call",
        )

    def saved_tensors(self) -> None:
        """What autograd saves; MemProfiler's count is kept beside the right one."""
        key = "enable_saved_tensors_hooks"
        self._become(
            key,
            {"activations.enabled": self._value(key)},
            "npp is kept as npp_compat_bytes, beside the bytes of unique storages",
        )
        key = "saved_tensors_funcs"
        given = self._value(key)
        if len(given) not in (0, 2):
            raise ConfigError(
                f"'{NAME}.{key}' in {self._keys[key].place} must be two, one that packs"
                f" and one that unpacks, got {len(given)}. Add 'identity_lambda' for"
                " the other."
            )
        pair = tuple(UNCHANGED if is_built_in(code) else code for code in given)
        own = () if all(code == UNCHANGED for code in pair) else pair
        counted = any(is_built_in(code) for code in given)
        note = "MemProfiler's own is built in" if counted else ""
        self._become(key, {"activations.functions": own}, note)

    def files(self) -> None:
        """The files at the end of the recording."""
        enabled = self._value("enabled")
        for key, leaf in (
            ("dump_memorystats_yaml", "yaml"),
            ("dump_memorystats_pickle", "pickle"),
        ):
            on = self._value(key)
            note = _OFF if on and not enabled else ""
            self._become(key, {f"dumps.{leaf}": enabled and on}, note)
        for key, leaf in (
            ("fsdp_mem_track_module_depth", "depth"),
            ("fsdp_mem_tracker_units", "units"),
            ("fsdp_mem_tracker_tabulate", "tabulate"),
        ):
            note = "of the report; the page shows all" if leaf == "depth" else ""
            self._become(key, {f"dumps.{leaf}": self._value(key)}, note)
        note = "" if self._value("save_dir") else "memprofiler in the run's directory"
        self._become("save_dir", {"dumps.dir": self._value("save_dir") or ""}, note)
