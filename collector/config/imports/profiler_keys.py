"""Arguments of Composer's profiler and of Lightning's, and what each becomes.

The names are those of Composer's `Profiler(...)`; what other versions and classes call them
is in `OTHER_NAMES`. Lightning's are those of `PyTorchProfiler` and of finetuning-scheduler's
`ExtendedPyTorchProfiler`, with what they pass on to torch.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from memboard.collector.config.imports.result import Key

COMPOSER: Final = "Composer's profiler"
LIGHTNING: Final = "Lightning's PyTorchProfiler"

_Count = Annotated[int, Meta(ge=0)]
_NO_OVERWRITE: Final = "a name that is taken is given a number"
_SENSORS: Final = "sensors are sampled by default"
_SPANS: Final = (
    "spans lie in the recording; `memboard merge` writes all ranks' spans and traces as"
    " one"
)
_TABLES: Final = "Operators on the page sorts and filters by any column"


def _schedule(wait: int, warmup: int, active: int, repeat: int) -> dict[str, Key]:
    return {
        "schedule.skip_first": Key(_Count, 0, ("schedule.skip_first",)),
        "schedule.wait": Key(_Count, wait, ("schedule.wait",)),
        "schedule.warmup": Key(_Count, warmup, ("schedule.warmup",)),
        "schedule.active": Key(_Count, active, ("schedule.active",)),
        "schedule.repeat": Key(_Count, repeat, ("schedule.repeat",)),
    }


COMPOSER_KEYS: Final[dict[str, Key]] = {
    **_schedule(wait=0, warmup=1, active=4, repeat=1),
    "torch_prof_folder": Key(
        str, "{run_name}/torch_traces", ("torch_profiler.folder",)
    ),
    "torch_prof_filename": Key(
        str, "rank{rank}.{batch}.pt.trace.json", ("torch_profiler.filename",)
    ),
    "torch_prof_use_gzip": Key(bool, False, ()),
    "torch_prof_remote_file_name": Key(
        str | None, "{run_name}/torch_traces/rank{rank}.{batch}.pt.trace.json", ()
    ),
    "torch_prof_memory_filename": Key(
        str | None, None, ("torch_profiler.memory_filename",)
    ),
    "torch_prof_memory_remote_file_name": Key(
        str | None,
        "{run_name}/torch_memory_traces/rank{rank}.{batch}.pt.memory_trace.html",
        (),
    ),
    "torch_prof_overwrite": Key(bool, False, (), _NO_OVERWRITE),
    "torch_prof_record_shapes": Key(bool, False, ("torch_profiler.record_shapes",)),
    "torch_prof_profile_memory": Key(bool, True, ("torch_profiler.profile_memory",)),
    "torch_prof_with_stack": Key(bool, False, ("torch_profiler.with_stack",)),
    "torch_prof_with_flops": Key(bool, True, ("torch_profiler.with_flops",)),
    "torch_prof_num_traces_to_keep": Key(
        Annotated[int, Meta(ge=-1)], -1, ("torch_profiler.num_traces_to_keep",)
    ),
    "sys_prof_cpu": Key(bool, True, (), _SENSORS),
    "sys_prof_memory": Key(bool, False, (), _SENSORS),
    "sys_prof_disk": Key(bool, False, (), _SENSORS),
    "sys_prof_net": Key(bool, False, (), _SENSORS),
    "sys_prof_stats_thread_interval_seconds": Key(
        Annotated[float, Meta(ge=0.05, le=86400)], 0.5, ("process", "host", "gpu")
    ),
    "trace_handlers": Key(Any, None, (), _SPANS),
    "json_trace_handler.folder": Key(str, "{run_name}/traces", (), _SPANS),
    "json_trace_handler.filename": Key(
        str, "ep{epoch}-ba{batch}-rank{rank}.json", (), _SPANS
    ),
    "json_trace_handler.remote_file_name": Key(
        str | None, "{run_name}/traces/ep{epoch}-ba{batch}-rank{rank}.json", (), _SPANS
    ),
    "json_trace_handler.merged_trace_filename": Key(
        str | None, "merged_trace.json", ("merge_on_close",)
    ),
    "json_trace_handler.merged_trace_remote_file_name": Key(
        str | None,
        "{run_name}/traces/merged_trace.json",
        (),
        "goes where remote.files says",
    ),
    "json_trace_handler.overwrite": Key(bool, False, (), _NO_OVERWRITE),
    "json_trace_handler.num_traces_to_keep": Key(
        Annotated[int, Meta(ge=-1)], -1, (), "spans stay in the recording"
    ),
    "profiler_trace_file": Key(str | None, None, (), _SPANS),
}
"""Every key, in its order."""

LIGHTNING_KEYS: Final[dict[str, Key]] = {
    **_schedule(wait=1, warmup=1, active=3, repeat=0),
    "dirpath": Key(str | None, None, (), "traces lie in the run's directory"),
    "filename": Key(str | None, None, ("torch_profiler.filename",)),
    "activities": Key(Any, None, (), "the CPU and the device are profiled by default"),
    "record_shapes": Key(bool, False, ("torch_profiler.record_shapes",)),
    "profile_memory": Key(bool, False, ("torch_profiler.profile_memory",)),
    "with_stack": Key(bool, False, ("torch_profiler.with_stack",)),
    "with_flops": Key(bool, False, ("torch_profiler.with_flops",)),
    "export_to_flame_graph": Key(bool, False, ("torch_profiler.stacks_filename",)),
    "metric": Key(str, "self_cpu_time_total", ("torch_profiler.stacks_metric",)),
    "export_to_chrome": Key(bool, True, (), "every cycle's trace is written"),
    "group_by_input_shapes": Key(bool, False, (), _TABLES),
    "row_limit": Key(int, 20, (), _TABLES),
    "sort_by_key": Key(str | None, None, (), _TABLES),
    "max_name_column_width": Key(int, 55, (), _TABLES),
    "table_kwargs": Key(Any, None, (), _TABLES),
    "record_module_names": Key(
        bool, True, (), "modules=true measures each module's memory"
    ),
    "emit_nvtx": Key(
        bool, False, (), "MemBoard marks no NVTX ranges: keep Lightning's"
    ),
    "use_cuda": Key(Any, None, (), "the device is profiled by default"),
}
"""Every key, in its order."""

OTHER_NAMES: Final = {
    "prof_skip_first": "schedule.skip_first",
    "prof_wait": "schedule.wait",
    "prof_warmup": "schedule.warmup",
    "prof_active": "schedule.active",
    "prof_repeat": "schedule.repeat",
    "prof_schedule": "schedule",
    "prof_trace_handlers": "trace_handlers",
    "prof_event_handlers": "trace_handlers",
    "torch_profiler_trace_dir": "torch_prof_folder",
    "torch_trace_dir": "torch_prof_folder",
    "schedule_cfg": "schedule",
}
"""What older versions, and the extension, call a key."""

HINTS: Final = {
    "use_gzip": "in MemBoard a torch_profiler.filename that ends in .gz is compressed",
    "overwrite": f"in MemBoard {_NO_OVERWRITE}",
    "remote_file_name": "in MemBoard that is remote.url with remote.traces",
    "schedule_cfg": "in MemBoard that is schedule",
    "sort_by_key": f"in MemBoard {_TABLES}",
    "row_limit": f"in MemBoard {_TABLES}",
    "save_dir": "in MemBoard that is dumps_dir",
    "max_iter": "in MemBoard that is schedule.active, a number of calls",
    "warmup_iters": "in MemBoard that is schedule.warmup",
    "collect_funcs": "in MemBoard that is functions",
    "memory_hooks": "in MemBoard that is hooks",
    "track_fsdp_mem": "in MemBoard that is modules",
    "cuda_allocator_history": "in MemBoard that is history",
}
"""What a key of theirs is called here, for who writes it among our own."""
