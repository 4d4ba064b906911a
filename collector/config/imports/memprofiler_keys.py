"""The keys of MemProfiler's `MemProfilerCfg`, and what each becomes.

What is said of a key must be so in the file at hand: a note stands where the key is in
effect, and where another key keeps it from having one, that is said in its place.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from memboard.collector.config.imports.result import Key
from memboard.collector.config.values import UNCHANGED, Code, Names
from memboard.collector.format.memory import HOOK_ATTRS

NAME: Final = "memprofiler_cfg"

_HOOKS: Final = "fts_examples.profiling.npp_hooks."

_Codes = tuple[Code, ...]


_OWN_HOOKS: Final = "MemProfiler's own are built in"

_DECORATE: Final = "decorate them with @mb.profiled"

KEYS: Final[dict[str, Key]] = {
    "enabled": Key(bool, False, ("functions.enabled",)),
    "collect_funcs.default": Key(
        Names,
        ("training_step",),
        ("functions.default",),
        _DECORATE,
    ),
    "collect_funcs.cpu": Key(Names, (), ("functions.host",), _DECORATE),
    "collect_funcs.cuda": Key(Names, (), ("functions.device",), _DECORATE),
    "collect_funcs.cuda_allocator_history": Key(
        Names,
        (),
        ("functions.history",),
        "with those of default",
        needs="cuda_allocator_history",
    ),
    "collect_funcs.fsdp": Key(
        Names,
        (),
        ("functions.modules",),
        "with those of default; add `step` for backward and optimizer, where the trainer"
        " runs them outside",
        needs="track_fsdp_mem",
    ),
    "cuda_allocator_history": Key(
        bool,
        False,
        ("history.enabled", "dumps.history"),
        "bounded, Python stacks alone, stopped after the last collected call",
    ),
    "track_fsdp_mem": Key(
        bool,
        False,
        ("modules.enabled", "dumps.modules"),
        "FSDP and plain modules, and all optimizers, in the calls of functions.modules",
    ),
    "fsdp_mem_track_module_depth": Key(
        Annotated[int, Meta(ge=1, le=1000)],
        2,
        ("modules.table_depth",),
        "rank_R_modules.csv has modules of every depth",
        needs="track_fsdp_mem",
    ),
    "fsdp_mem_tracker_tabulate": Key(
        bool, False, (), "every report is of tables", needs="track_fsdp_mem"
    ),
    "fsdp_mem_tracker_units": Key(
        Literal["B", "KiB", "MiB", "GiB"],
        "MiB",
        ("modules.table_units",),
        "of the peak too; rank_R_modules.csv is in bytes",
        needs="track_fsdp_mem",
    ),
    "fsdp_mem_tracker_root_module": Key(
        str, "", ("modules.root",), needs="track_fsdp_mem"
    ),
    "dump_memorystats_pickle": Key(
        bool, False, ("dumps.yaml",), "the same snaps, as YAML"
    ),
    "dump_memorystats_yaml": Key(bool, True, ("dumps.yaml",)),
    "schedule.warmup_iters": Key(Annotated[int, Meta(ge=0)], 1, ("schedule.warmup",)),
    "schedule.max_iter": Key(
        Annotated[int, Meta(ge=0)] | None,
        None,
        ("schedule.active",),
        "the number of collected calls, 0 for no end",
    ),
    "save_dir": Key(str | None, None, ("dumps_dir",)),
    "enable_memory_hooks": Key(bool, True, ("hooks.enabled",)),
    "enable_saved_tensors_hooks": Key(
        bool,
        True,
        ("activations.enabled",),
        "npp is kept as npp_compat_bytes, beside the bytes of unique storages",
    ),
    "memory_hooks.pre_forward_hooks": Key(
        _Codes,
        (f"{_HOOKS}_hook_npp_pre_forward",),
        ("hooks.pre_forward",),
        _OWN_HOOKS,
        needs="enable_memory_hooks",
    ),
    "memory_hooks.post_forward_hooks": Key(
        _Codes,
        (f"{_HOOKS}_hook_npp_post_forward",),
        ("hooks.post_forward",),
        _OWN_HOOKS,
        needs="enable_memory_hooks",
    ),
    "memory_hooks.reset_state_hooks": Key(
        _Codes,
        (f"{_HOOKS}_reset_memory_hooks_state",),
        ("hooks.reset",),
        f"{_OWN_HOOKS}; yours are called as hook(model, attributes), or as hook(module)"
        " where they take no more",
        needs="enable_memory_hooks",
    ),
    "saved_tensors_funcs": Key(
        _Codes,
        (f"{_HOOKS}_npp_hook", UNCHANGED),
        ("activations.functions",),
        needs="enable_saved_tensors_hooks",
    ),
    "save_hook_attrs": Key(
        Names, HOOK_ATTRS, ("hooks.save_attrs",), needs="enable_memory_hooks"
    ),
    "retain_hooks_for_funcs": Key(
        Names,
        ("training_step",),
        (),
        "MemProfiler overwrites this key; hooks leave with the last collected call",
    ),
}
"""Every key of `MemProfilerCfg`, in its order."""

NESTED: Final = {key.partition(".")[0] for key in KEYS if "." in key}

NEED_ENABLED: Final = (
    "cuda_allocator_history",
    "track_fsdp_mem",
    "dump_memorystats_pickle",
    "dump_memorystats_yaml",
)
"""Keys that do nothing in MemProfiler unless it is enabled."""
