"""Bad traces, through every route: each answers, says what is wrong, and hides nothing else."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.kineto_files import KinetoFile, trained
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.profiled import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

DAY_US = 24 * 3600 * 10**6
MARKUP = '<img src=x onerror="alert(1)"></script>{{7*7}}\u202e'
PROFILES = ("profile", "module_times", "distributed", "distributed_heatmap")


def text_of(made: KinetoFile) -> bytes:
    return json.dumps({**made.head, "traceEvents": made.events}).encode()


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A training whose events were all changed."""
    made = trained()
    for event in made.events:
        change(event)
    return text_of(made)


def without(*names: str) -> bytes:
    def change(event: dict[str, Any]) -> None:
        for name in names:
            event.pop(name, None)

    return changed(change)


def with_args(name: str, value: Any) -> bytes:
    def change(event: dict[str, Any]) -> None:
        if name in event.get("args", {}):
            event["args"][name] = value

    return changed(change)


def with_word(word: bytes) -> bytes:
    """A word that is no JSON where numbers of kernels are."""
    return with_args("blocks per SM", "@").replace(b'"@"', word)


def threads_by_text() -> bytes:
    def change(event: dict[str, Any]) -> None:
        event["pid"], event["tid"] = (
            ("Spans", "") if "dur" in event else ("Traces", "x")
        )

    return changed(change)


def long_windows() -> bytes:
    """A step of a day, between steps as they should be, and a mark far behind."""
    made = trained()
    made.step(8, 20_000, DAY_US)
    made.slice("aten::mm", 30_000, DAY_US // 2)
    made.step(9, 20_000 + DAY_US, 1000)
    for at in (20_010, 20_020, DAY_US + 20_010, DAY_US + 20_020):
        made.kernel("sgemm", at, at + 100, 10)
    end = {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "s": "g"}
    made.events.append({**end, "ts": 40 * DAY_US})
    return text_of(made)


def deep() -> bytes:
    """1,100 operators in each other; in the last a launch and an allocation."""
    made = KinetoFile()
    made.device()
    made.step(1, 0, 5000)
    for at in range(1100):
        made.slice(f"op{at % 7}", 1 + at, 4000 - 2 * at, **{"Input Dims": [[at % 3]]})
    made.kernel("sgemm", 1600, 1700, 30)
    made.memory(1610, 4096, 77, 4096)
    return text_of(made)


def many_devices() -> bytes:
    made = trained()
    for index, device in enumerate((64, 2**31 - 1, 2**31, 10**30, -5)):
        made.kernel(f"on {device}", 10_010 + 10 * index, 10_700, 50, device=device)
        made.memory(10_800 + index, 512, 900 + index, 512, device=device)
    return text_of(made)


def zero_steps() -> bytes:
    made = trained()
    for event in made.events:
        if event["name"].startswith("ProfilerStep#"):
            event["dur"] = 0
    return text_of(made)


BAD: dict[str, bytes] = {
    "truncated": text_of(trained())[:-400],
    "gzip truncated": gzip.compress(text_of(trained()))[:-40],
    "not JSON": b"PK\x03\x04 this is no trace",
    "empty": b"",
    "raw backslashes": with_args("Process Group Name", "@").replace(
        b'"@"', b'"C:\\Users\\x\\"'
    ),
    "N/A": with_word(b"N/A"),
    "NaN": with_word(b"NaN"),
    "Infinity": with_word(b"-Infinity"),
    "no category": without("cat"),
    "no name": without("name"),
    "neither": without("cat", "name", "pid", "tid"),
    "no arguments": without("args"),
    "texts as threads": threads_by_text(),
    "negative durations": changed(lambda event: event.update(dur=-5)),
    "no durations": without("dur"),
    "no times": without("ts"),
    "the same time": changed(lambda event: event.update(ts=10_000)),
    "deep": deep(),
    "steps without length": zero_steps(),
    "devices": many_devices(),
    "a day": long_windows(),
    "markup": changed(lambda event: event.update(name=MARKUP)),
    "markup of devices": text_of(trained()).replace(
        b"Tesla V100", b"<script>x</script>"
    ),
    "large numbers": with_args("correlation", 2**70),
    "no numbers": with_args("Bytes", "many"),
    "a list of nothing": b"[]",
    "no events": b'{"traceEvents": []}',
    "nested": b'{"traceEvents": [%b]}' % (b"[" * 300_000 + b"]" * 300_000),
    "lists as events": b'{"traceEvents": [%b]}'
    % b", ".join(json.dumps(trained().events[at::5]).encode() for at in range(5)),
    "twice": b'{"traceEvents": [], %b' % text_of(trained())[1:],
}
REFUSED = frozenset({"not JSON", "empty", "nested", "lists as events"})


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    """A run for each, with a good trace of an earlier cycle beside it."""
    logdir = tmp_path_factory.mktemp("logs")
    for name, data in BAD.items():
        folder = logdir / name.replace("/", "_")
        trained().write(folder / "host_0.100.pt.trace.json")
        end = ".gz" if data[:2] == b"\x1f\x8b" else ""
        (folder / f"host_0.200.pt.trace.json{end}").write_bytes(data)
    return Page(logdir)


def asked(page: Page, bad: str, route: str, **query: Any) -> dict[str, Any]:
    """An answer once all it needs is open or failed."""

    def is_open(answer: dict[str, Any]) -> bool:
        states = [one["state"] for one in answer["sources"]] if route == "trace" else []
        states += [answer["choice"]["state"]] if "choice" in answer else []
        is_exact = answer.get("exact", True) and not answer.get("num_opening")
        return "opening" not in states and is_exact

    name = bad.replace("/", "_")
    return answered(
        lambda: page.get(f"/{route}", run=page.run_id(name), **query), is_open
    )


def source_of(page: Page, name: str, cycle: int) -> str:
    traces = asked(page, name, "profile")["choice"]["traces"]
    (found,) = [one["id"] for one in traces if one["cycle"] == cycle]
    return found


@pytest.mark.parametrize("name", BAD)
def test_every_view_of_a_bad_trace_answers(page, name):
    source = source_of(page, name, 2)
    of = {"source": source}
    choice = asked(page, name, "profile", **of)["choice"]
    assert choice["state"] == ("failed" if name in REFUSED else "ready")
    problem = choice["problem"]
    assert (problem is not None) == (name in REFUSED)
    if problem is not None:
        assert problem["what"]
        assert problem["remedy"]
        assert "200.pt.trace.json" in problem["path"]
    for route in PROFILES:
        asked(page, name, route, **of)
    for by in ("name", "shapes"):
        table = asked(page, name, "operators", by=by, **of)
        for operator in columns_of(table["table"])["name"][:3]:
            asked(page, name, "operator", name=operator, **of)
    for by in ("name", "properties"):
        asked(page, name, "kernels", by=by, **of)
    memory = asked(page, name, "operator_memory", **of)
    for device in memory["devices"]:
        for charge in ("allocating", "freeing"):
            key = device["key"]
            asked(page, name, "operator_memory", device=key, charge=charge, **of)
            asked(page, name, "operator_memory", device=key, t0=0, t1=0, **of)
    trace = asked(page, name, "trace", cycle=2)
    base, end = int(trace["base_ns"]), int(trace["end_ns"])
    own = [one for one in trace["tracks"] if one["num_slices"]]
    tracks = ";".join(f"{source}:{one['index']}" for one in own)
    for t0, t1 in (
        (base, base + end),
        (base, base),
        (base + end // 2, base + 10 * end),
    ):
        window = {"tracks": tracks, "t0": t0, "t1": t1}
        for route in ("trace_slices", "trace_range", "trace_search"):
            asked(page, name, route, text="a", **window)
    if own:
        asked(page, name, "trace_slice", source=source, row=0)


@pytest.mark.parametrize("name", BAD)
def test_a_trace_that_shows_nothing_says_why(page, name):
    """The page is never empty without a word."""
    of = {"source": source_of(page, name, 2)}
    choice = asked(page, name, "profile", **of)["choice"]
    (source,) = asked(page, name, "trace", cycle=2)["sources"]
    if choice["state"] == "failed":
        assert source["problem"]["what"] == choice["problem"]["what"]
        return
    shown = asked(page, name, "trace", cycle=2)["tracks"]
    assert any(one["num_slices"] for one in shown) or any(
        "This trace is empty" in one["what"] and not one["salvaged"]
        for one in choice["problems"]
    )
    assert any(one["num_slices"] for one in shown) or source["notes"]


def test_what_refused_and_doubled_traces_say(page):
    said = {}
    for name in ("nested", "lists as events", "twice"):
        of = {"source": source_of(page, name, 2)}
        choice = asked(page, name, "profile", **of)["choice"]
        said[name] = (choice["problem"] or choice["problems"][0])["what"]
    assert "values nested deeper than 500 levels" in said["nested"]
    assert "holds no events but lists" in said["lists as events"]
    assert "2 lists of events; all of them are shown" in said["twice"]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_changes_nothing_of_a_good_one_beside_it(page, name):
    answer = asked(page, name, "profile", source=source_of(page, name, 1))
    assert answer["choice"]["state"] == "ready"
    assert answer["step"].tolist() == [5, 6, 7]
    (kernels,) = (one["ms"] for one in answer["parts"] if one["role"] == "kernel")
    share = kernels.sum() / answer["duration_ms"].sum()
    assert share == pytest.approx(900 / 2990, abs=0.01)


def test_steps_without_length_have_the_device_work_they_launched_or_none(page):
    of = {"source": source_of(page, "steps without length", 2)}
    answer = asked(page, "steps without length", "profile", **of)
    assert len(answer["step"])
    assert (answer["duration_ms"] >= 0).all()
    assert all(np.isfinite(part["ms"]).all() for part in answer["parts"])


def test_devices_of_any_number_are_shown(page):
    of = {"source": source_of(page, "devices", 2)}
    answer = asked(page, "devices", "profile", **of)
    found = columns_of(answer["devices"])
    names = [name.partition(" · ")[0] for name in found["device"]]
    devices = dict(zip(names, found["num_kernels"], strict=True))
    assert devices["GPU 0"] == 6
    assert devices["GPU 64"] == devices[f"GPU {2**31 - 1}"] == 1
    keys = {
        one["key"] for one in asked(page, "devices", "operator_memory", **of)["devices"]
    }
    assert {"1:0", "1:64", f"1:{2**31 - 1}"} <= keys


def test_a_step_of_a_day_is_as_long_as_it_says(page):
    answer = asked(page, "a day", "profile", source=source_of(page, "a day", 2))
    at = answer["step"].tolist().index(8)
    assert answer["duration_ms"][at] == pytest.approx(DAY_US / 1000)


def test_operators_in_each_other_1100_deep_are_all_counted(page):
    of = {"source": source_of(page, "deep", 2)}
    table = columns_of(asked(page, "deep", "operators", **of)["table"])
    assert table["num_calls"].sum() == 1100
    at = table["name"].index("op2")  # the innermost, 1,099, is op0
    assert table["host_total_ms"][at] > table["host_self_ms"][at]
    rows = columns_of(asked(page, "deep", "operator_memory", **of)["operators"])
    assert set(rows["name"]) == {f"op{at}" for at in range(7)}
    assert (rows["increase_bytes"] == 4096).all()
    assert rows["self_increase_bytes"].sum() == 4096


def test_markup_is_a_name_like_any_other(page):
    of = {"source": source_of(page, "markup", 2)}
    assert columns_of(asked(page, "markup", "operators", **of)["table"])["name"] == [
        MARKUP
    ]
    devices = source_of(page, "markup of devices", 2)
    answer = asked(page, "markup of devices", "profile", source=devices)
    devices = columns_of(answer["devices"])["device"]
    assert devices == ["GPU 0 · <script>x</script>"]


@pytest.mark.parametrize("name", ["truncated", "gzip truncated"])
def test_what_a_broken_off_file_still_has_is_shown_and_said_so(page, name):
    of = {"source": source_of(page, name, 2)}
    assert asked(page, name, "profile", **of)["step"].tolist()[:2] == [5, 6]
    for route in ("profile", "operators", "kernels", "module_times", "operator_memory"):
        problems = asked(page, name, route, **of)["choice"]["problems"]
        assert any("incomplete" in one["what"] for one in problems), route
