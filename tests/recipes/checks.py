"""What must work once a recipe was applied: `python -m tests.recipes.checks RECIPE`.

It runs in a copy of the repository with the recipe's change in it, one process for each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

import memboard as mb
from memboard.collector.format.columns import GARBAGE, Column
from memboard.tb_plugin.contract.typescript import TARGET
from tests.builders import RunBuilder
from tests.kineto_files import trained
from tests.made_snapshots import everything
from tests.routes.asked import QUESTIONS
from tests.routes.asking import Plugin, command

NUM_STEPS = 40


def answer(logdir: Path, route: str) -> dict[str, Any]:
    """The answer of a route about the only run of a logdir."""
    plugin = Plugin(logdir)
    (run,) = plugin.ask("runs", {})["answer"]["runs"]
    response = plugin.ask(route, {"run": run["id"]})
    assert response["status"] == 200, response
    return response["answer"]


def report(logdir: Path) -> str:
    """The text of `memboard report`."""
    return command("report", str(logdir))["out"]


def record(logdir: Path, **settings: Any) -> None:
    with mb.record(str(logdir), **settings) as recorder:
        for _ in range(3):
            recorder.step()


def build(logdir: Path, *extra: Column, **columns: Any) -> None:
    """A recorded run of one rank with these columns."""
    rank = RunBuilder(logdir / "exp").rank(0, world_size=1)
    rss = [float(1 << 30)] * NUM_STEPS
    rank.steps(range(NUM_STEPS), extra=extra, rss_bytes=rss, **columns)
    rank.close()


def source(logdir: Path) -> None:
    """It records a value, and the Timeline offers and draws it."""
    record(logdir / "exp")
    series = answer(logdir, "timeline")["available"]
    (mine,) = (one for one in series if one["key"] == "step/num_page_faults")
    assert mine["label"] == "Page faults"
    (run,) = Plugin(logdir).ask("runs", {})["answer"]["runs"]
    words = {"run": run["id"], "series": mine["key"]}
    drawn = Plugin(logdir).ask("timeline", words)["answer"]
    assert drawn["series"]["key"] == mine["key"]


def fact(logdir: Path) -> None:
    """It stands in the Overview's answer and in the report, with one value."""
    open_files = Column(name="process_num_fds", unit="count", group="process")
    build(logdir, open_files, process_num_fds=[*range(NUM_STEPS - 1), 7])
    headlines = answer(logdir, "overview")["headlines"]
    (mine,) = (one for one in headlines if one["key"] == "open_files")
    assert (mine["value"], mine["unit"]) == (NUM_STEPS - 2, "count")
    (line,) = (one for one in report(logdir).splitlines() if "Open files" in one)
    assert f" {NUM_STEPS - 2} " in line


def finding(logdir: Path) -> None:
    """It stands in the answer and in the report, and has a case among the sentences."""
    build(logdir, *GARBAGE, gc_full_collections=range(NUM_STEPS))
    findings = answer(logdir, "findings")["findings"]
    (mine,) = (one for one in findings if one["key"] == "frequent_collections")
    assert mine["sentence"] in " ".join(report(logdir).split())

    from tests.tb_plugin.finding_cases import CASES, declared

    assert "frequent_collections" in declared() & CASES.keys()


def column(logdir: Path) -> None:
    """It is sent with its words and values."""
    trained().write(logdir / "host_0.100.pt.trace.json")
    columns = answer(logdir, "kernels")["table"]["columns"]
    sent = {one["key"]: one["numbers"] for one in columns}
    (mine,) = (one for one in columns if one["key"] == "excess_us")
    assert mine["title"] == "Excess"
    assert mine["numbers"].tolist() == (sent["max_us"] - sent["mean_us"]).tolist()


def page(logdir: Path) -> None:
    """Its route answers, and its response is a type of the page's source."""
    build(logdir)
    table = answer(logdir, "attempts")["table"]
    assert [one["key"] for one in table["columns"]] == ["attempt", "num_ranks", "ended"]
    assert "readonly attempts: AttemptsResponse;" in TARGET.read_text(encoding="utf-8")
    assert "attempts" in {one.route for one in QUESTIONS}

    from tests.house import parts_not_found

    assert list(parts_not_found()) == []


def format(logdir: Path) -> None:  # noqa: A001  # the recipe's name
    """A file of it is found, named by its rank, and read as its pickle would be."""
    snapshot = {k: v for k, v in everything().items() if k != "from_the_future"}
    path = logdir / "memory_snapshot_rank3.msgpack"
    path.write_bytes(msgspec.msgpack.encode(snapshot))
    (file,) = answer(logdir, "snapshot_files")["files"]
    assert (file["reference"]["rank"], file["problem"]) == (3, ""), file
    assert file["peak_bytes"] > 0


def setting(logdir: Path) -> None:
    """It is accepted as a keyword and as a variable, and does what it says."""
    record(logdir / "exp", rss=False)
    missing = answer(logdir, "overview")["missing"]
    (mine,) = (one for one in missing if "rss" in str(one["sources"]).lower())
    assert mine["status"] == "off"
    os.environ["MEMBOARD_RSS"] = "false"
    assert mb.load(None).rss is False


CHECKS = {
    one.__name__: one for one in (source, fact, finding, column, page, format, setting)
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        CHECKS[sys.argv[1]](Path(folder))
    print(json.dumps(sys.argv[1]))
