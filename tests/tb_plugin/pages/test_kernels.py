"""The route of kernels."""

from __future__ import annotations

import pytest

from tests.kineto_files import trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask


@pytest.fixture
def page(tmp_path):
    trained().write(tmp_path / "exp" / "host_0.100.pt.trace.json")
    return Page(tmp_path)


def test_kernels_by_name_and_by_properties(page):
    answer = ask(page, "kernels")
    assert answer["num_calls"].tolist() == [3, 3]
    assert answer["name"][0] == "volta_sgemm_128x64_nn"
    assert answer["total_ms"].tolist() == pytest.approx([0.9, 0.6])
    assert answer["mean_us"].tolist() == pytest.approx([300, 200])
    assert answer["blocks_per_sm"][0] == pytest.approx(0.5)
    assert answer["occupancy"][0] == pytest.approx(0.25)
    assert answer["table"]["colours"] == ["kernel", "communication"]
    (total,) = (c for c in answer["table"]["columns"] if c["key"] == "total_ms")
    assert (total["sum"], total["longest"]) == pytest.approx((1.5, 0.9))
    assert "operator" not in answer
    apart = ask(page, "kernels", by="properties", text="mm")
    assert apart["operator"] == ["aten::mm"]


def test_kernels_are_sorted_before_they_are_cut(page):
    kernels = ask(page, "kernels", by="properties")
    for column in ("mean_us", "num_calls"):
        least = ask(page, "kernels", by="properties", sort=f"-{column}", top=1)
        assert least[column][0] == min(kernels[column])
    first = ask(page, "kernels", by="properties", sort="-operator", top=1)
    assert first["operator"] == [min(kernels["operator"])]
