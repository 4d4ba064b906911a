"""Labels of recorded columns."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.analysis.series.labels import column_label


@pytest.mark.parametrize(
    ("column", "label"),
    [
        ("allocated_peak_bytes", "Allocated peak"),
        ("gpu_temperature_celsius", "GPU temperature"),
        ("rss_bytes", "RSS"),
        ("workers_rss_bytes", "Dataloader workers RSS"),
        ("disk_read_bytes_per_second", "Disk read"),
        ("num_ooms", "OOMs"),
        ("cpu_user_pct", "CPU user"),
        ("something_new", "Something new"),
        ("", ""),
    ],
)
def test_columns_have_labels_even_new_ones(column: str, label: str) -> None:
    assert column_label(column) == label
