"""Memory in reference cycles is found by what the garbage collector did, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.columns import GARBAGE
from tests.builders import RunBuilder
from tests.tb_plugin.client import Page

MIB, GIB = 1 << 20, 1 << 30
STEPS = 600


class Process:
    """What a process holds, and a collector with CPython's three generations.

    Each generation is a list of what died in cycles: (objects, bytes).
    """

    def __init__(self, seed, *, thresholds=(700, 10, 10), base=20 * GIB):
        self.rng = np.random.default_rng(seed)
        self.thresholds = thresholds
        self.held = base
        self.dead = [[], [], []]
        self.counts = [0, 0, 0]
        self.runs = [0, 0]
        self.objects = 0
        self.rows = []

    def lose(self, objects, num_bytes):
        """A cycle of so many objects dies, with the memory that it holds."""
        self.held += num_bytes
        self.dead[0].append((objects, num_bytes))
        self.allocate(objects)

    def allocate(self, objects):
        """So many containers more than were freed."""
        self.counts[0] += objects
        for generation in (2, 1, 0):
            over = [
                count > most
                for count, most in zip(self.counts, self.thresholds, strict=True)
            ]
            if over[0] and all(over[1 : generation + 1]):
                self.collect(generation)
                break

    def collect(self, generation=2):
        """What is dead there is freed; some of it has just become old and is not found."""
        found = [one for part in self.dead[: generation + 1] for one in part]
        for part in self.dead[: generation + 1]:
            part.clear()
        self.objects += sum(objects for objects, _ in found)
        self.held -= sum(num_bytes for _, num_bytes in found)
        self.runs[generation == 2] += 1
        for one in range(generation + 1):
            self.counts[one] = 0
        if generation < 2:
            self.counts[generation + 1] += 1

    def step(self):
        self.rows.append((self.held, *self.runs, self.objects))


def leaks(process, step, size=40):
    """Each batch dies in a cycle."""
    process.lose(12, int(process.rng.integers(size // 2, size)) * MIB)


def cycles(process, step):
    leaks(process, step)
    process.step()


def cycles_under_batches(process, step):
    """Batches differ a little, too."""
    leaks(process, step, 80)
    process.held += int(process.rng.integers(-3, 4)) * MIB
    process.step()


def rare_cycles(process, step):
    if step % 3 == 0:
        process.lose(40, 200 * MIB)
    process.allocate(15)
    process.step()


def old_cycles(process, step):
    """They die when they are old: full collections alone find them."""
    process.held += 12 * MIB
    process.dead[2].append((20, 12 * MIB))
    process.allocate(705)
    process.step()


def called(process, step):
    process.thresholds = (10**9, 10, 10)
    leaks(process, step)
    if step % 25 == 24:
        process.collect()
    process.step()


def called_under_batches(process, step):
    process.held += int(process.rng.integers(-3, 4)) * MIB
    called(process, step)


FOUND = (
    cycles,
    cycles_under_batches,
    rare_cycles,
    old_cycles,
    called,
    called_under_batches,
)


def called_over_a_leak(process, step):
    """A list grows below the cycles: no collection returns it."""
    process.held += MIB
    called(process, step)


def cycles_that_grow(process, step):
    """Each interval has more of them, and nothing is left."""
    process.thresholds = (10**9, 10, 10)
    process.lose(12, (20 + step // 10) * MIB)
    if step % 25 == 24:
        process.collect()
    process.step()


def cleared_cache(process, step):
    """A list that the program clears; the collector runs at times of its own."""
    process.kept = getattr(process, "kept", 0) + 30 * MIB
    process.held += 30 * MIB
    if step % 20 == 19:
        process.held -= process.kept
        process.kept = 0
    process.lose(9, 0)
    process.step()


def cleared_and_collected(process, step):
    """The same, with gc.collect() beside it, which finds a few objects."""
    process.thresholds = (10**9, 10, 10)
    process.held += 30 * MIB
    process.lose(1, 0) if step % 4 == 0 else None
    if step % 25 == 24:
        process.held -= 25 * 30 * MIB
        process.collect()
    process.step()


def collected_in_most_steps(process, step):
    process.held += 30 * MIB
    process.lose(800, 0)
    if step % 20 == 19:
        process.held -= 20 * 30 * MIB
    process.step()


def evaluation_and_collected(process, step):
    """What an evaluation holds at the end of its step is dropped in the next one."""
    process.thresholds = (10**9, 10, 10)
    process.lose(4, 0)
    if step % 40 == 39:
        process.held += 3 * GIB
    if step % 40 == 0 and step:
        process.held -= 3 * GIB
        process.collect()
    process.step()


def garbage_without_memory(process, step):
    process.lose(25, 0)
    process.held = 20 * GIB + int(process.rng.integers(0, 64)) * 64 * MIB
    process.step()


def small_cycles(process, step):
    """A few MiB beside 20 GiB."""
    process.lose(12, 40_000)
    process.step()


def growth(process, step):
    process.held += 20 * MIB
    process.lose(10, 0)
    process.step()


CLEAN = (
    cleared_cache,
    cleared_and_collected,
    collected_in_most_steps,
    evaluation_and_collected,
    garbage_without_memory,
    small_cycles,
    growth,
)


def rows_of(program, seed):
    process = Process(seed, base=20 * GIB if program in CLEAN else 2 * GIB)
    for step in range(STEPS):
        program(process, step)
    return np.array(process.rows, np.int64)


def recorded(folder, ranks, column="allocated_bytes"):
    """The findings on a run whose ranks recorded these rows."""
    builder = RunBuilder(folder)
    for number, rows in enumerate(ranks):
        held, partial, full, objects = rows.T
        columns = {column: held}
        if column == "allocated_bytes":
            columns["allocated_peak_bytes"] = held + GIB
        builder.rank(number).steps(
            range(len(rows)),
            extra=GARBAGE,
            gc_partial_collections=partial,
            gc_full_collections=full,
            gc_collected_objects=objects,
            **columns,
        )
    found = Page(folder).of_run("/findings")["findings"]
    return [one for one in found if one["key"] == "reference_cycles"]


@pytest.mark.parametrize("program", FOUND)
def test_planted_cycles_are_found(tmp_path, program):
    missed = []
    for seed in range(10):
        rows = rows_of(program, seed)
        found = recorded(tmp_path / str(seed), [rows])
        if not found:
            missed.append(seed)
            continue
        evidence = {one["key"]: one["value"] for one in found[0]["evidence"]}
        falls = -np.diff(rows[:, 0])
        assert evidence["largest_fall"] == falls.max()
        calls = program in (called, called_under_batches)
        assert ("gc.collect()" in found[0]["sentence"]) == calls
        assert "leak" not in evidence
        assert found[0]["advice"][0]["gain"] == falls.max()
    assert not missed


@pytest.mark.parametrize("column", ["allocated_bytes", "rss_bytes"])
@pytest.mark.parametrize("seed", range(5))
def test_a_leak_below_the_cycles_is_named_too(tmp_path, seed, column):
    rows = rows_of(called_over_a_leak, seed)
    (one,) = recorded(tmp_path, [rows], column)
    assert "reference cycles hold it until then" in one["sentence"]
    assert (
        "What full collections leave grows as well, by 1.00 MiB per step"
        in (one["sentence"])
    )
    evidence = {one["key"]: one["value"] for one in one["evidence"]}
    assert evidence["leak"] == MIB
    (advice,) = (one for one in one["advice"] if one["because"] == ["leak"])
    assert ("tracemalloc" in advice["text"]) == (column == "rss_bytes")
    assert advice["gain"] == MIB * 575  # from the first collection to the last


def test_cycles_that_grow_are_no_leak(tmp_path):
    (one,) = recorded(tmp_path, [rows_of(cycles_that_grow, 0)])
    assert "leak" not in {one["key"] for one in one["evidence"]}


@pytest.mark.parametrize("program", CLEAN)
def test_memory_that_the_program_frees_is_none_of_the_collectors(tmp_path, program):
    for seed in range(10):
        assert not recorded(tmp_path / str(seed), [rows_of(program, seed)]), seed


def test_a_run_between_the_counts_and_the_memory_is_in_the_next_row(tmp_path):
    rows = rows_of(cycles, 4)
    late = np.flatnonzero(np.diff(rows[:, 3]) > 0)[::2] + 1
    rows[late, 1:] = rows[late - 1, 1:]
    assert recorded(tmp_path, [rows])


def test_a_process_without_a_device_has_cycles_too(tmp_path):
    (one,) = recorded(tmp_path, [rows_of(cycles, 1)], "rss_bytes")
    assert one["sentence"].startswith("The host memory of rank 0 rises")
    assert "CUDA" not in one["advice"][0]["text"]


def test_of_several_ranks_the_largest_fall_is_named(tmp_path):
    ranks = [rows_of(growth, 0), rows_of(cycles, 1), rows_of(cycles_under_batches, 2)]
    (one,) = recorded(tmp_path, ranks)
    assert one["rank"] == 2


def test_rows_without_the_collectors_counts_say_nothing(tmp_path):
    held = rows_of(cycles, 3)[:, 0]
    builder = RunBuilder(tmp_path)
    builder.rank(0).steps(range(STEPS), allocated_bytes=held)
    keys = [one["key"] for one in Page(tmp_path).of_run("/findings")["findings"]]
    assert "reference_cycles" not in keys
