"""Merged traces written: whole or not at all."""

from __future__ import annotations

import gzip
import threading

import pytest

from memboard.tb_plugin.merging.output import deflated, write_file

PIECES = [b"[", b"1," * 1000, b"2]"]


def made():
    yield from PIECES


def test_a_stream_is_deflated(tmp_path):
    assert gzip.decompress(b"".join(deflated(made()))) == b"".join(PIECES)
    assert write_file(tmp_path / "a" / "x.json.gz", made()) > 20
    assert gzip.decompress((tmp_path / "a" / "x.json.gz").read_bytes())[:1] == b"["
    assert write_file(tmp_path / "x.json", made()) == 2003


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_what_fails_in_the_middle_leaves_nothing(tmp_path, name):
    def failing():
        yield b"["
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / name, failing())
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_wants_the_rest_the_making_ends():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield b"x" * 10_000_000
        finally:
            closed.set()

    stream = deflated(endless())
    next(stream)
    stream.close()
    assert closed.wait(60)
