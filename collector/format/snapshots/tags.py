"""Our tags of allocations: an event's `user_metadata`.

The tag says which collected call an allocation belongs to, of those made on the thread
that trains; that of an `annotate` event, which tensor an allocation holds. Whatever does
not begin with our name is the program's own.
"""

from __future__ import annotations

import json
from typing import Any, Final

_NAME: Final = "memboard "


def tag_text(*, step: int, phase: str, function: str) -> str:
    """The tag of a call: `memboard {"step":12,"phase":"train","function":"step"}`."""
    data = {"step": step, "phase": phase, "function": function}
    return _NAME + json.dumps(data, separators=(",", ":"))


def annotation_text(category: str, tensor_name: str) -> str:
    """The annotation of a tensor: `memboard {"category":"param","name":"fc.weight"}`."""
    data = {"category": category, "name": tensor_name}
    return _NAME + json.dumps(data, separators=(",", ":"))


def is_tag(metadata: Any) -> bool:
    """Whether it is one of ours."""
    return isinstance(metadata, str) and metadata.startswith(_NAME)


def tag_data(metadata: Any) -> dict[str, Any] | None:
    """Step, phase and function of a tag; None where it is not one of ours."""
    data = _data(metadata)
    return data if isinstance(data.get("step"), int) else None


def annotation_data(metadata: Any) -> tuple[str, str] | None:
    """Category and name of an annotated tensor; None where it is not one of ours."""
    data = _data(metadata)
    category, tensor_name = data.get("category"), data.get("name")
    if not isinstance(category, str) or not isinstance(tensor_name, str):
        return None
    return category, tensor_name


def _data(metadata: Any) -> dict[str, Any]:
    """What one of ours says; nothing where it is not one."""
    if not is_tag(metadata):
        return {}
    try:
        data = json.loads(metadata[len(_NAME) :])
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
