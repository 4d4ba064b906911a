"""The settings of a recording: what they are, where they come from, which one wins.

`settings` declares each of them, once; `layers` merges the four places one can stand in,
key by key, the first that has it wins:

1. keywords: `mb.record("runs/a", flush_seconds=5)`
2. environment variables: `MEMBOARD_FLUSH_SECONDS=5`
3. the file, mapping or `RecordConfig` given as `config`, or several of them, a later one
   before an earlier one; where none is given, the files that `MEMBOARD_CONFIG` names,
   with the system's path separator between (`base.yaml:mine.yaml`)
4. the defaults

A variable's name is the key in capitals after `MEMBOARD_`, with one underscore for the
dot: `history.stacks` is `MEMBOARD_HISTORY_STACKS`. A variable that is set to nothing counts
as not set. The short form of a section holds everywhere: `history: true` is
`history: {enabled: true}`.
What is off by default is on where any key of its section is given, in whatever place, and
`enabled` in none: `torch_profiler: {with_stack: true}` has torch's profiler run.
Where a list is due, one text is a list of one, and a variable holds its entries with
commas between (`MEMBOARD_FUNCTIONS_DEFAULT=training_step,eval`; a lone comma is none).
"""

from memboard.collector.config.layers import load, load_with_imports, variable
from memboard.collector.config.settings import RecordConfig, sections, settings

__all__ = [
    "RecordConfig",
    "load",
    "load_with_imports",
    "sections",
    "settings",
    "variable",
]
