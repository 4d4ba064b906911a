"""Answers of views as plain JSON values: numbers under names that carry their unit."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tb_plugin import api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Column = api.F64Column | api.I32Column | api.U16Column | api.U8Column

_DTYPES: Final[dict[type, str]] = {
    api.F64Column: "<f8",
    api.I32Column: "<i4",
    api.U16Column: "<u2",
    api.U8Column: "u1",
}

_SUFFIXES: Final = {
    "bytes": "_bytes",
    "bytes_per_step": "_bytes_per_step",
    "bytes_per_second": "_bytes_per_second",
    "per_second": "_per_second",
    "percent": "_pct",
    "seconds": "_seconds",
    "celsius": "_celsius",
    "watts": "_watts",
}
"""By unit; a count has none."""


def values_of(column: Column | None) -> list[Any]:
    """A column's numbers; None where nothing was recorded."""
    if column is None:
        return []
    found: list[Any] = np.frombuffer(column.data, _DTYPES[type(column)]).tolist()
    return [number(value) for value in found]


def number(value: float | None) -> float | int | None:
    """A number as JSON holds it: whole where it is whole, None where there is none."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else value


def named(name: str, unit: str) -> str:
    """A name with the suffix of its unit, once.

    torch's statistics have it in the middle: `allocated_bytes.all.peak`.
    """
    suffix = _SUFFIXES.get(unit, "")
    return name if f"{suffix}." in f"{name}." else name + suffix


def plain(value: Any, leave_out: Iterable[str] = ()) -> Any:
    """A dataclass of `api` without columns as mappings and lists."""
    if is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name))
            for field in fields(value)
            if field.name not in leave_out
        }
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return number(value) if isinstance(value, float) else value


def rows(columns: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns of equal length as one mapping per row."""
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
