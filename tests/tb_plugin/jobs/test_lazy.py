"""Values are made at the first question, and kept."""

from __future__ import annotations

import mmap
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.cache import held_bytes
from memboard.tb_plugin.jobs.lazy import LazyCache

SOON_S = 60.0


def test_whoever_asks_meanwhile_gets_the_one_that_is_being_made():
    kept, begun, may_end, made = LazyCache(), threading.Event(), threading.Event(), []

    def slowly() -> object:
        begun.set()
        assert may_end.wait(SOON_S)
        made.append(object())
        return made[-1]

    found: list[object] = []
    askers = [
        threading.Thread(target=lambda: found.append(kept.get("one", slowly)))
        for _ in range(4)
    ]
    for asker in askers:
        asker.start()
    assert begun.wait(SOON_S)
    may_end.set()
    for asker in askers:
        asker.join(SOON_S)
    assert len(made) == 1
    assert found == made * 4


def test_one_that_takes_long_keeps_nobody_from_the_others():
    kept, begun, may_end = LazyCache(), threading.Event(), threading.Event()

    def slowly() -> str:
        begun.set()
        assert may_end.wait(SOON_S)
        return "slow"

    asker = threading.Thread(target=lambda: kept.get("slow", slowly))
    asker.start()
    assert begun.wait(SOON_S)
    assert kept.get("other", lambda: "quick") == "quick"
    may_end.set()
    asker.join(SOON_S)
    assert kept.get("slow", lambda: "again") == "slow"


def test_what_is_made_of_others_may_ask_for_them():
    kept = LazyCache()
    assert kept.get("whole", lambda: kept.get("part", lambda: 1) + 1) == 2
    assert kept.get("part", lambda: 7) == 1


def test_what_could_not_be_made_is_tried_again():
    kept = LazyCache()
    with pytest.raises(ZeroDivisionError):
        kept.get("one", lambda: 1 // 0)
    assert kept.get("one", lambda: "there") == "there"


@dataclass
class Parts:
    """Something that leads to others."""

    parts: Any


def test_what_is_held_counts_once_however_it_is_reached():
    array, text = np.zeros(1000), "x" * 500
    file = np.frombuffer(mmap.mmap(-1, 8000), np.uint8)
    seen = np.broadcast_to(np.int64(1), 10**9)
    whole = Parts({"a": [array, array[5:], Parts(array)], "b": (file, seen, 1.5, None)})
    circle: list[Any] = [whole]
    circle.append(circle)
    assert held_bytes(circle) == array.nbytes
    assert 500 < held_bytes([("text", text), 7]) < 1000
    kept = LazyCache()
    kept.get("array", lambda: array)
    assert held_bytes(Parts(kept)) == array.nbytes
    deep: Any = array
    for _ in range(100_000):
        deep = [deep]
    assert held_bytes(deep) == array.nbytes
