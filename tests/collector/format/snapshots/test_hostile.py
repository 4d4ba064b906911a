"""Tables that no encoder made: refused in words, never an endless or odd answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.snapshots import rebuilt, tables_of
from tests.made_snapshots import everything


def changed(table, column, values):
    tables = {name: dict(columns) for name, columns in tables_of(everything()).items()}
    tables[table][column] = values
    return tables


@pytest.mark.parametrize(
    ("table", "column", "at", "value"),
    [
        ("events", "action", 0, 10**6),
        ("events", "action", 0, -2),
        ("events", "frames", 1, 10**6),
        ("stack_frames", "frame", 0, 10**6),
        ("stacks", "num_frames", 0, 10**12),
        ("stacks", "num_frames", 0, -1),
        ("traces", "num_events", 0, 4),
        ("traces", "num_events", 0, -9),
        ("segments", "num_blocks", 0, 2**62),
    ],
)
def test_numbers_that_lead_nowhere(table, column, at, value):
    values = tables_of(everything())[table][column].copy()
    values[at] = value
    with pytest.raises(CorruptError):
        rebuilt(changed(table, column, values))


def test_layouts_that_claim_too_much():
    layout = tables_of(everything())["layout"]
    twice = {name: tuple(column) * 2 for name, column in layout.items()}
    tables = {**tables_of(everything()), "layout": twice}
    with pytest.raises(CorruptError, match="twice"):
        rebuilt(tables)
    many = tuple(f"k{n}" for n in range(10_000))
    tables["layout"] = dict.fromkeys(("table", "key", "column", "kind"), many)
    tables["layout"]["optional"] = np.zeros(10_000, np.int64)
    with pytest.raises(CorruptError, match="too many"):
        rebuilt(tables)


@pytest.mark.parametrize("kind", ["stack", "pair", "float", "bool", "text", "strange"])
def test_kinds_that_do_not_fit(kind):
    kinds = list(tables_of(everything())["layout"]["kind"])
    with pytest.raises(CorruptError):
        rebuilt(changed("layout", "kind", tuple(kind for _ in kinds)))


@pytest.mark.parametrize("table", tables_of(everything()))
def test_tables_that_are_missing(table):
    tables = dict(tables_of(everything()))
    del tables[table]
    with pytest.raises(CorruptError):
        rebuilt(tables)


@given(st.data())
def test_any_change_is_refused_or_read(data):
    tables = {name: dict(columns) for name, columns in tables_of(everything()).items()}
    for _ in range(data.draw(st.integers(1, 3))):
        table = data.draw(st.sampled_from(sorted(tables)))
        column = data.draw(st.sampled_from(sorted(tables[table])))
        values = list(tables[table][column])
        if values:
            at = data.draw(st.integers(0, len(values) - 1))
            if isinstance(values[at], str):
                values[at] = data.draw(st.text(max_size=4))
                tables[table][column] = tuple(values)
            else:
                values[at] = data.draw(st.integers(-(2**63), 2**63 - 1))
                tables[table][column] = np.array(values, np.int64)
    try:
        back = rebuilt(tables)
    except CorruptError:  # and nothing else
        return
    assert isinstance(back, dict | list)
