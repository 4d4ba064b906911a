"""Rows of operators, kernels and modules hold all that devices did, of every input."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from tests.perf.trace_replicator import read as plain
from tests.routes.inputs import INPUTS
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask

WORK = ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset")
MS = 1e3


def device_ms(path) -> Counter[str]:
    """By category, the sum of the durations of what ran: what overlaps counts each."""
    sums: Counter[str] = Counter()
    for event in plain(path)["traceEvents"]:
        if isinstance(event, dict) and event.get("ph") == "X":
            sums[str(event.get("cat")).lower()] += event["dur"] / MS
    return sums


@pytest.mark.parametrize("name", ["traces", "real_traces"])
def test_rows_add_up_to_what_ran(tmp_path, name):
    INPUTS[name].make(tmp_path)
    page = Page(tmp_path)
    num_with_devices = 0
    for run in page.get("/runs")["runs"]:
        listed = ask(page, "operators", run=run["id"])["choice"]["traces"]
        for trace in listed:
            (path,) = (tmp_path / run["name"]).rglob(trace["name"].rpartition("/")[2])
            try:
                ran = device_ms(path)
            except (json.JSONDecodeError, UnicodeDecodeError):
                continue  # damaged: what of it can be read is shown
            work_ms = sum(ran[category] for category in WORK)
            num_with_devices += work_ms > 0
            query = {"run": run["id"], "source": trace["id"], "top": 2_000}
            for by in ("name", "shapes"):
                operators = ask(page, "operators", by=by, **query)
                rows = np.sum(operators.get("device_self_ms", ()))
                assert rows == pytest.approx(work_ms, abs=1e-6)
            for by in ("name", "properties"):
                kernels = ask(page, "kernels", by=by, **query)
                rows = np.sum(kernels["total_ms"])
                assert rows == pytest.approx(ran["kernel"], abs=1e-6)
            modules = ask(page, "module_times", run=run["id"], source=trace["id"])
            if modules["name"] and work_ms:
                rows = np.nansum(modules["device_self_ms"])
                rows += np.nansum(modules.get("backward_device_self_ms", ()))
                assert rows == pytest.approx(work_ms, abs=1e-6)
    assert num_with_devices
