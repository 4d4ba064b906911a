"""A logdir at a store that speaks S3, in the page of an installed `memboard[s3]`."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("moto.server", reason="moto[server] is not installed")

from tests.collector.mirror.s3_server import S3, SECRET
from tests.collector.recordings import wait_until
from tests.e2e.conftest import fresh_environment, serving
from tests.e2e.looking import PATIENCE_MS, enter, painted, see, tab
from tests.made_snapshots import long_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser import Server

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def cloud_viewer(viewer, tmp_path_factory) -> Path:
    """bin/ of the viewer's environment and the wheel's [s3] extra: s3fs, and no boto3."""
    folder = tmp_path_factory.mktemp("cloud")
    (wheel,) = (viewer.parent.parent / "dist").glob("*.whl")
    return fresh_environment(folder, f"memboard[s3] @ {wheel.as_uri()}", viewer)


@pytest.fixture
def s3(monkeypatch):
    """A server with an empty bucket, where TensorBoard looks for AWS."""
    server = S3()
    server.client().mkdir("bucket")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    url = server.options["client_kwargs"]["endpoint_url"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    yield server
    server.close()


@pytest.fixture
def cloud_board(cloud_viewer, s3, tmp_path) -> Iterator[Server]:
    """TensorBoard on a folder of the bucket."""
    command = [cloud_viewer / "python", "-m", "tensorboard.main"]
    with serving(command, tmp_path, ("--logdir", "s3://bucket/jobs")) as board:
        yield board


def test_a_bucket_is_shown_as_a_directory_is_and_fills_while_one_looks(
    cloud_board, s3, open_page, demo, tmp_path
):
    page = open_page(cloud_board.url)
    # The tab is active before anything is there, and says what it waits for.
    enter(page)
    see(tab(page), "There is nothing at this address (yet)")
    see(tab(page), "s3://bucket/jobs")
    client = s3.client()
    client.put(f"{demo}/", "bucket/jobs/", recursive=True)
    see(tab(page), "Peak RSS")
    (name,) = {path.name for path in demo.iterdir() if path.is_dir()}

    def is_tensorboards() -> bool:
        return f"{name}/memboard" in json.loads(cloud_board.get("data/runs"))

    wait_until(is_tensorboards, PATIENCE_MS / 1000)
    snapshot = pickle.dumps(long_history(500), 4)
    client.pipe_file("bucket/jobs/snaps/rank3_memory_snapshot.pickle", snapshot)
    tab(page).locator(".runs .run", has_text="snaps").click(timeout=PATIENCE_MS)
    tab(page).get_by_text("rank3_memory_snapshot.pickle").first.click(
        timeout=PATIENCE_MS
    )
    painted(page)
    see(tab(page), "rank3_memory_snapshot.pickle")


def test_without_the_extra_the_page_says_what_to_install(
    tensorboard, open_page, s3, monkeypatch
):
    board = tensorboard("--logdir", "s3://bucket/jobs")
    page = open_page(board.url)
    enter(page)
    see(tab(page), "s3:// needs a package that is not installed")
    see(tab(page), "pip install 'memboard[s3]'")
