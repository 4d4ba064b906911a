"""Numbers of one golden answer that have to agree with each other."""

from __future__ import annotations

import re

from tests.routes.goldens import ANSWERS

DEVICE = re.compile(
    r"^( +)categories_bytes: \{(?P<categories>[^}]*)\}\n"
    r"(?:\1.*\n)*?\1peak_active_bytes: (?P<peak>\d+)\n"
    r"(?:\1.*\n)*?\1rounding_bytes: (?P<rounding>\d+)\n",
    re.MULTILINE,
)
"""A device of a snapshot as it is written: keys are in order, deeper ones indented."""


def test_categories_and_rounding_sum_to_the_peak_they_stand_under():
    num_devices = 0
    for path in sorted(ANSWERS.rglob("report_json.txt")):
        for device in DEVICE.finditer(path.read_text()):
            sizes = re.findall(r": (\d+)", device["categories"])
            assert sum(map(int, sizes)) + int(device["rounding"]) == int(device["peak"])
            num_devices += 1
    assert num_devices >= 20, "of all snapshots in the goldens"
