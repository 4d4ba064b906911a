"""The allocator model against torch's own allocator, on random sequences: a table.

    python -m tests.virtual.allocator_runs [--sequences 1000] [--python PYTHON] [SETTING ...]

`--python`: one with a CUDA build of torch; this one unless given. Ends with 1 where segments
or blocks were not the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from itertools import permutations
from pathlib import Path

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests import programs
from tests.virtual.model_driver import Compared, compared
from tests.virtual.random_sequences import SETTINGS, Performed, read

ROOT = Path(__file__).parents[2]
PERFORMS = "from tests.virtual import random_sequences\nrandom_sequences.main()"
AT_ONCE = 200
"""Sequences of one process: torch 2.13 takes a reference to True or False away with each
snapshot, and Python before 3.12 ends when there are none left."""


def performed(setting: str, variant: int, first: int, count: int, python: str, folder: Path) -> list[Performed]:  # fmt: skip
    """`count` sequences with torch's allocator on a virtual GPU, in a process of its own."""
    chosen = SETTINGS[setting]
    out = folder / "performed.pickle"
    variables = environment(parse_device(chosen.device), python=python)
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        variables.pop(name, None)
    variables["PYTHONPATH"] = str(ROOT)
    variables["MEMBOARD_VIRTUAL_EVENTS"] = "at-sync"
    if chosen.variants[variant]:
        variables["PYTORCH_CUDA_ALLOC_CONF"] = chosen.variants[variant]
    words = (out, setting, variant, first, count)
    programs.run(PERFORMS, *words, env=variables, python=python)
    return list(read(out))


def compared_in_order(runs: list[Performed], streams: int) -> list[Compared]:
    """What differs in the sequences of one process.

    torch frees what several streams have finished in the order of a hash table: that of
    their handles, which stay for a process. The one order under which most are the same.
    """
    results = [
        [compared(done, order) for done in runs]
        for order in permutations(range(streams))
    ]
    return max(results, key=lambda found: sum(one.same for one in found))


def both(setting: str, sequences: int, python: str) -> list[tuple[Performed, Compared]]:
    """`sequences` of a setting, shared out among its variants, and what differs."""
    variants = len(SETTINGS[setting].variants)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for variant in range(variants):
            count = sequences // variants + (variant < sequences % variants)
            for start in range(0, count, AT_ONCE):
                first, some = variant * sequences + start, min(AT_ONCE, count - start)
                runs = performed(setting, variant, first, some, python, Path(folder))
                found += zip(runs, compared_in_order(runs, SETTINGS[setting].streams), strict=True)  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    os.environ.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    print(
        "| setting | sequences | operations | retries / errors | blocks compared |"
        " segments and blocks equal | events equal | statistics and old requests equal |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    wrong = False
    for setting in options.settings:
        results = both(setting, options.sequences, options.python)
        counts: Counter[str] = Counter()
        for done, one in results:
            counts["operations"] += one.num_operations
            counts["blocks"] += one.num_blocks
            counts["retries"] += done.stats["num_alloc_retries"]
            counts["errors"] += done.stats["num_ooms"]
            counts["same"] += not one.blocks
            counts["events"] += not one.events
            counts["stats"] += not (one.stats or one.requested)
            for name in ("blocks", "requested", "events", "stats"):
                for words in getattr(one, name)[:1]:
                    print(f"{setting}: {name} {words}"[:400], file=sys.stderr)
        number = len(results)
        print(
            f"| {setting} | {number:,} | {counts['operations']:,} | {counts['retries']:,} /"
            f" {counts['errors']:,} | {counts['blocks']:,} | {counts['same']:,} |"
            f" {counts['events']:,} | {counts['stats']:,} |",
            flush=True,
        )
        wrong |= counts["same"] < number
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
