"""A logdir at a store: from the first question until every rank is read, and then polling.

    python -m tests.perf.store_logdir [ranks ...]

The store is moto's S3 server on loopback, in this very process and in Python, which takes
most of the processor time; each request is held up for 20 ms, as a store not far away does.
Prints one table: wall time until the overview shows all ranks, the longest poll meanwhile,
requests in all and for each rank, requests that a minute of polling costs afterwards, and
all requests until every rank is shown once the run has an index.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from memboard.tb_plugin import storage
from memboard.tb_plugin.cli import main as cli
from tests.builders import RunBuilder
from tests.collector.mirror.s3_server import S3, SECRET
from tests.tb_plugin.storage.stores import StorePage

DELAY_SECONDS = 0.02
POLL_SECONDS = 0.1


def measured(num_ranks: int, folder: Path) -> tuple[float, float, int, int, int]:
    """Seconds to all ranks and of the longest poll, requests, later, with an index."""
    s3 = S3()
    bucket = f"bucket{num_ranks}"
    s3.client().mkdir(bucket)
    RunBuilder(folder / "exp").simple(num_ranks, 20)
    s3.client().put(f"{folder}/", f"{bucket}/runs/", recursive=True)
    os.environ.update(
        AWS_ACCESS_KEY_ID="me",
        AWS_SECRET_ACCESS_KEY=SECRET,
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL=s3.options["client_kwargs"]["endpoint_url"],
    )
    s3.proxy.delay_seconds = DELAY_SECONDS
    page = StorePage(f"s3://{bucket}/runs")
    began, longest, is_whole = time.perf_counter(), 0.0, False
    while not is_whole:
        asked = time.perf_counter()
        found = page.get("/runs")["runs"]
        if found:
            page.of_run("/overview", "exp")
            run = page.store.run(found[0]["id"])
            is_whole = len(run.files) == num_ranks and not run.unfinished
        longest = max(longest, time.perf_counter() - asked)
        page.store.index._clock.later(1)
        time.sleep(0 if is_whole else POLL_SECONDS)
    seconds, num_requests = time.perf_counter() - began, len(s3.proxy.gets)
    s3.proxy.gets.clear()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        page.get("/runs")
        page.store.index._clock.later(1)
        time.sleep(1)
    num_later = len(s3.proxy.gets)
    url = f"s3://{bucket}/runs"
    assert cli(["index", url]) == 0
    storage._mounted.clear()
    s3.proxy.gets.clear()
    page, is_whole = StorePage(url), False
    while not is_whole:
        found = page.get("/runs")["runs"]
        if found:
            page.of_run("/overview", "exp")
            run = page.store.run(found[0]["id"])
            is_whole = len(run.files) == num_ranks and not run.unfinished
        page.store.index._clock.later(1)
        time.sleep(POLL_SECONDS)
    num_indexed = len(s3.proxy.gets)
    s3.close()
    return seconds, longest, num_requests, num_later, num_indexed


def main() -> None:
    print(
        "| ranks | all shown (s) | longest poll (s) | requests | requests / rank |"
        " in a minute of polling | with an index |"
    )
    print("|---|---|---|---|---|---|---|")
    for num_ranks in map(int, sys.argv[1:] or ("8", "64")):
        with tempfile.TemporaryDirectory() as folder:
            seconds, longest, num, later, indexed = measured(num_ranks, Path(folder))
        print(
            f"| {num_ranks} | {seconds:.2f} | {longest:.2f} | {num} |"
            f" {num / num_ranks:.2f} | {later} | {indexed} |"
        )


if __name__ == "__main__":
    main()
