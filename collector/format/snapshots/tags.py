"""The tag of our allocations: an event's `user_metadata`.

The tag says which collected call an allocation belongs to, of those made on the thread
that trains. Whatever does not begin with our name is the program's own.
"""

from __future__ import annotations

import json
from typing import Any, Final

_NAME: Final = "memboard "


def tag_text(*, step: int, phase: str, function: str) -> str:
    """The tag of a call: `memboard {"step":12,"phase":"train","function":"step"}`."""
    data = {"step": step, "phase": phase, "function": function}
    return _NAME + json.dumps(data, separators=(",", ":"))


def is_tag(metadata: Any) -> bool:
    """Whether it is one of ours."""
    return isinstance(metadata, str) and metadata.startswith(_NAME)


def tag_data(metadata: Any) -> dict[str, Any] | None:
    """Step, phase and function of a tag; None where it is not one of ours."""
    if not is_tag(metadata):
        return None
    try:
        data = json.loads(metadata[len(_NAME) :])
    except (ValueError, RecursionError):
        return None
    right = isinstance(data, dict) and isinstance(data.get("step"), int)
    return data if right else None
