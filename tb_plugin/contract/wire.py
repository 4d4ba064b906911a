"""Responses to bytes: one binary body for each answer.

Both ends ship together, so this form lives one release only. The body of a response
(`application/octet-stream`)::

    u32 LE  header length in bytes, padding included
    ...     UTF-8 JSON: {"api_version", "response": class name, "data": {...},
            "columns": [{"dtype", "offset", "length"}, ...]}, padded with spaces
    ...     columns, each starting at a multiple of 8 bytes counted from the body's
            start; `offset` counts from the body's start, `length` is in elements.
            A dtype `packed_...` has the first bytes of all elements before all second
            ones and so on; packed whole numbers are differences from the one before,
            modulo their width. Columns of 1,024 elements and more are packed: they
            deflate to a tenth, in a third of the time.

A column stands in `data` as `{"$column": index}`. Numbers are little-endian. In f64
columns NaN means "not recorded": absence is never zero. Times are milliseconds since
the epoch; sizes are bytes (an f64 holds bytes exactly up to 9 PB).

Requests are GET. A route's parameters are the fields of its `Query`, declared beside its
answer in `memboard.tb_plugin.pages`; all are optional unless the route says so.

Errors are JSON (`application/json`, HTTP 4xx/5xx) of the shape of `ErrorResponse`.
Every data route answers `ETag`; a poll with `If-None-Match` costs a 304.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import to_builtins

from memboard.tb_plugin.api.base import API_VERSION

if TYPE_CHECKING:
    import numpy.typing as npt


CONTENT_TYPE: Final = "application/octet-stream"

_LENGTH: Final = struct.Struct("<I")
_ALIGN: Final = 8
_NAMES: Final = {"<f8": "f64", "<i4": "i32", "<u2": "u16", "|u1": "u8"}
PACKED_LENGTH: Final = 1024
"""Columns of so many numbers are packed; shorter ones are not worth it."""


def envelope(response: Any) -> bytes:
    """One response of `memboard.tb_plugin.api` as the body of its answer.

    Raises:
        ValueError: a number outside the columns is not finite (JSON has no such thing).
    """
    columns: list[npt.NDArray[Any]] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            columns.append(value)
            return {"$column": len(columns) - 1}
        return value.item()  # a number of numpy's

    data = _json(to_builtins(response, enc_hook=plain))
    head = f'{{"api_version":{API_VERSION},"response":"{type(response).__name__}"'
    # The header holds offsets that depend on its own length. A later start never makes
    # it shorter, so growing the start until the header fits comes to an end.
    body_at = 0
    while True:
        entries, offset = [], body_at
        for column in columns:
            dtype = f"{'packed_' * _is_packed(column)}{_NAMES[column.dtype.str]}"
            entries.append({"dtype": dtype, "offset": offset, "length": len(column)})
            offset = _aligned(offset + column.nbytes)
        text = f'{head},"data":{data},"columns":{_json(entries)}}}'
        header = text.encode("utf-8", "replace")
        needed = _aligned(_LENGTH.size + len(header))
        if needed <= body_at:
            break
        body_at = needed
    padded = header + b" " * (body_at - _LENGTH.size - len(header))
    parts = [_LENGTH.pack(len(padded)), padded]
    for column in columns:
        parts.append(_packed(column) if _is_packed(column) else column.tobytes())
        parts.append(bytes(-column.nbytes % _ALIGN))
    return b"".join(parts)


def finite(value: float | None) -> float | None:
    """A number that JSON can hold, or None: corrupt input must not break an answer."""
    return float(value) if value is not None and math.isfinite(value) else None


def _is_packed(column: npt.NDArray[Any]) -> bool:
    return column.itemsize > 1 and len(column) >= PACKED_LENGTH


def _packed(column: npt.NDArray[Any]) -> bytes:
    """A column as it deflates best, and fastest: first all first bytes, and so on.

    Whole numbers as the difference from the one before, which goes round.
    """
    values = column
    if values.dtype.kind != "f":
        values = np.concatenate([values[:1], values[1:] - values[:-1]])
    return bytes(values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes())


def _json(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN
