"""Headers and schemas of rank files: what many share, and what stands in for a lost one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from collector.format.names import started_ns_of
from collector.format.records import ClockAnchor, Header, LateDevice, Schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAX_SHARED: Final = 256

_shared: dict[tuple[int, ...], dict[int, Schema]] = {}


def header_by_name(rank: int, attempt: str) -> Header:
    """A header that holds rank and start, all else unknown."""
    return Header(
        run_id="",
        attempt=attempt,
        job="",
        rank=rank,
        local_rank=0,
        world_size=0,
        local_world_size=None,
        node_rank=None,
        host="",
        pid=0,
        started=ClockAnchor(wall_ns=started_ns_of(attempt), monotonic_ns=0),
        device_type="",
    )


def with_device(header: Header, data: Mapping[str, Any]) -> Header:
    """The header with what a note says of the device that training came to use."""
    try:
        device = msgspec.convert(data, LateDevice)
    except msgspec.ValidationError:
        return header
    return msgspec.structs.replace(header, **msgspec.structs.asdict(device))


@lru_cache(maxsize=1024)
def _same(schema: Schema) -> Schema:
    """The same object for equal schemas."""
    return schema


def with_schema(schemas: Mapping[int, Schema], added: Schema) -> dict[int, Schema]:
    """A dictionary with one more schema; ranks with the same schemas get the same one.

    Never to be changed. What is derived from schemas is then derived once.
    """
    wanted = {**schemas, added.schema_id: _same(added)}
    # Schemas in the value keep the identities in its key from being given anew.
    key = tuple(map(id, wanted.values()))
    found = _shared.get(key)
    if found is None:
        if len(_shared) >= _MAX_SHARED:
            _shared.clear()
        found = _shared[key] = wanted
    return found
