"""Plain data as text and back, and text that is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.snapshots.plain_text import plain_text, plain_value

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


def shape(value):
    """Types all the way down: 1 == 1.0 == True, which equality does not tell apart."""
    if isinstance(value, dict):
        return dict, [(shape(key), shape(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shape(entry) for entry in value]
    return type(value)


@given(PLAIN)
def test_values_come_back_with_their_types(value):
    again = plain_value(plain_text(value))
    assert again == value
    assert shape(again) == shape(value)
    assert plain_text(value).isascii()


def test_floats_that_json_lacks():
    assert math.isnan(plain_value(plain_text(math.nan)))
    assert plain_value(plain_text([math.inf, -math.inf])) == [math.inf, -math.inf]


def test_of_other_objects_the_repr_is_kept():
    assert plain_value(plain_text({"device": range(3)})) == {"device": "range(0, 3)"}
    assert len(plain_text(range(10**400))) < 1100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"o": 1}',
        '{"o": {}, "t": []}',
        '{"z": 1}',
        '{"d": [[1]]}',
        '{"b": "xy"}',
        '{"i": 5}',
        '{"r": []}',
        '{"d": [[[], 1]]}',
        "[" * 100_000,
        "1" * 5000,
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(CorruptError):
        plain_value(text)
