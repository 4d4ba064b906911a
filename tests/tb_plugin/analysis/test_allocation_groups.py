"""Groups of allocations: everyone has one, and the largest their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.allocator import groups
from tests.tb_plugin.analysis.snapshots import lives_of, stacks_of
from tests.tb_plugin.analysis.test_forward_modules import forward

NUM_EVENTS = 100


rows = st.lists(
    st.tuples(
        st.integers(-1, 90), st.integers(0, 100), st.integers(0, 9), st.integers(-1, 29)
    ),
    max_size=60,
).map(lambda made: sorted((b, max(b + 1, g), s, k) for b, g, s, k in made))


@given(rows)
def test_the_largest_at_the_peak_have_groups_of_their_own(made):
    lives = lives_of(made)
    labels = [f"pool {at}" for at in range(30)]
    found = groups.by_row(lives, lives.stack, labels, 50, NUM_EVENTS)
    assert len(found.of_life) == len(lives)
    assert len(found.groups) <= groups.MAX_NAMED + 1
    keys = [group.key for group in found.groups]
    held: dict[str, int] = {}
    for born, gone, size, row in made:
        name = "unknown" if row < 0 else str(row)
        held.setdefault(name, 0)
        held[name] += size if born <= 50 < gone else 0
    for (_, _, _, row), group in zip(made, found.of_life.tolist(), strict=True):
        name = "unknown" if row < 0 else str(row)
        assert keys[group] == (name if name in keys else groups.OTHERS)
    named = [held[key] for key in keys if key != groups.OTHERS]
    left = [size for name, size in held.items() if name not in keys]
    assert named == sorted(named, reverse=True)
    assert not left or min(named) >= max(left)
    assert (groups.OTHERS in keys) == bool(left)


def test_lines_are_one_group_whatever_led_there():
    stacks = stacks_of(
        *[
            [forward(3), ("main", "/home/me/train.py", 1)],
            [forward(3), ("main", "/home/me/train.py", 2)],
            [forward(4)],
            [("void at::native::copy<int>(int)", "??", 0)],
        ]
    )
    lives = lives_of(
        [(0, 9, 5, 0), (1, 9, 5, 1), (2, 9, 7, 2), (3, 9, 1, 3), (4, 9, 2, -1)]
    )
    found = groups.by_stack(lives, stacks, 5, NUM_EVENTS)
    labels = [found.groups[group].label for group in found.of_life]
    assert labels == [
        "model.py:3 forward",
        "model.py:3 forward",
        "model.py:4 forward",
        "copy<int>",
        "no stack recorded",
    ]
    assert found.groups[0].stack == 0
    assert found.groups[int(found.of_life[4])].stack is None


def test_age_is_how_long_it_lived_in_time_or_events():
    lives = lives_of([(-1, 100, 1, 0), (0, 1, 1, 0), (0, 99, 1, 0), (98, 100, 1, 0)])
    clock = np.arange(NUM_EVENTS) * 10**6
    by_time = groups.by_age(lives, clock, NUM_EVENTS)
    assert [by_time.groups[group].label for group in by_time.of_life] == [
        "from before the recording",
        "1 to 10 s",
        "10 to 100 s",
        "1 to 10 s",
    ]
    by_event = groups.by_age(lives, None, NUM_EVENTS)
    assert [by_event.groups[group].label for group in by_event.of_life] == [
        "from before the recording",
        "under 10 events",
        "10 to 100 events",
        "under 10 events",
    ]
    none = groups.by_age(lives_of([(-1, 0, 1, 0)]), None, 0)
    assert none.of_life.tolist() == [0]


def test_every_category_has_the_colour_it_folds_into():
    found = groups.by_category(np.arange(len(CATEGORIES)))
    labels = [found.groups[group].category for group in found.of_life]
    assert labels[CATEGORIES.index("buffer")] == "param"
    assert labels[CATEGORIES.index("reduce_scatter")] == "comm"
    assert labels[CATEGORIES.index("bucket")] == "comm"
    assert labels[CATEGORIES.index("other")] == "unknown"


def test_the_largest_line_without_a_category_lies_apart():
    stacks = stacks_of(
        [forward(3), ("main", "/home/me/train.py", 1)],
        [forward(3), ("main", "/home/me/train.py", 2)],
        [forward(4)],
        [("void at::native::copy<int>(int)", "??", 0)],
    )
    param, unknown = map(CATEGORIES.index, ("buffer", "other"))
    lives = lives_of(
        [(0, 9, 5, 0), (1, 9, 5, 1), (2, 9, 9, 2), (3, 9, 80, 3), (4, 9, 8, -1)]
    )
    categories = groups.by_category(np.array([unknown] * 5))
    found = groups.with_site(categories, lives, stacks, 5)
    site = len(categories.groups)
    assert found.of_life.tolist() == [site, site, *categories.of_life[2:].tolist()]
    last = found.groups[site]
    assert (last.label, last.category, last.stack) == (
        "model.py:3 forward",
        "unknown",
        0,
    )
    # What has a category is of no site; what holds little has no name of its own.
    known = groups.by_category(np.array([param, param, unknown, unknown, unknown]))
    assert groups.with_site(known, lives, stacks, 5).groups[-1].label == (
        "model.py:4 forward"
    )
    small = lives_of([(0, 9, 1, 0), (0, 9, 99, 3)])
    two = groups.by_category(np.array([unknown] * 2))
    assert groups.with_site(two, small, stacks, 5) is two
