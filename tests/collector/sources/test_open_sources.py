"""Opening: what is switched off, absent or broken says so and costs the others nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from msgspec.structs import fields

from collector.config import RecordConfig, load
from collector.config.sections import Pace
from collector.format import columns
from collector.sources import (
    HOMES,
    HOST_WIDE,
    STEP,
    TIMED,
    open_step_sources,
    open_timed_sources,
)
from collector.sources.contract import Unavailable
from collector.sources.device.accelerator import Device
from collector.sources.host import cpu

ABSENT = Device(absent=Unavailable("no accelerator here", "buy one"))


def close(opened):
    for source in opened.sources:
        source.close()


def status_of(opened):
    return {missing.info.name: missing.status for missing in opened.not_opened}


def test_every_source_is_accounted_for_once_and_in_order():
    config = load()
    for names, opened in (
        (STEP, open_step_sources(config, ABSENT)),
        (TIMED, open_timed_sources(config, ABSENT)),
    ):
        live = [source.info.name for source in opened.sources]
        missing = [source.info.name for source in opened.not_opened]
        assert sorted(live + missing) == sorted(names)
        assert live == [name for name in names if name in live]
        assert missing == [name for name in names if name in missing]
        close(opened)


def test_without_an_accelerator_the_device_sources_are_absent_with_its_reason():
    step, timed = open_step_sources(load(), ABSENT), open_timed_sources(load(), ABSENT)
    gone = [*step.not_opened, *timed.not_opened]
    absent = {m.info.name: m for m in gone if m.reason == "no accelerator here"}
    assert set(absent) == {"device", "device_free", "gpu", "pinned"}
    for missing in absent.values():
        assert (missing.status, missing.remedy) == ("absent", "buy one")
        assert missing.info.cost != ""
    close(step)
    close(timed)


@pytest.mark.parametrize("name", TIMED)
def test_each_timed_source_has_its_own_switch(name):
    opened = open_timed_sources(load({name: False}), ABSENT)
    assert status_of(opened)[name] == "off"
    (off,) = [m for m in opened.not_opened if m.info.name == name]
    assert off.reason == "switched off in the configuration"
    assert name in off.remedy
    close(opened)


def test_the_device_has_its_switch():
    opened = open_step_sources(load(device="off"), ABSENT)
    assert [source.info.name for source in opened.sources] == ["rss"]
    assert status_of(opened) == {"device": "off"}
    close(opened)


def test_each_timed_source_keeps_its_own_pace():
    paces = {name: 3.0 + number for number, name in enumerate(TIMED)}
    opened = open_timed_sources(load(paces), ABSENT)
    assert {"cpu", "memory", "process", "workers"} <= {
        source.info.name for source in opened.sources
    }
    for source in opened.sources:
        assert source.interval_seconds == paces[source.info.name]
    close(opened)


def test_a_source_that_breaks_while_opening_costs_only_itself(monkeypatch):
    def broken(config, device):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(cpu, "open_source", broken)
    opened = open_timed_sources(load(), ABSENT)
    (failed,) = [m for m in opened.not_opened if m.status == "failed"]
    assert failed.info.name == "cpu"
    assert failed.reason == "ZeroDivisionError: planted"
    assert isinstance(failed.error, ZeroDivisionError)
    assert "memory" in {source.info.name for source in opened.sources}
    close(opened)


def test_every_row_is_as_long_as_its_columns():
    config = load()
    for opened in (
        open_step_sources(config, ABSENT),
        open_timed_sources(config, ABSENT),
    ):
        for source in opened.sources:
            for _ in range(2):
                values = source.sample()
                assert len(values) == len(source.columns), source.info.name
                for value, column in zip(values, source.columns, strict=True):
                    kinds = int if column.dtype == "i8" else (int, float)
                    assert value is None or isinstance(value, kinds), column.name
        close(opened)


def test_every_timed_source_has_a_field_and_every_such_field_a_source():
    held = [f.name for f in fields(RecordConfig) if f.type == Pace]
    assert sorted(held) == sorted(TIMED)


def test_names_are_one_word_in_every_layer():
    for name in (*STEP, *TIMED):
        module = importlib.import_module(f"collector.sources.{HOMES[name]}")
        assert module.INFO.name == name
        assert module.INFO.cost


def test_no_two_columns_share_a_name():
    groups = [
        value
        for value in vars(columns).values()
        if isinstance(value, tuple) and value and isinstance(value[0], columns.Column)
    ]
    names = [c.name for group in groups if group is not columns.AXES for c in group]
    names += [c.name for c in columns.device_byte_columns()]
    assert len(names) > 60
    assert len(names) == len(set(names))


def test_switched_off_sources_import_nothing():
    code = (
        "import sys; from collector.config import load; from collector.sources import *;"
        "from collector.sources import TIMED, open_step_sources, open_timed_sources;"
        "from collector.sources.device.accelerator import find_device;"
        "c = load({**dict.fromkeys(TIMED, False), 'device': 'off'});"
        "d = find_device(c.device, local_rank=0);"
        "print(len(open_step_sources(c, d).sources), open_timed_sources(c, d).sources);"
        "print(sorted({'torch', 'psutil', 'pynvml', 'yaml'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert output[:2] == ["1 ()", "[]"]


def test_the_hosts_own_figures_are_recorded_once_per_host():
    first = open_timed_sources(load(), ABSENT, 0)
    other = open_timed_sources(load(), ABSENT, 3)
    every = open_timed_sources(load(host_ranks="all"), ABSENT, 3)
    try:
        names = [{s.info.name for s in o.sources} for o in (first, other, every)]
        assert names[0] == names[2]
        assert names[0] - names[1] == names[0] & set(HOST_WIDE)
        assert names[1] >= {"process", "workers"}
        reasons = {n.info.name: n for n in other.not_opened}
        assert all(reasons[name].status == "off" for name in HOST_WIDE)
        assert "first rank of each host" in reasons["cpu"].reason
    finally:
        for opened in (first, other, every):
            for source in opened.sources:
                source.close()
