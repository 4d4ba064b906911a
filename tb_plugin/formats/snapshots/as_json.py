"""A snapshot that somebody saved as JSON, made the pickle that torch would have written.

Pairs are lists there, and frames are spelled out in every stack; both become again what
torch had. What is a snapshot is then for the machine that reads pickles to say.
"""

from __future__ import annotations

import io
import json
import pickle
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.jobs.worker.errors import RefusedError

if TYPE_CHECKING:
    from tb_plugin.formats.snapshots.window import Window

MAX_BYTES: Final = 128 << 20
"""Of the text, which is whole in memory while it is read."""
_PROTOCOL: Final = 4
_PAIRS: Final = ("pool_id", "segment_pool_id")


def is_json(window: Window) -> bool:
    """Whether the file begins as JSON does."""
    return window.data.lstrip()[:1] in (b"{", b"[")


def as_pickle(window: Window) -> io.BytesIO:
    """The pickle of a snapshot's JSON.

    Raises:
        RefusedError: it is no JSON, or too long.
        OSError: the file cannot be read.
    """
    window.fill(0, MAX_BYTES + 1)
    if len(window.data) > MAX_BYTES:
        raise RefusedError(
            f"as JSON it is longer than {MAX_BYTES:,} bytes",
            MAX_BYTES,
            remedy="Keep the pickle that torch.cuda.memory._dump_snapshot writes.",
        )
    held = io.BytesIO()
    try:
        text = window.data.decode()
        window.data = b""
        found = json.loads(
            text, object_pairs_hook=_Objects().made, parse_constant=_refuse
        )
        del text
        pickle.dump(found, held, _PROTOCOL)
    except (ValueError, RecursionError) as error:
        where = getattr(error, "pos", 0)
        raise RefusedError(f"the JSON does not decode: {error}", where) from None
    held.seek(0)
    return held


class _Objects:
    """Makes each object of a JSON text as it ends."""

    def __init__(self) -> None:
        self._frames: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}
        """Frames by content: equal ones are one object."""

    def made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice in one object")
        if "line" in found and "filename" in found:
            try:
                return self._frames.setdefault(tuple(pairs), found)
            except TypeError:  # it holds a list or an object
                return found
        for key in _PAIRS:
            pair = found.get(key)
            if type(pair) is list and len(pair) == 2:
                found[key] = tuple(pair)
        return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
