"""A pickle in pieces is the same pickle, wherever the pieces end."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memboard.tb_plugin.formats.snapshots import window as window_module
from memboard.tb_plugin.formats.snapshots.window import Window
from memboard.tb_plugin.worker.errors import RefusedError
from tests.made_snapshots import everything, long_history
from tests.simulate import Form, trained_rank
from tests.tb_plugin.readers.snapshots.pickled import unpickled
from tests.tb_plugin.readers.snapshots.test_machine import expected


@pytest.fixture
def small(monkeypatch):
    def make(read: int, margin: int = 4096) -> None:
        monkeypatch.setattr(window_module, "_READ", read)
        monkeypatch.setattr(window_module, "MARGIN", margin)

    return make


@pytest.mark.parametrize("read", [1, 7, 500, 4096, 60_000])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_events_across_the_ends_of_windows_are_read(small, read, protocol):
    small(read, margin=2000)
    num_events = 60 if read < 100 else 3000
    data = pickle.dumps(long_history(num_events), protocol=protocol)
    assert unpickled(data) == expected(data)


@pytest.mark.parametrize("read", [100, 3000, 20_000])
@pytest.mark.parametrize("torch", ["2.1", "2.6", "2.11", "2.13"])
@pytest.mark.parametrize("context", ["all", "alloc", "state"])
def test_every_form_is_read_through_small_windows(
    small, read, torch, context, tmp_path
):
    small(read)
    rank = trained_rank(400, seed=3, graph_pool=True)
    rank.write(tmp_path / "a", Form(torch=torch, context=context), protocol=5)
    data = (tmp_path / "a").read_bytes()
    assert unpickled(data) == expected(data)


def test_gzip_is_inflated_on_the_way(small):
    small(1000)
    data = pickle.dumps(long_history(500), protocol=4)
    assert unpickled(gzip.compress(data)) == expected(data)


def framed(parts: list[bytes]) -> bytes:
    return b"".join(b"\x95" + struct.pack("<Q", len(part)) + part for part in parts)


@settings(deadline=None)
@given(st.data())
def test_frames_may_end_between_any_two_opcodes(data):
    plain = pickle.dumps(everything(), protocol=4)
    opcodes = [place for op, _, place in pickle_ops(plain) if op.name != "FRAME"]
    inner = opcodes[1:]  # behind PROTO
    cuts = sorted(data.draw(st.sets(st.sampled_from(inner), max_size=12)))
    edges = [inner[0], *[cut for cut in cuts if cut > inner[0]], len(plain)]
    pairs = pairwise(edges)
    body = [plain[start:stop] for start, stop in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_module, "_READ", data.draw(st.integers(1, 3000)))
        patch.setattr(window_module, "MARGIN", 1000)
        assert unpickled(b"\x80\x04" + framed(body)) == everything()


def pickle_ops(data: bytes) -> list[Any]:
    import pickletools

    return list(pickletools.genops(data))


def test_places_are_those_in_the_file(small):
    """Also behind frames that were taken out."""
    small(50, margin=100)
    parts = [b"(" + b"K\x01" * 20 + b"t" for _ in range(30)]
    bad = b"\x80\x04" + b"(" + framed(parts) + b"\x93"
    with pytest.raises(RefusedError) as refused:
        unpickled(bad)
    assert refused.value.offset == len(bad) - 1


def test_progress_rises_to_the_end():
    shares: list[float] = []
    data = pickle.dumps(long_history(9000), protocol=4)
    window = Window(io.BytesIO(data), shares.append)
    at = 0
    while not window.at_end:
        at = window.fill(at)
        at = len(window.data) // 2
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
