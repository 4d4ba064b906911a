"""Opening: what is switched off, absent or broken says so and costs the others nothing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from msgspec.structs import fields

from memboard.collector.config import RecordConfig, load
from memboard.collector.config.sections import Pace
from memboard.collector.core.source import Unavailable
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.format import columns
from memboard.collector.sources import STEP, TIMED
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.sampling import open_sources

ABSENT = Device(absent=Unavailable("no accelerator here", "buy one"))


@pytest.fixture
def opened():
    """Open sources; they are closed at the end. Notes by name: status, reason, remedy."""
    lives = []

    def make(sources, is_first=True, **keywords):
        notes = {}

        def note(info, *said):
            assert info.name not in notes
            notes[info.name] = said

        found = open_sources(
            sources, load(**keywords), ABSENT, note, WarnOnce(), is_first=is_first
        )
        lives.extend(found)
        return found, notes

    yield make
    for live in lives:
        live.close()


@pytest.mark.parametrize("sources", [STEP, TIMED])
def test_every_source_is_accounted_for_once_and_in_order(opened, sources):
    live, notes = opened(sources)
    assert list(notes) == [source.name for source in sources]
    recorded = [name for name, said in notes.items() if said[0] == "recorded"]
    assert [one.source.name for one in live] == recorded


def test_without_an_accelerator_the_device_sources_are_absent_with_its_reason(opened):
    _, notes = opened((*STEP, *TIMED))
    absent = {name for name, said in notes.items() if said[1] == "no accelerator here"}
    assert absent == {"device", "device_free", "gpu", "pinned"}
    assert {notes[name] for name in absent} == {
        ("absent", "no accelerator here", "buy one")
    }


@pytest.mark.parametrize("setting", ["gpu", "process", "host"])
def test_timed_sources_have_switches(opened, setting):
    live, notes = opened(TIMED, **{setting: False})
    off = {name for name, said in notes.items() if said[0] == "off"}
    assert off == {source.name for source in TIMED if source.setting == setting}
    for name in off:
        assert notes[name][1] == "switched off in the configuration"
        assert notes[name][2] == (
            f"Remove {setting} from the configuration, or set it to true."
        )
    assert not off & {one.source.name for one in live}


def test_the_device_has_its_switch(opened):
    live, notes = opened(STEP, device="off")
    assert [one.source.name for one in live] == ["garbage", "rss"]
    assert notes["device"][0] == "off"


def test_timed_sources_keep_the_pace_of_their_setting(opened):
    live, _ = opened(TIMED, process=0.5, host=3.0)
    paces = {one.source.name: one.interval_seconds for one in live}
    assert {"cpu": 3.0, "memory": 3.0, "process": 0.5}.items() <= paces.items()
    assert paces.get("workers", 1.0) == 1.0
    assert paces.get("swap", 30.0) == 30.0


def test_a_source_that_breaks_while_opening_costs_only_itself(opened, caplog):
    def broken(config, device):
        raise ZeroDivisionError("planted")

    bad = dataclasses.replace(TIMED[-1], name="bad", open=broken)
    live, notes = opened((bad, *TIMED))
    assert notes["bad"][:2] == ("failed", "ZeroDivisionError: planted")
    assert "the source bad failed" in caplog.text
    assert {"bad", "memory"} <= {one.source.name for one in live}
    assert set(live[0].read()) == {None}


def test_every_row_is_as_long_as_its_columns(opened):
    live, _ = opened((*STEP, *TIMED))
    for one in live:
        for _ in range(2):
            for value, column in zip(one.read(), one.columns, strict=True):
                kinds = int if column.dtype == "i8" else (int, float)
                assert value is None or isinstance(value, kinds), column.name


def test_every_pace_is_that_of_a_source():
    paces = {f.name for f in fields(RecordConfig) if f.type == Pace}
    assert paces == {source.setting for source in TIMED}
    assert all(source.cost for source in (*STEP, *TIMED))


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
        "import sys; from memboard.collector.config import load;"
        "from memboard.collector.core.warn_once import WarnOnce;"
        "from memboard.collector.sources import STEP, TIMED;"
        "from memboard.collector.sources.sampling import open_sources;"
        "from memboard.collector.sources.device.accelerator import find_device;"
        "c = load(gpu=False, process=False, host=False, device='off');"
        "d = find_device(c.device, local_rank=0);"
        "found = open_sources((*STEP, *TIMED), c, d, lambda *_: None, WarnOnce());"
        "print([one.source.name for one in found]);"
        "print(sorted({'torch', 'psutil', 'pynvml', 'yaml'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert output[:2] == ["['rss']", "[]"]


def test_the_hosts_own_figures_are_recorded_once_per_host(opened):
    first, _ = opened(TIMED)
    other, notes = opened(TIMED, is_first=False)
    names = [{one.source.name for one in live} for live in (first, other)]
    per_host = {source.name for source in TIMED if source.per_host}
    assert names[0] - names[1] == names[0] & per_host
    assert "process" in names[1]
    for name in per_host:
        assert notes[name][0] == "off"
        assert "first rank of each host" in notes[name][1]
