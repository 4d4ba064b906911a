"""Runs with the memory of modules for the routes' tests, planted byte by byte."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.tb_plugin.analysis.module_logs import LogBuilder
from tests.tb_plugin.client import Page, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.builders import RunBuilder

META = {
    "backend": "fsdp2",
    "world": "shard 4",
    "root": "Net",
    "devices": ["cuda:0", "cpu"],
    "estimate": "",
    "incomplete": False,
    "inputs": "forward",
    "optimizers": 1,
    "torch": "2.13.0",
    "rounding_bytes": 512,
    "num_events_dropped": 0,
    "reasons": ["the tie of Net.head is listed once"],
}


def net(scale: int = 1, *, batch: int = 100) -> LogBuilder:
    """Two layers, one forward each; `batch` sets the activations, `scale` everything."""
    log = LogBuilder()
    root = log.module("Net")
    first, second = log.module("Net.a", root), log.module("Net.b", root)
    log.alloc(1000 * scale, "sharded_param", first)
    log.alloc(3000 * scale, "sharded_param", second)
    log.tick(5)
    log.at(root, "before_pre_forward")
    for child, scratch in ((first, 700), (second, 40)):
        log.at(child, "before_pre_forward")
        log.alloc(batch * scale, "activation", child)
        log.tick()
        log.alloc(scratch * scale, "temp", child)
        log.tick()
        log.alloc(-scratch * scale, "temp", child)
        log.tick()
        log.at(child, "after_post_forward")
    log.at(root, "after_post_forward")
    log.tick()
    log.at(-1, "before_optimizer")
    log.alloc(500 * scale, "optimizer", -1)
    log.tick()
    log.at(-1, "after_optimizer")
    return log


def record(
    run: RunBuilder,
    rank: int = 0,
    logs: tuple[LogBuilder, ...] | None = None,
    meta: dict[str, Any] | None = None,
    *,
    peak: int = 0,
    peaks: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """One rank that tracked some steps; `peaks` of steps differ from `peak`."""
    file = run.rank(rank)
    usual = peak or 1000
    file.steps(range(10), allocated_peak_bytes=[peaks.get(s, usual) for s in range(10)])
    for index, log in enumerate(logs if logs is not None else (net(),)):
        file.capture(
            tables=log.tables(),
            meta={**META, **(meta or {})},
            step=index + 2,
            iteration=index + 2,
            time_ns=1_780_000_100_000_000_000 + index * 10**9,
        )
    file.close()


def fqns(tree: dict) -> list[str]:
    """Whole names."""
    return list(tree["fqn"])


def columns(answer: dict, side: str = "") -> dict[str, list[float]]:
    """Bytes of categories by row; `side`: "baseline_"."""
    return {
        category["name"]: numbers_of(
            answer["table"], f"{side}{category['name']}_bytes"
        ).tolist()
        for category in answer["categories"]
    }


def headings(answer: dict) -> list[str]:
    """Titles of the columns that are shown."""
    return [column["title"] for column in answer["table"]["columns"] if column["title"]]


def modules(logdir, **query) -> dict:
    return Page(logdir).of_run("/modules", "exp", **query)


AFTER_FORWARD = {"state": "after_post_forward", "measure": "total"}
"""What torch's trackers print: the rank's total at a moment of each module's own."""


def assert_adds_up(got: dict) -> None:
    """Top-level rows and the rest are the moment's total; parents are sums."""
    split, parent = got["split"], got["tree"]["parent"]
    held, own = (numbers_of(got["table"], f"{of}_bytes") for of in ("held", "own"))
    assert not np.isnan(held).any()
    assert held[parent < 0].sum() == split["held_bytes"]
    assert split["held_bytes"] + split["unattributed_bytes"] == split["total_bytes"]
    for row in range(len(parent)):
        assert held[row] == own[row] + held[parent == row].sum()
    of_categories = np.sum(list(columns(got).values()), axis=0)
    assert of_categories.tolist() == held.tolist()
