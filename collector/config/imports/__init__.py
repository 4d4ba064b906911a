"""Settings of other tools, as ours: each key is accounted for, nothing is dropped in silence.

- `memprofiler`, `memprofiler_keys`: finetuning-scheduler's `memprofiler_cfg`.
- `profilers`, `profiler_keys`: Composer's profiler, and Lightning's with its extension.
- `callbacks`: Composer's callbacks for memory and speed.
- `python_source`: the arguments of their calls in a program.
- `result`: what each key became.
"""
