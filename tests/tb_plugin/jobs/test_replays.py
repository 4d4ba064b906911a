"""Replays come back the same from the cache; anything else is made again."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from memboard.tb_plugin.contract.parameters import parse
from memboard.tb_plugin.facts.histories.description import facts_of
from memboard.tb_plugin.jobs import replays as module
from memboard.tb_plugin.jobs.open_history import OpenHistory
from memboard.tb_plugin.jobs.replays import CACHED_AS, read_replays, write_replays
from memboard.tb_plugin.server.routes import query_of
from memboard.tb_plugin.worker.cache import ColumnCache, FileKey
from memboard.tb_plugin.worker.columns import open_columns, write_columns
from tests.simulate import Form, oom_case
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    Modelled,
    needs_real,
    operations,
    real,
)
from tests.tb_plugin.jobs.replay_results import assert_same, fresh, results
from tests.tb_plugin.pages.history_runs import PICTURES, trained, view_of

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.snapshots.snapshot import Snapshot

KEY = FileKey(1, 2, 3, 4)
COLOURS = ("category", "module", "stack", "age", "stream", "pool")


@pytest.fixture(autouse=True)
def keeps_all(monkeypatch):
    monkeypatch.setattr(module, "MIN_EVENTS", 0)


@pytest.fixture
def cache(tmp_path):
    return ColumnCache(tmp_path)


def simulated() -> Snapshot:
    return snapshot_of(tables_of(trained(3000, graph_pool=True).snapshot(Form())))


def again(cache: ColumnCache, snapshot: Snapshot) -> OpenHistory:
    """The same from what is kept."""
    known = read_replays(cache, KEY, snapshot)
    assert known or not snapshot.devices
    return OpenHistory(snapshot, key=(), replays=known)


def assert_the_same_again(cache: ColumnCache, snapshot: Snapshot) -> None:
    """That a replay which was written is read as it was made."""
    made = fresh(snapshot)
    write_replays(cache, KEY, made)
    mapped = again(cache, snapshot)
    for one, other in zip(results(made), results(mapped), strict=True):
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)


def test_a_simulated_training_is_the_same(cache):
    assert_the_same_again(cache, simulated())


def test_histories_with_errors_and_several_devices_are_the_same(cache):
    for cause, seed in (("fragmented", 3), ("growth", 4)):
        case = oom_case(cause, seed)  # type: ignore[arg-type]  # these words
        assert_the_same_again(cache, snapshot_of(tables_of(case.snapshot())))


@pytest.mark.parametrize("seed", range(6))
def test_what_an_allocator_did_is_the_same(cache, seed):
    assert_the_same_again(
        cache, Modelled(operations(seed, 150), max_entries=60).snapshot
    )


def test_a_snapshot_without_anything_is_the_same(cache):
    assert_the_same_again(
        cache, snapshot_of(tables_of({"segments": [], "device_traces": []}))
    )
    event = {"action": "snapshot", "addr": 0, "size": 0, "stream": 0}
    dump = {"segments": [], "device_traces": [[event], [event]]}
    assert_the_same_again(cache, snapshot_of(tables_of(dump)))


@needs_real
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recorded_snapshots_are_the_same(cache, name):
    assert_the_same_again(cache, real(name))


@pytest.mark.parametrize("name", PICTURES)
def test_every_route_answers_the_same(cache, name):
    snapshot = simulated()
    made = fresh(snapshot)
    write_replays(cache, KEY, made)
    sizes = {"px": "200", "rows": "100"}
    query = {**sizes, "moment": "1500", "life": "40", "e0": "100", "e1": "2500"}
    queries = [query, {**query, "stream": "0", "axis": "time"}]
    if name == "allocations":
        queries += [{**query, "colour": colour} for colour in COLOURS]
    for parameters in queries:
        request = parse(query_of(name), parameters)
        answer = view_of(name)(made, request)
        assert_same(answer, view_of(name)(again(cache, snapshot), request))
    assert_same(facts_of(made), facts_of(again(cache, snapshot)))


# -- what is not right ----------------------------------------------------------------


def rewritten(cache: ColumnCache, change: Any) -> None:
    """The kept file as something else wrote it: whole, but with something changed."""
    found = open_columns(cache.path(KEY, CACHED_AS))
    tables = {
        name: {
            key: np.array(c) if isinstance(c, np.ndarray) else c for key, c in t.items()
        }
        for name, t in found.items()
    }
    meta = msgspec.to_builtins(found.meta)
    change(tables, meta)
    write = partial(write_columns, tables=tables, meta=meta, as_they_are=True)
    cache.put(KEY, CACHED_AS, write)


def put(table: str, column: str, row: int, value: int) -> Any:
    def change(tables: Any, meta: Any) -> None:
        tables[table][column][row] = value

    return change


CHANGES = {
    "of another file": lambda _, meta: meta.update(key=[9, 9, 9, 9]),
    "of an older version": lambda _, meta: meta.update(version="0.0"),
    "of another form": lambda _, meta: meta.pop("devices"),
    "of another device": lambda _, meta: meta["devices"][0].update(device=3),
    "of a device twice": lambda _, meta: meta["devices"].append(meta["devices"][0]),
    "without a level": lambda tables, _: tables["levels 0"].pop("active"),
    "without where levels begin": lambda _, meta: meta["devices"][0]["first"].clear(),
    "without allocations": lambda tables, _: tables.pop("lives 0"),
    "with texts for numbers": lambda tables, _: tables["lives 0"].update(
        size=("x",) * len(tables["lives 0"]["size"])
    ),
    "with floats for numbers": lambda tables, _: tables["lives 0"].update(
        size=tables["lives 0"]["size"].astype(np.float64)
    ),
    "with a column cut short": lambda tables, _: tables["lives 0"].update(
        gone=tables["lives 0"]["gone"][:-1]
    ),
    "with levels cut short": lambda tables, _: tables["levels 0"].update(
        active=tables["levels 0"]["active"][:-1]
    ),
    "with a birth behind the end": put("lives 0", "born", -1, 10**6),
    "with a birth out of order": put("lives 0", "born", -1, 0),
    "with an end before all": put("lives 0", "gone", 0, -2),
    "with a stack that is not there": put("lives 0", "stack", 5, 10**6),
    "with a mark behind the end": put("marks 0", "moment", 0, 10**6),
    "with a label that is not there": put("marks 0", "label", 0, 10**6),
    "with a category that is not there": put("attribution 0", "category", 0, 100),
    "with evidence that is not there": put("attribution 0", "evidence", 0, -1),
    "with a tensor that is not there": lambda tables, _: tables["attribution 0"].update(
        tensor=np.zeros(len(tables["attribution 0"]["category"]), np.int64)
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_whole_file_that_does_not_fit_is_made_again(cache, what):
    snapshot = simulated()
    made = fresh(snapshot)
    write_replays(cache, KEY, made)
    assert len(made.device(0).marks) > 0
    rewritten(cache, CHANGES[what])
    assert read_replays(cache, KEY, snapshot) == {}
    assert_the_same_again(cache, snapshot)


def test_a_file_of_another_snapshot_is_made_again(cache):
    write_replays(cache, KEY, fresh(simulated()))
    other = snapshot_of(tables_of(trained(500).snapshot(Form())))
    assert read_replays(cache, KEY, other) == {}


# -- a cache that does not work -------------------------------------------------------


class ReadOnly(ColumnCache):
    """Where nothing can be written."""

    def put(self, key, made, write):
        raise OSError(errno.EROFS, "Read-only file system")


def test_where_nothing_can_be_written_what_is_there_is_still_read(tmp_path):
    snapshot = simulated()
    cache = ReadOnly(tmp_path)
    write_replays(cache, KEY, fresh(snapshot))
    assert read_replays(cache, KEY, snapshot) == {}
    write_replays(ColumnCache(tmp_path), KEY, fresh(snapshot))
    assert read_replays(cache, KEY, snapshot)
