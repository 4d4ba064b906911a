"""Out-of-memory errors among the findings of an answer or a report, as tests read them."""

from __future__ import annotations

from typing import Any

from memboard.tb_plugin.analysis.oom.case import NAMES


def errors_in(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Errors, and other ends that left a report about memory."""
    return [flat(one) for one in answer["findings"] if one["state"] is not None]


def flat(one: dict[str, Any]) -> dict[str, Any]:
    """A finding with its state and its figures, and the keys of what else it names."""
    keys = {name: key for key, name in NAMES.items()}
    return {
        **one,
        **one["state"],
        "also": [keys[name] for name in one["also"]],
        "figures": {number["key"]: number["value"] for number in one["evidence"]},
        "history": (one["place"] or {}).get("history"),
        "moment": (one["place"] or {}).get("moment"),
    }
