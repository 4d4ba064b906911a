"""Tables that hold anything: every route about a history answers, or says what is wrong."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.format.snapshots import tables_of
from tb_plugin.analysis.snapshots.tables import SnapshotError, snapshot_of
from tb_plugin.contract.errors import RequestError
from tb_plugin.contract.parameters import parse
from tb_plugin.contract.routes import query_of
from tb_plugin.contract.wire import envelope
from tb_plugin.formats.snapshots.files.listing import FoundSnapshot
from tb_plugin.jobs.history_list import FoundHistory, reference_of_file
from tb_plugin.jobs.open_history import OpenHistory
from tb_plugin.pages.findings.judge import judge
from tb_plugin.pages.findings.of_error import Around, error_in_file
from tb_plugin.pages.histories.compare import Compared, CompareQuery, compare
from tb_plugin.pages.histories.histories import facts_of as rank_facts_of
from tb_plugin.pages.histories.history import facts_of
from tb_plugin.worker.cache import FileKey
from tests.simulate import Form
from tests.tb_plugin.pages.history_runs import PICTURES, trained, view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.api.compare import CompareResponse

EDGES = (
    *(0, 1, -1, 511, 2**31 - 1, 2**31, 2**47, 2**48, 2**48 + 1, 2**53, 2**62),
    *(2**63 - 1, 2**63 - 512, -(2**63), -(2**62), 0x7F0000000000),
)
TABLES = ("events", "segments", "blocks", "frames", "stacks", "stack_frames", "traces")
WORDS = ("", "oom", "segment_map", "ProfilerStep#7", "x\ud800", '{"step": 1e999}', "[1")
NUMBERS = ("-1", "0", "1", "250", "400", "401", str(2**31 - 1))
FLOATS = ("-1e18", "-5", "0", "1", "1e9", "1e18", "1e300")

QUERY: dict[str, tuple[str, ...]] = {
    "moment": NUMBERS,
    "axis": ("event", "time"),
    "order": ("category", "group", "allocation"),
    "colour": ("category", "module", "stack", "age", "stream", "pool"),
    **dict.fromkeys(("e0", "e1", "life", "count", "stream", "pool"), NUMBERS[1:]),
    **dict.fromkeys(("t0", "t1", "y0", "y1"), FLOATS),
    **dict.fromkeys(("px", "rows"), ("0", "1", "99", "8192")),
    "sort": ("address", "size", "free", "largest_free", "age"),
    "request": ("0", "1", str(2**59)),
    "actions": ("oom,alloc", "unknown"),
    "match": ("exact", "function"),
}
queries = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in QUERY.items()}
)
FILE = FoundSnapshot("f0", "/f", "f", FileKey(1, 1, 1, 1), 0)


@cache
def sound(graph_pool: bool) -> dict[str, dict[str, Any]]:
    rank = trained(400, graph_pool=graph_pool)
    return tables_of(rank.snapshot(Form()))


def broken(data: st.DataObject) -> dict[str, dict[str, Any]]:
    """Tables of a sound snapshot with some columns made of anything."""
    found = sound(data.draw(st.booleans()))
    tables = {name: dict(table) for name, table in found.items()}
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(1, 5))):
        table = tables[data.draw(st.sampled_from(TABLES))]
        name = data.draw(st.sampled_from(sorted(table)))
        how = data.draw(st.sampled_from(["edges", "some", "shuffled", "any", "short"]))
        table[name] = changed(table[name], how, random)
    if data.draw(st.integers(0, 3)) == 0:
        texts = list(tables["strings"]["text"])
        for row in random.integers(0, len(texts), 4):
            texts[row] = WORDS[random.integers(0, len(WORDS))]
        tables["strings"]["text"] = tuple(texts)
    return tables


def changed(column: Any, how: str, random: np.random.Generator) -> Any:
    if not isinstance(column, np.ndarray) or not len(column):
        return column
    values, edges = column.astype(np.int64), np.array(EDGES)
    if how == "edges":
        values[:] = random.choice(edges)
    elif how == "some":
        rows = random.integers(0, len(values), 1 + len(values) // 8)
        values[rows] = random.choice(edges, len(rows))
    elif how == "shuffled":
        values = random.permutation(values)
    elif how == "any":
        values = random.integers(-(2**63), 2**63 - 1, len(values))
    elif random.random() < 0.2:
        values = values[: len(values) // 2]
    return values


def answers(make: Callable[[], object]) -> None:
    """It is an answer that can be sent, or an error that says what is wrong."""
    with suppress(RequestError):
        assert envelope(make())


def pictured(name: str, history: OpenHistory, query: dict[str, str]) -> object:
    return view_of(name)(history, parse(query_of(name), query))


def compared(history: OpenHistory, query: dict[str, str]) -> CompareResponse:
    asked = parse(CompareQuery, query)
    found = FoundHistory("run", reference_of_file(FILE), "file", FILE)
    summary: Any = None
    a = Compared(summary, found, history, None, asked.moment)
    b = Compared(summary, found, history, None, None)
    return compare(a, b, asked)


@settings(
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)
@given(st.data())
def test_every_route_answers_whatever_the_tables_hold(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            history = OpenHistory(snapshot_of(broken(data)), key=())
        except SnapshotError:
            return
        answers(partial(facts_of, history))
        rank_facts_of(history)
        judged = judge(history)
        around = Around(1, (), set(), 1)
        found = FoundHistory("run", reference_of_file(FILE), "file", FILE)
        for error in judged.found.errors if judged.found else ():
            answers(partial(error_in_file, found, error, around))
        for name in PICTURES:
            answers(partial(pictured, name, history, data.draw(queries)))
        answers(partial(compared, history, data.draw(queries)))
