"""Responses to bytes: the binary envelope that the docstring of `api` describes."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tb_plugin import api

if TYPE_CHECKING:
    import numpy.typing as npt

CONTENT_TYPE: Final = "application/octet-stream"

_LENGTH: Final = struct.Struct("<I")
_ALIGN: Final = 8
_DTYPES: Final[dict[type, tuple[str, int]]] = {
    api.F64Column: ("f64", 8),
    api.I32Column: ("i32", 4),
    api.U16Column: ("u16", 2),
    api.U8Column: ("u8", 1),
}
_NUMPY: Final = {"f64": "<f8", "i32": "<i4", "u16": "<u2"}
PACKED_LENGTH: Final = 1024
"""Columns of so many numbers are packed; shorter ones are not worth it."""


def envelope(response: Any) -> bytes:
    """One response dataclass of `api` as the body of its answer.

    Raises:
        ValueError: a number outside the columns is not finite (JSON has no such thing).
    """
    columns: list[tuple[str, int, bytes]] = []
    data = _json(_plain(response, columns))
    head = f'{{"api_version":{api.API_VERSION},"response":"{type(response).__name__}"'
    # The header holds offsets that depend on its own length. A later start never makes
    # it shorter, so growing the start until the header fits comes to an end.
    body_at = 0
    while True:
        entries, at = [], body_at
        for dtype, width, column in columns:
            length = len(column) // width
            name = f"packed_{dtype}" if _is_packed(dtype, length) else dtype
            entries.append({"dtype": name, "offset": at, "length": length})
            at = _aligned(at + len(column))
        text = f'{head},"data":{data},"columns":{_json(entries)}}}'
        header = text.encode("utf-8", "replace")
        needed = _aligned(_LENGTH.size + len(header))
        if needed <= body_at:
            break
        body_at = needed
    padded = header + b" " * (body_at - _LENGTH.size - len(header))
    parts = [_LENGTH.pack(len(padded)), padded]
    for dtype, width, column in columns:
        is_packed = _is_packed(dtype, len(column) // width)
        parts.append(_packed(dtype, width, column) if is_packed else column)
        parts.append(bytes(-len(column) % _ALIGN))
    return b"".join(parts)


def f64(values: npt.ArrayLike) -> api.F64Column:
    """A float64 column."""
    return api.F64Column(np.ascontiguousarray(values, "<f8").tobytes())


def i32(values: npt.ArrayLike) -> api.I32Column:
    """An int32 column."""
    return api.I32Column(np.ascontiguousarray(values, "<i4").tobytes())


def u16(values: npt.ArrayLike) -> api.U16Column:
    """A uint16 column."""
    return api.U16Column(np.ascontiguousarray(values, "<u2").tobytes())


def u8(values: npt.ArrayLike) -> api.U8Column:
    """A uint8 column."""
    return api.U8Column(np.ascontiguousarray(values, "u1").tobytes())


def finite(value: float | None) -> float | None:
    """A number that JSON can hold, or None: corrupt input must not break an answer."""
    return float(value) if value is not None and math.isfinite(value) else None


def _is_packed(dtype: str, length: int) -> bool:
    return dtype in _NUMPY and length >= PACKED_LENGTH


def _packed(dtype: str, width: int, column: bytes) -> bytes:
    """A column as it deflates best, and fastest: first all first bytes, and so on.

    Whole numbers as the difference from the one before, which goes round.
    """
    values = np.frombuffer(column, _NUMPY[dtype])
    if values.dtype.kind != "f":
        values = np.concatenate([values[:1], values[1:] - values[:-1]])
    return bytes(values.view(np.uint8).reshape(-1, width).T.tobytes())


def _plain(value: Any, columns: list[tuple[str, int, bytes]]) -> Any:
    column = _DTYPES.get(type(value))
    if column is not None:
        columns.append((*column, value.data))
        return {"$column": len(columns) - 1}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), columns) for f in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item, columns) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _json(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN
