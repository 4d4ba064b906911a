"""Schemas, shared: ranks of a run declare the same tables byte for byte."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from collector.format.codec import SCHEMA, decode_record
from collector.format.errors import CorruptError
from collector.format.records import Schema
from tb_plugin.formats.recording.frames.clean import clean_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_SHARED: Final = 256

_shared: dict[tuple[int, ...], dict[int, Schema]] = {}


@lru_cache(maxsize=1024)
def decode_schema(payload: bytes) -> Schema | None:
    """The schema of a record; the same object for the same bytes.

    Raises:
        CorruptError: it is none.
    """
    schema = decode_record(SCHEMA, payload)
    return clean_schema(schema) if isinstance(schema, Schema) else None


def shared_schema(schema: Schema) -> Schema:
    """A schema as it is shown; the same object for equal ones.

    Raises:
        CorruptError: it misuses a field.
    """
    try:
        return _shared_schema(schema)
    except TypeError as error:  # it does not hash: a list where a text should be
        raise CorruptError("a schema record misuses a field") from error


@lru_cache(maxsize=1024)
def _shared_schema(schema: Schema) -> Schema:
    return clean_schema(schema)


def with_schema(schemas: Mapping[int, Schema], added: Schema) -> dict[int, Schema]:
    """A dictionary with one more schema; ranks with the same schemas get the same one.

    Never to be changed. What is derived from schemas is then derived once.
    """
    wanted = {**schemas, added.schema_id: added}
    # Schemas in the value keep the identities in its key from being given anew.
    key = tuple(map(id, wanted.values()))
    found = _shared.get(key)
    if found is None:
        if len(_shared) >= _MAX_SHARED:
            _shared.clear()
        found = _shared[key] = wanted
    return found
