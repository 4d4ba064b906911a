"""Fixtures of tests that read stores."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def s3(monkeypatch, tmp_path):
    """A server, a bucket that no other test has, and credentials as users set them."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    from tests.collector.mirror.s3_server import S3

    server = S3()
    server.bucket = f"bucket{uuid.uuid4().hex}"
    server.client().mkdir(server.bucket)
    for name, value in server.environ(str(tmp_path / "none")).items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()
