"""Statistics in YAML and pickles: MemProfiler's own dumps, and what pretends to be one."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import pickletools
from collections import OrderedDict, defaultdict
from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.memprofiler import yaml_events
from memboard.tb_plugin.formats.memprofiler.dumps import read_pickle, read_yaml
from memboard.tb_plugin.formats.memprofiler.names import (
    FileName,
    SnapKey,
    joined_phase,
    parse_file_name,
    parse_snap_key,
    split_phase,
)
from memboard.tb_plugin.formats.memprofiler.stats import Stats, UnreadableError
from memboard.tb_plugin.formats.snapshots.pickles import stack as machine_stack

VALUES = {
    "allocated_bytes.all.current": 123_456_789_012,
    "allocated_bytes.all.peak": 2**40,
    "rss": 2_173_976_576,
    "vms": 9_000_000_000,
    "rss_pre_forward": 2_173_583_360,
    "rss_post_forward": 2_173_976_576,
    "rss_diff": 393_216,
    "npp_pre_forward": 0,
    "npp_post_forward": 6_815_744,
    "npp_diff": 6_815_744,
    "share": 0.25,
    "tiny": 1e-05,
}
"""With the differences of MemProfiler's documentation."""


def dumped() -> defaultdict:
    """Collected as MemProfiler collects."""
    stats: defaultdict = defaultdict(dict)
    for iteration in (2, 3):
        for context in ("start", "end"):
            stats[f"0.training_step.{iteration}.{context}"].update(VALUES)
            stats[f"0.training_step.{iteration}.{context}"]["npp_diff"] += iteration
    stats["0.training_step.2.start"]["npp_diff"] = None
    return stats


def plain(stats: Stats) -> dict:
    return {key.text: values for key, values in stats.snaps.items()}


def expected() -> dict:
    return {
        key: {name: value for name, value in values.items() if value is not None}
        for key, values in dumped().items()
    }


def as_yaml(data: object, **options: object) -> bytes:
    return yaml.dump(data, **options).encode()


def test_a_dumped_defaultdict_is_read_where_safe_load_fails():
    data = as_yaml(dumped())
    assert data.startswith(b"!!python/object/apply:collections.defaultdict")
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(data)
    stats = read_yaml(data)
    assert plain(stats) == expected()
    assert stats.left_out.num == 0


@pytest.mark.parametrize("flow", [False, True])
def test_plain_yaml_is_read(flow):
    data = as_yaml(dict(dumped()), default_flow_style=flow)
    assert plain(read_yaml(data)) == expected()


def test_without_the_c_parser_the_same_is_read(monkeypatch):
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert plain(read_yaml(as_yaml(dumped()))) == expected()


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("made", [dumped, lambda: dict(dumped())])
def test_pickles_are_read(protocol, made):
    stats = read_pickle(pickle.dumps(made(), protocol))
    assert plain(stats) == expected()
    assert stats.left_out.num == 0


class Harm:
    """Runs a command where it is unpickled, or loaded by an unsafe YAML loader."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(4))
def test_protocols_that_nobody_dumps_are_refused_unless_plain(protocol):
    with pytest.raises(UnreadableError, match=r"YAML dump|cannot be read") as caught:
        read_pickle(pickle.dumps(dumped(), protocol))
    assert "dump_memorystats_yaml" in caught.value.remedy


@pytest.mark.parametrize("protocol", [4, 5])
def test_nothing_in_a_file_is_ever_run(tmp_path, protocol):
    stats = dict(dumped())
    stats["0.training_step.2.end"]["evil"] = Harm(tmp_path / "ran")
    stats["0.evil.2.end"] = Harm(tmp_path / "ran")
    stats["0.other.2.end"] = {
        "list": [1, 2],
        "odd": Fraction(1, 2),
        "text": "x",
        "flag": True,
    }
    for found in (
        read_pickle(pickle.dumps(stats, protocol)),
        read_yaml(as_yaml(stats)),
    ):
        read = plain(found)
        assert read.pop("0.other.2.end") == {}
        assert read == expected()
        assert found.left_out.num == 6
        assert any("system" in what for what in found.left_out.texts)
    with pytest.raises(UnreadableError):
        read_pickle(pickle.dumps(Harm(tmp_path / "ran"), protocol))
    with pytest.raises(UnreadableError, match=r"python/object/apply:posix\.system"):
        read_yaml(as_yaml(Harm(tmp_path / "ran")))
    assert not (tmp_path / "ran").exists()


def test_other_mappings_of_python_are_not_made():
    with pytest.raises(UnreadableError, match="OrderedDict"):
        read_pickle(pickle.dumps(OrderedDict(dumped())))
    with pytest.raises(UnreadableError, match="OrderedDict"):
        read_yaml(as_yaml(OrderedDict(dumped())))


def test_aliases_are_not_followed():
    laughs = "a: &a [lol]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n"
        for i in range(20)
    )
    stats = read_yaml(laughs.encode() + b"0.f.2.end: {rss: 5}\n")
    assert plain(stats) == {"0.f.2.end": {"rss": 5}}
    stats = read_yaml(b"0.f.2.start: &s {rss: 5}\n0.f.2.end: *s\n0.f.3.end: {rss: 1}\n")
    assert plain(stats) == {"0.f.2.start": {"rss": 5}, "0.f.3.end": {"rss": 1}}
    stats = read_yaml(b"0.f.2.start: {rss: &r 5, vms: *r}\n")
    assert plain(stats) == {"0.f.2.start": {"rss": 5}}
    assert "an alias" in stats.left_out.texts[0]


def test_deep_nesting_ends_the_reading():
    stats = read_yaml(b"0.f.2.end: {rss: 5}\nx: " + b"[" * 900)
    assert plain(stats) == {"0.f.2.end": {"rss": 5}}
    assert stats.error is not None
    assert "levels deep" in stats.error.what
    with pytest.raises(UnreadableError, match="snaps was expected"):
        read_yaml(b"[" * 500)


def test_a_cut_yaml_keeps_the_snaps_before_the_cut():
    whole = as_yaml(dict(dumped()), sort_keys=False)
    at = whole.index(b"0.training_step.3.end")
    wanted = expected()
    wanted.pop("0.training_step.3.end")
    told = 0
    for stop in range(at, len(whole) - 1):
        stats = read_yaml(whole[:stop])
        found = plain(stats)
        found.pop("0.training_step.3.end", None)
        assert found == wanted
        told += stats.error is not None or stats.left_out.num > 0
    # A cut between two lines, or inside a number, leaves YAML that is whole.
    assert told > 50
    stats = read_yaml(whole[: whole.index(b"rss:", at) + 2])
    assert stats.error is not None
    assert stats.error.where.startswith("line ")


def test_every_cut_of_a_pickle_is_refused():
    data = pickle.dumps(dumped())
    for stop in range(0, len(data), 7):
        with pytest.raises(UnreadableError) as caught:
            read_pickle(data[:stop])
        assert caught.value.remedy


def test_a_pickle_cannot_make_more_than_it_spells(monkeypatch):
    # A memo slot of 4 billion makes CPython's own unpickler allocate 32 GiB.
    with pytest.raises(UnreadableError, match="not numbered in order"):
        read_pickle(b"\x80\x04}r\xff\xff\xff\xff.")
    with pytest.raises(UnreadableError, match="does not start like a pickle"):
        read_pickle(gzip.compress(pickle.dumps(dumped())))
    monkeypatch.setattr(machine_stack, "memory_of", lambda *_: 2000)
    with pytest.raises(UnreadableError, match="its objects need more than"):
        read_pickle(b"\x80\x04" + b"}" * 5000 + b".")
    monkeypatch.undo()
    # Each mapping holds the one before twice: 2^60 when written out, 60 objects here.
    laughs = b"\x80\x04(}q\x00" + b"".join(
        b"}(X\x01\x00\x00\x00ah%bX\x01\x00\x00\x00bh%buq%b"
        % ((bytes([i]),) * 2 + (bytes([i + 1]),))
        for i in range(60)
    )
    with pytest.raises(UnreadableError, match="a tuple"):
        read_pickle(laughs + b"t.")


def test_a_file_of_something_else_names_what_it_found():
    with pytest.raises(UnreadableError, match="a list"):
        read_pickle(pickle.dumps([1]))
    with pytest.raises(UnreadableError, match="empty"):
        read_yaml(b"")
    with pytest.raises(UnreadableError, match="no mapping"):
        read_yaml(b"- 1\n")
    stats = read_yaml(b"learning_rate: 0.1\n0.fit.end: {rss: 1}\n")
    assert stats.snaps == {}
    assert stats.left_out.num == 2


def test_numbers_that_cannot_be_are_left_out():
    stats = read_yaml(
        b"0.f.2.end: {a: .inf, b: 99999999999999999999, c: 1e999, d: '5'}"
    )
    assert plain(stats) == {"0.f.2.end": {}}
    assert stats.left_out.num == 4
    found = read_pickle(pickle.dumps({"0.f.2.end": {"a": float("nan"), "b": 2**70}}))
    assert plain(found) == {"0.f.2.end": {}}


def test_yaml_is_bounded(monkeypatch):
    monkeypatch.setattr(yaml_events, "_MAX_EVENTS", 50)
    stats = read_yaml(as_yaml(dict(dumped())))
    assert stats.error is not None
    assert "more than 50" in stats.error.what


@given(st.binary(max_size=200))
def test_any_bytes_are_statistics_or_refused(data):
    for read in (read_yaml, read_pickle):
        with contextlib.suppress(UnreadableError):
            assert isinstance(read(data), Stats)


OPCODES = [op.code.encode("latin-1") for op in pickletools.opcodes]


@given(
    st.lists(st.sampled_from([*OPCODES, b"\x00", b"\x01a", b"(", b"}"]), max_size=40)
)
def test_any_opcodes_are_statistics_or_refused(codes):
    with contextlib.suppress(UnreadableError):
        assert isinstance(read_pickle(b"\x80\x04" + b"".join(codes) + b"."), Stats)


def test_keys_and_file_names():
    assert parse_snap_key("0.training_step.2.end") == SnapKey(
        0, "training_step", 2, "end"
    )
    assert parse_snap_key("12.a.b.c.3.start") == SnapKey(12, "a.b.c", 3, "start")
    for bad in (
        "",
        "0.f.end",
        "0.f.x.end",
        "0.f.2.middle",
        "x.f.2.end",
        "0.f.2.end" * 99,
    ):
        assert parse_snap_key(bad) is None
    assert parse_file_name("rank_3_memory_stats.yaml") == FileName("yaml", 3)
    assert parse_file_name("rank_3_memory_stats.pickle") == FileName("pickle", 3)
    assert parse_file_name("fsdp_mem_rank_1_val_step_12.log") == FileName(
        "report", 1, "val_step", 12
    )
    assert parse_file_name("cuda_alloc_rank_1.by_hand.40.pickle") == FileName(
        "history", 1, "by_hand", 40
    )
    assert parse_file_name("cuda_alloc_rank_1.f.g.2.end.pickle") == FileName(
        "history", 1, "f.g", 2, "end"
    )
    for bad in (
        "rank_x_memory_stats.yaml",
        "rank_0_memory_stats.json",
        "fsdp_mem_rank_0_2.log",
        "cuda_alloc_rank_0.f.middle.pickle",
        "rank_99999999_memory_stats.yaml",
        "fsdp_mem_rank_0_a\x07b_2.log",
    ):
        assert parse_file_name(bad) is None


@given(
    st.integers(0, 9_999_999),
    st.text(min_size=1, max_size=40),
    st.integers(0, 10**11),
    st.sampled_from(["start", "end"]),
)
def test_a_key_is_its_own_inverse(rank, function, iteration, context):
    key = SnapKey(rank, function, iteration, context)
    assert parse_snap_key(key.text) == key


@given(
    st.sampled_from(["step", "a.b", "training_step"]),
    st.sampled_from(["train", "val", "test"]),
)
def test_a_phase_is_read_back_from_a_name(function, phase):
    assert split_phase(joined_phase(function, phase)) == (function, phase)
