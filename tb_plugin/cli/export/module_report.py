"""Module memory of a call as tables to read: `fsdp_mem_rank_R_FUNCTION_ITER.log`.

The layout is that of MemProfiler's reports as torch's trackers print their tables, so that
what reads those reads these: the peak of the call itself, then each module's states. A
device that holds nothing in a state has no row there.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from memboard.collector.config.sections import ModulesConfig
from memboard.collector.errors import ConfigError
from memboard.tb_plugin.formats.memprofiler.rows import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.cli.export.module_table import Row, WindowTable

    TableRow: TypeAlias = dict[str, str]

_RULE: Final = "-" * 80


class TableFormat(NamedTuple):
    depth: int
    """Modules whose names have at most as many parts; 1: the root alone."""
    units: str  # A key of `UNITS`

    @classmethod
    def of(
        cls, config: Mapping[str, object], depth: int | None, units: str | None
    ) -> TableFormat:
        """These, or where they are None what a recording's settings say."""
        section = config.get("modules")
        recorded = section if isinstance(section, dict) else {}
        try:
            modules = ModulesConfig(
                **{
                    name: recorded[name]
                    for name in ("table_depth", "table_units")
                    if name in recorded
                }
            )
        except ConfigError:  # of a damaged file, or of a later version
            modules = ModulesConfig()
        return cls(depth or modules.table_depth, units or modules.table_units)


def report_of(
    function: str, iteration: int, window: WindowTable, style: TableFormat
) -> str:
    """The whole report of one call; sizes of the peak too are in the chosen units."""
    rows = list(window.rows)
    tracked = "FSDP memory" if window.is_fsdp else "memory"
    call = f"Iteration {iteration} {_in_one_line(function)}"
    peak = [row for row in rows if not row[0]]
    sections = [
        f"{call} Peak {tracked} stats: ",
        _RULE,
        _table(_peak(peak, style.units)) if peak else "No memory tracked.",
        _RULE,
        f"{call} Modulewise {tracked} stats: ",
        _RULE,
    ]
    of_modules = (row for row in rows if row[0] and row[1] <= style.depth)
    for module, group in groupby(of_modules, key=lambda row: row[0]):
        states = _states(group, style.units)
        sections.append(f"Module:  {_in_one_line(module)}")
        sections.append(_table(states) if states else "")
    return "\n".join([*sections, _RULE, ""])


def _in_one_line(module_name: str) -> str:
    """A name that the program chose."""
    return (
        module_name if module_name and module_name.isprintable() else ascii(module_name)
    )


def _table(rows: Sequence[TableRow]) -> str:
    from tabulate import tabulate

    text: str = tabulate(rows, headers="keys", tablefmt="rst", disable_numparse=True)
    return text


def _peak(rows: Iterable[Row], units: str) -> list[TableRow]:
    return [
        {"Device": device, **sizes} for _, _, device, sizes in _by_device(rows, units)
    ]


def _states(rows: Iterable[Row], units: str) -> list[TableRow]:
    """A row for each state, call and device; those of one call name it once."""
    table: list[TableRow] = []
    last = ""
    for state, call, device, sizes in _by_device(rows, units):
        state_and_call = f"{state} # {call}"
        table.append(
            {
                "State & Call": "" if state_and_call == last else state_and_call,
                "Device": device,
            }
        )
        table[-1].update(sizes)
        last = state_and_call
    return table


def _by_device(
    rows: Iterable[Row], units: str
) -> Iterator[tuple[str, int, str, TableRow]]:
    """State, call and device with sizes by category; those that hold nothing are left out."""
    for (state, call, device), group in groupby(rows, key=lambda row: row[2:5]):
        sizes = {row[5]: row[6] for row in group}
        if any(sizes.values()):
            yield state, call, device, {k: _size(v, units) for k, v in sizes.items()}


def _size(size_bytes: int, units: str) -> str:
    divisor = UNITS[units]
    value = size_bytes if divisor == 1 else round(size_bytes / divisor, 2)
    return f"{value} {units}"
