"""Tables that hold anything: every route about a history answers, or says what is wrong."""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memboard.collector.format.names import IMPORT_JOB
from memboard.collector.format.snapshots import tables_of
from tests.builders import RunBuilder
from tests.simulate import Form
from tests.tb_plugin.client import answered
from tests.tb_plugin.pages.history_runs import PICTURES, Asked, trained

EDGES = (
    0,
    1,
    -1,
    511,
    2**31 - 1,
    2**31,
    2**47,
    2**48,
    2**48 + 1,
    2**53,
    2**62,
    2**63 - 1,
    2**63 - 512,
    -(2**63),
    -(2**62),
    0x7F0000000000,
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
        if how == "short":
            table.update(
                {key: column[: len(column) // 2] for key, column in table.items()}
            )
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
    return values


@settings(suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.data())
def test_every_route_answers_whatever_the_tables_hold(data):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        rank = RunBuilder(Path(folder) / "exp").rank(0, job=f"{IMPORT_JOB}x")
        entry = rank.capture("history", "", iteration=0, tables=broken(data))
        rank.close()
        name = f"0-{rank.header.attempt}-{entry.offset}"
        asked = Asked(Path(folder), history=name)
        if asked.opened()["state"] == "failed":
            return
        for route in ("findings", "rank_histories"):
            answered(
                lambda route=route: asked.get(route),
                lambda found: not found["still_reading"],
            )
        for route in (*PICTURES, "compare"):
            answer = asked.raw(route, **data.draw(queries))
            assert answer.status_code in (200, 400, 404), answer.data
