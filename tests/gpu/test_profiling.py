"""Profiled functions on a real device: torch's own statistics, peaks and activations."""

from __future__ import annotations

import pytest

import memboard as mb
from tests.collector.recordings import ONLY_STEPS, read_only_file

torch = pytest.importorskip("torch")

MIB = 2**20


def record(run_dir, **keywords):
    settings = {**ONLY_STEPS, "functions": True, "schedule": {"warmup": 0}}
    return mb.record(run_dir, **{**settings, **keywords})


def test_snaps_have_every_statistic_that_torch_has(tmp_path):
    kept = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
    with record(tmp_path / "run") as rec, rec.span("f", memory=True):
        expected = torch.cuda.memory_stats()
    found = read_only_file(tmp_path / "run")
    (schema,) = [s for s in found.schemas.values() if s.table == "function/f"]
    names = {column.name for column in schema.columns}
    assert {n for n, v in expected.items() if type(v) is int} <= names
    for name in ("allocated_bytes.all.current", "reserved_bytes.large_pool.current"):
        assert found.column(name, "function/f") == [expected[name]] * 2
    assert kept.numel() == 3 * MIB


def test_a_peak_is_the_calls_own_and_the_users_reading_stays(tmp_path):
    big = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
    del big
    before = torch.cuda.max_memory_allocated()
    with record(tmp_path / "run") as rec:
        base = torch.cuda.memory_allocated()
        with rec.span("f", memory=True):
            small = torch.ones(8 * MIB, dtype=torch.uint8, device="cuda")
            del small
            rec.step()
        assert torch.cuda.max_memory_allocated() == before
    found = read_only_file(tmp_path / "run")
    peaks = found.column("allocated_bytes.all.peak", "function/f")
    assert peaks == [base, base + 8 * MIB]


def test_activations_on_the_device(tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
    ).cuda()
    with record(tmp_path / "run", model=model) as rec, rec.span("f", memory=True):
        model(torch.randn(4, 32, device="cuda")).sum().backward()
    found = read_only_file(tmp_path / "run")
    (capture,) = found.captures_of("activations", "f")
    assert capture.meta["bytes"] == 1536
    (hooks,) = found.captures_of("hooks", "f")
    assert hooks.tables["values"]["npp_diff"].tolist()[0] == 4608
