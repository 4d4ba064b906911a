"""Digests repeat notes."""

from __future__ import annotations

from itertools import pairwise

from memboard.collector.format.records import Note
from memboard.collector.writing.queues.notes import NoteQueue


def noted(kind, number):
    queue = NoteQueue()
    for at in range(number):
        queue.add(Note(kind=kind, time_ns=at, step=None))
        queue.commit()
    return [note.time_ns for note in queue.repeated()]


def test_of_many_notes_the_newest_are_repeated():
    assert noted("device", 1000) == list(range(936, 1000))
    assert noted("mark", 2000) == list(range(1488, 2000))
    queue = NoteQueue()
    for at in range(2000):
        queue.add(Note(kind=f"kind{at}", time_ns=at, step=None))
    assert queue.repeated() == []  # nothing is on disk yet
    queue.commit()
    assert len(queue) == 0
    assert len(queue.repeated()) < 500


def test_of_many_clock_notes_those_that_are_left_reach_from_start_to_end():
    assert noted("clock", 100) == list(range(100))
    assert all(len(noted("clock", n)) <= 129 for n in range(120, 600, 7))
    kept = noted("clock", 10_000)
    assert 64 <= len(kept) <= 128
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, 9999)
    gaps = [after - before for before, after in pairwise(kept)]
    assert max(gaps) <= 10_000 // 32
