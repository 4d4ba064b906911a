"""Snaps under MemProfiler's keys and names, as YAML that any loader takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tb_plugin.analysis.series.functions import CONTEXTS
from tb_plugin.formats.memprofiler.names import FunctionKey, SnapKey
from tb_plugin.formats.memprofiler.stats.names import their_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.series.functions import SnapTable

    Tables = Mapping[tuple[str, str], SnapTable]
    """By function and phase."""


def stats_of(
    tables: Tables, rank: int, names: Mapping[FunctionKey, str]
) -> dict[str, dict[str, int | float]]:
    """Values by snap key, in order of time; what was not recorded is left out.

    `names`: what each function is called; see `names_of`.
    """
    found: list[tuple[int, str, dict[str, int | float]]] = []
    for (function, phase), table in tables.items():
        columns = [
            (their_name(name), column.tolist()) for name, column in table.stats.items()
        ]
        for row in range(len(table)):
            side = int(table.context[row])
            if side not in (0, 1):
                continue
            name = names[FunctionKey(function, phase)]
            key = SnapKey(rank, name, int(table.iteration[row]), CONTEXTS[side])
            values = {
                stat: _exact(column[row])
                for stat, column in columns
                if column[row] == column[row]  # NaN: not recorded
            }
            found.append((int(table.time_ns[row]), key.text, values))
    found.sort(key=lambda snap: snap[0])
    return {key: values for _, key, values in found}


def as_yaml(data: Any) -> bytes:
    """Plain data as YAML that `yaml.safe_load` takes, in the order given."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        data, Dumper=dumper, sort_keys=False, default_flow_style=False, width=1000
    )
    return text.encode()


def _exact(value: float) -> int | float:
    """Bytes and counts are whole numbers, as they were when they were measured."""
    return int(value) if float(value).is_integer() else value
