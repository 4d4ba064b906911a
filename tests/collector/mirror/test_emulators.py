"""The mirror, and what reads from it, at emulators of Azure's and Google's stores.

They are no part of the tests' environment. `pip install adlfs gcsfs gcp-storage-emulator` and
`npm install azurite` bring them; `MEMBOARD_AZURITE` is the path of its `azurite-blob`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import fsspec
import pytest

import memboard as mb
from memboard.tb_plugin.cli import main
from tests.collector.recordings import ONLY_STEPS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AZURITE = os.environ.get("MEMBOARD_AZURITE", "")
ACCOUNT = "devstoreaccount1"
KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
    "K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Azurite's own account, the same in every installation."""


class Emulator(NamedTuple):
    url: str
    """Of a folder that is there."""
    options: dict[str, Any]


@pytest.fixture(params=["azure", "google"])
def emulator(request, tmp_path, monkeypatch) -> Iterator[Emulator]:
    monkeypatch.setattr("memboard.collector.engine.SEGMENT_SECONDS", 0.3)
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path / "cache"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bucket = f"bucket{uuid.uuid4().hex[:12]}"
    # gcsfs looks when it is imported; this emulator has none of the newer buckets.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    make = _azure if request.param == "azure" else _google
    command, server, environment = make(port, tmp_path / "server", bucket)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _answers(port))
            protocol = server.url.partition("://")[0]
            files = fsspec.filesystem(protocol, **server.options)
            files.mkdir(bucket)
            yield server
        finally:
            process.terminate()


def _azure(port: int, folder: Path, bucket: str) -> tuple[list[str], Emulator, dict]:
    pytest.importorskip("adlfs", reason="adlfs is not installed")
    if not AZURITE or shutil.which(AZURITE) is None:
        pytest.skip("MEMBOARD_AZURITE names no azurite-blob")
    where = f"http://127.0.0.1:{port}/{ACCOUNT}"
    text = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        f"BlobEndpoint={where};"
    )
    command = [AZURITE, "--blobPort", str(port), "--location", str(folder)]
    command += ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    server = Emulator(f"az://{bucket}/jobs", {"connection_string": text})
    return command, server, {"AZURE_STORAGE_CONNECTION_STRING": text}


def _google(port: int, folder: Path, bucket: str) -> tuple[list[str], Emulator, dict]:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    pytest.importorskip("gcp_storage_emulator", reason="it is not installed")
    del folder  # it keeps all in memory
    where = f"http://127.0.0.1:{port}"
    program = "from gcp_storage_emulator.__main__ import main; main()"
    command = [sys.executable, "-c", program, "start", "--in-memory"]
    command += ["--host=127.0.0.1", f"--port={port}"]
    environment = {
        "STORAGE_EMULATOR_HOST": where,
        "GOOGLE_CLOUD_PROJECT": "test",
    }
    options = {"token": "anon", "endpoint_url": where, "project": "test"}
    return command, Emulator(f"gs://{bucket}/jobs", options), environment


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_training_goes_there_and_opens_from_there(emulator, tmp_path, capsys):
    run_dir = tmp_path / "exp1"
    remote = {
        "url": emulator.url + "/{run_name}",
        "storage_options": emulator.options,
        "close_seconds": 60.0,
    }
    config = {**ONLY_STEPS, "remote": remote}
    with mb.record(run_dir, config=config) as rec:
        for step in range(80):
            rec.step(step)
            time.sleep(0.01)
    protocol, _, path = emulator.url.partition("://")
    files = fsspec.filesystem(protocol, **emulator.options)
    there = files.find(f"{path}/exp1", detail=True)
    sizes = {name.partition("/exp1/")[2]: info["size"] for name, info in there.items()}
    kept = [*run_dir.rglob("rank*.events"), *run_dir.rglob("*tfevents*")]
    assert len(kept) >= 3, "several segments, and scalars"
    for one in kept:
        assert sizes[one.relative_to(run_dir).as_posix()] == one.stat().st_size
    capsys.readouterr()
    texts = []
    for logdir in (str(tmp_path), emulator.url):
        assert main(["report", logdir, "--run", "exp1"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "Peak; rank 0, step" in texts[0]


def test_a_bucket_that_is_not_there_is_named(emulator, capsys):
    protocol = emulator.url.partition("://")[0]
    assert main(["report", f"{protocol}://no-such-bucket/jobs"]) == 2
    assert "no-such-bucket" in capsys.readouterr().err
