"""The questions that a page asks of every route: the one place to change.

A word in braces is one that an earlier answer gave (`learn`); a question whose words
nothing gave is not asked, as no page asks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {
    "index.js": "/index.js",
    "app.html": "/app.html",
    "assets": "/assets/none.js",
    "docs": "/docs/none.md",
    "perfetto": "/perfetto/index.html",
}
"""Routes that hand out files of the page, and one of each."""

DROP = "drop"
"""The one route that takes a file."""


@dataclass(frozen=True)
class Question:
    """One request."""

    page: str
    """The golden file it belongs to."""
    route: str
    words: dict[str, str] = field(default_factory=dict)
    of_run: bool = True


def _ask(page: str, route: str, **words: str) -> Question:
    return Question(page, route, {"run": "{run}", **words})


_HISTORY = {"history": "{history}", "device": "{device}"}
_DRAWN = {"px": "1200", "rows": "600"}
_TRACKS = {"tracks": "{tracks}", "t0": "{t0}", "t1": "{t1}"}

QUESTIONS = (
    Question("overview", "runs", of_run=False),
    _ask("overview", "overview"),
    _ask("overview", "overview", rank="1"),
    _ask("overview", "findings"),
    _ask("overview", "peak_composition"),
    _ask("timeline", "timeline", px="1200"),
    _ask("timeline", "timeline", px="40", x="relative", series="{series}", ranks="0-1"),
    _ask("timeline", "heatmap", **_DRAWN),
    _ask("timeline", "host", px="1200"),
    _ask("steps", "steps", px="1200"),
    _ask("steps", "steps", px="20", rank="1"),
    _ask("steps", "step", step="{step}"),
    _ask("steps", "step_heatmap", **_DRAWN),
    _ask("steps", "stragglers"),
    _ask("calls", "functions"),
    _ask("calls", "functions", rank="1"),
    _ask("modules", "modules"),
    _ask("modules", "modules", window="{window}", rank="1", state="{module_state}"),
    _ask("modules", "module", window="{window}", module="{module}"),
    _ask("modules", "module_timeline", window="{window}", px="1200"),
    _ask("memory", "histories"),
    _ask("memory", "snapshot_files"),
    _ask("memory", "history", history="{history}"),
    _ask("memory", "stacks", history="{history}"),
    _ask("memory", "allocations", **_HISTORY, **_DRAWN),
    _ask("memory", "allocations", **_HISTORY, axis="time", order="stack", px="60"),
    _ask("memory", "allocation_holders", **_HISTORY, px="1200"),
    _ask("memory", "allocation_live", **_HISTORY, moment="{peak}"),
    _ask("memory", "allocation_live", **_HISTORY, moment="{last}"),
    _ask("memory", "allocation_block", **_HISTORY, life="{life}"),
    _ask("memory", "allocation_range", **_HISTORY, e0="0", e1="{last}"),
    _ask("segments", "segments", **_HISTORY),
    _ask("segments", "segments", **_HISTORY, moment="{last}", sort="free"),
    _ask("segments", "segment_timeline", **_HISTORY, **_DRAWN),
    _ask("segments", "allocator_events", **_HISTORY, count="8"),
    Question("compare", "run_table", of_run=False),
    _ask("compare", "compare_runs", rank="0", b_rank="1"),
    _ask("compare", "rank_histories", history="{history}"),
    _ask(
        "compare",
        "compare",
        **_HISTORY,
        b_run="{run}",
        b_history="{other_history}",
        b_device="{device}",
        b_moment="{last}",
    ),
    _ask("trace", "trace"),
    _ask("trace", "trace_slices", **_TRACKS, px="400"),
    _ask("trace", "trace_range", **_TRACKS),
    _ask("trace", "trace_range", **_TRACKS, by="track"),
    _ask("trace", "trace_search", tracks="{tracks}", text="a"),
    _ask("trace", "trace_search", tracks="{tracks}", only="instants"),
    _ask("trace", "trace_slice", source="{source}", row="{slice}"),
    _ask("trace", "trace_slice", source="{instant_source}", row="{instant}"),
    _ask("trace", "trace_reports"),
    _ask("trace", "trace_report", report="{report}"),
    _ask("trace", "traces"),
    _ask("trace", "trace_file", source="{file}"),
    _ask("trace", "trace_merged"),
    _ask("trace", "trace_idle"),
    _ask("trace", "trace_path"),
    _ask("time", "profile"),
    _ask("time", "operators"),
    _ask("time", "operators", by="shapes", sort="host_self_ms", top="5"),
    _ask("time", "operator", name="{operator}"),
    _ask("time", "kernels"),
    _ask("time", "operators", by="category"),
    _ask("time", "operators", columns="efficiency", top="5"),
    _ask("time", "module_times"),
    _ask("time", "operator_memory"),
    _ask("time", "compare_traces", source="{profiled}", b_source="{profiled}"),
    _ask("time", "distributed"),
    _ask("time", "distributed_heatmap", **_DRAWN),
)


def learn(route: str, answer: dict[str, Any], known: dict[str, str]) -> None:
    """Note what later questions need of an answer; the first answer of a route counts."""
    teach = _TEACHES.get(route)
    if teach is not None:
        for name, value in teach(answer).items():
            if value is not None:
                known.setdefault(name, str(value))


def _of_overview(answer: dict[str, Any]) -> dict[str, Any]:
    return {"step": answer["run"]["last_step"]}


def _of_timeline(answer: dict[str, Any]) -> dict[str, Any]:
    keys = [one["key"] for one in answer["available"]]
    return {"series": keys[-1] if keys else None}


def _of_modules(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["window"] is None:
        return {}
    return {
        "window": answer["window"],
        "module": answer["tree"]["fqn"][-1],
        "module_state": answer["states"][-1]["state"],
    }


def _of_histories(answer: dict[str, Any]) -> dict[str, Any]:
    ids = [one["reference"]["id"] for one in answer["histories"]]
    default = answer["default"]
    others = [one for one in ids if one != default]
    return {"history": default, "other_history": (others or [default])[0]}


def _of_history(answer: dict[str, Any]) -> dict[str, Any]:
    facts = answer["facts"]
    if facts is None or facts["default_device"] is None:
        return {}
    number = facts["default_device"]
    (device,) = [one for one in facts["devices"] if one["device"] == number]
    peaks = {one["level"]: one["moment"] for one in device["peaks"]}
    last = device["num_events"] - 1
    return {"device": number, "peak": peaks["active"], "last": max(last, 0)}


def _of_allocations(answer: dict[str, Any]) -> dict[str, Any]:
    lives = answer["lives"]
    if not len(lives["life"]):
        return {}
    return {"life": int(lives["life"][int(lives["size"].argmax())])}


def _of_trace(answer: dict[str, Any]) -> dict[str, Any]:
    if not answer["tracks"]:
        return {}
    by_source: dict[str, list[int]] = {}
    for track in answer["tracks"]:
        source = answer["sources"][track["source"]]["id"]
        by_source.setdefault(source, []).append(track["index"])
    tracks = ";".join(
        f"{source}:{','.join(map(str, rows))}" for source, rows in by_source.items()
    )
    base = int(answer["base_ns"])
    return {"tracks": tracks, "t0": base, "t1": base + int(answer["end_ns"])}


def _of_slices(answer: dict[str, Any]) -> dict[str, Any]:
    if not len(answer["row"]):
        return {}
    longest = int(answer["duration"].argmax())
    lane = int((answer["lane_start"] <= longest).nonzero()[0][-1])
    source = answer["lanes"][lane]["track"].rpartition(":")[0]
    return {"source": source, "slice": int(answer["row"][longest])}


def _of_search(answer: dict[str, Any]) -> dict[str, Any]:
    found = (answer["row"] < 0).nonzero()[0]
    if not len(found):
        return {}
    first = int(found[0])
    track = answer["tracks"][int(answer["track"][first])]
    return {
        "instant_source": track.rpartition(":")[0],
        "instant": int(answer["row"][first]),
    }


def _of_reports(answer: dict[str, Any]) -> dict[str, Any]:
    return {"report": answer["reports"][0]["id"]} if answer["reports"] else {}


def _of_files(answer: dict[str, Any]) -> dict[str, Any]:
    return {"file": answer["files"][0]["id"]} if answer["files"] else {}


def _of_operators(answer: dict[str, Any]) -> dict[str, Any]:
    names = answer["table"]["columns"][0]["texts"]
    return {"operator": names[0]} if names else {}


_TEACHES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "profile": lambda answer: {"profiled": answer["choice"]["source"]},
    "overview": _of_overview,
    "timeline": _of_timeline,
    "modules": _of_modules,
    "histories": _of_histories,
    "history": _of_history,
    "allocations": _of_allocations,
    "trace": _of_trace,
    "trace_slices": _of_slices,
    "trace_search": _of_search,
    "trace_reports": _of_reports,
    "traces": _of_files,
    "operators": _of_operators,
}
