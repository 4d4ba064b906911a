"""No file that is to be uploaded goes here before its copy lies there, whatever fails."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memboard as mb
from memboard.collector.config import load
from memboard.collector.errors import ConfigError
from memboard.collector.torch_profiler.retention import TraceRetention
from tests.collector.mirror.conftest import Bench, files_in, who
from tests.collector.mirror.faulty_store import FAULTS, FaultyStore
from tests.collector.torch_profiler.training import needs_python_calls, steps, traces

TEMPLATES = (
    "{path}",
    "{name}",
    "{run_name}/{name}",
    "{batch}",
    "{batch}.json",
    "rank{rank}.{batch}.json",
    "{run_name}/ep{epoch}-ba{batch}-rank{rank}.json",
    None,
)
NAMES = ("{rank}.{batch}.json", "{batch}.json", "same.json")
"""Names of the files here; other starts and ranks have theirs in folders of their own."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    for name in ("RETRY_SECONDS", "_FIRST_PAUSE_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(f"memboard.collector.mirror.uploads.{name}", 0.001)


def trained(bench, remote, keep, names, num_traces, *, beside):
    """What one rank's training leaves to be uploaded: content by path and url."""
    mirror = bench.mirror("faulty://bucket", close_seconds=0.3, **remote)
    kept = TraceRetention(keep, lambda: mirror)
    folder = f"plugins/memboard/rank{bench.who.rank}"
    wanted = {}

    def made(kind, name, values):
        path = bench.run_dir / folder / name.format(**values, rank=bench.who.rank)
        while kept.is_taken(path):
            path = path.with_name(f"again-{path.name}")
        content = f"{bench.who.rank} {kind} {values} {path}".encode()
        bench.file(path.relative_to(bench.run_dir).as_posix(), content)
        url = mirror.url_of(kind, path, values)
        if url is not None:
            wanted[path] = url.removeprefix("faulty://"), content
        return path

    for number in range(num_traces):
        values = {"batch": number // 2, "epoch": 0}
        path = made("traces", names, values)
        stays, _ = kept.add(number, number, path, values)
        kept.send("traces", path, values, stays=stays)
        if beside:
            kept.add_beside("memory", path, made("memory", names, values), values)
    mirror.close()
    kept.settle()
    return wanted


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    template=st.sampled_from(TEMPLATES),
    memory=st.sampled_from(TEMPLATES),
    keep=st.integers(-1, 2),
    prune=st.booleans(),
    names=st.sampled_from(NAMES),
    num_traces=st.integers(1, 4),
    num_ranks=st.integers(1, 2),
    beside=st.booleans(),
    faults=st.lists(st.sampled_from(FAULTS), max_size=6),
    is_whole=st.booleans(),
)
def test_every_file_is_here_or_there(
    tmp_path,
    monkeypatch,
    template,
    memory,
    keep,
    prune,
    names,
    num_traces,
    num_ranks,
    beside,
    faults,
    is_whole,
):
    whole = {"faulty"} if is_whole else set()
    monkeypatch.setattr("memboard.collector.mirror.store._WHOLE_OBJECTS", whole)
    remote = {"traces": template, "memory": memory, "prune": prune}
    FaultyStore.empty(faults)
    run_dir = tmp_path / "exp1"
    shutil.rmtree(run_dir, ignore_errors=True)
    (run_dir / "plugins" / "memboard").mkdir(parents=True)
    wanted = {}
    for rank in range(num_ranks):
        bench = Bench(run_dir, who=who(rank=rank), stem=f"rank{rank:05}-20261120T1")
        wanted |= trained(bench, remote, keep, names, num_traces, beside=beside)
    for path, (key, content) in wanted.items():
        is_here = path.exists() and path.read_bytes() == content
        assert is_here or FaultyStore.objects.get(key) == content, path.name


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_here_was_read_back_from_there(bench, keep, fault, monkeypatch):
    monkeypatch.setattr("memboard.collector.mirror.store._WHOLE_OBJECTS", {"faulty"})
    FaultyStore.empty([fault] * 1000)
    wanted = trained(bench, {}, keep, "{batch}.json", 2, beside=False)
    num_there = sum(
        FaultyStore.objects.get(key) == content for key, content in wanted.values()
    )
    arrives = fault in ("none", "answers late", "times out after")
    assert num_there == (2 if arrives else 0)
    assert sum(path.exists() for path in wanted) == (keep if arrives else 2)


def test_another_ranks_file_is_not_overwritten_where_that_one_may_be_gone(
    bench, there, caplog
):
    url, paths = f"file://{there}", []
    for rank in (0, 1):
        bench.who = replace(bench.who, rank=rank)
        mirror = bench.mirror(url, traces="{batch}.json")
        paths.append(bench.file(f"{rank}/a.json", b"rank %d" % rank))
        mirror.put("traces", paths[-1], values={"batch": 1}, delete_after=True)
        mirror.close()
    assert [path.exists() for path in paths] == [False, True]
    assert files_in(there) == {"1.json": b"rank 0"}
    assert "something else lies at its key 1.json" in caplog.text
    assert "{rank}" in caplog.text


@needs_python_calls
@pytest.mark.parametrize("keep", [0, 1])
def test_memory_files_have_keys_of_their_own(tmp_path, keep):
    there = tmp_path / "there"
    there.mkdir()
    with mb.record(
        tmp_path / "exp",
        scalars=False,
        schedule={"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
        torch_profiler={
            "record_shapes": True,
            "with_stack": True,
            "num_traces_to_keep": keep,
            "memory_filename": "memory.csv",
            "stacks_filename": "stacks.txt",
        },
        remote={
            "url": f"file://{there}",
            "traces": "{run_name}/rank{rank}.{batch}.json",
            "memory": "{run_name}/rank{rank}.{batch}.csv",
            "stacks": None,
        },
    ) as recorder:
        steps(recorder, 5)
    copies = files_in(there)
    for batch in (2, 4):
        assert b"traceEvents" in copies[f"exp/rank0.{batch}.json"]
        assert copies[f"exp/rank0.{batch}.csv"].startswith(b"time_ns")
    assert not [key for key in copies if "stacks" in key]
    here = [path.name for path in Path(tmp_path / "exp").rglob("memory*.csv")]
    assert len(here) == keep
    assert len(traces(tmp_path / "exp")) == 2


def test_two_kinds_with_the_same_keys_are_refused_before_training():
    with pytest.raises(ConfigError, match=r"'remote.memory'.*same keys as 'remote"):
        load(remote={"url": "memory://a", "traces": "{batch}", "memory": "{batch}"})
