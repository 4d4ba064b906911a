"""The documentation: Markdown pages that ship with the plugin.

`memboard docs PAGE` prints one; MemBoard's page serves them behind its help. Comments in
them are for whoever writes: beside a claim stands the constant or the test that proves it
(`tests/test_docs_evidence.py`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent

PAGES: Final = {
    "Start": ("getting-started", "pages", "commands"),
    "Record": ("run", "recording", "trainers", "schedule", "profiler", "settings"),
    "Answers": ("snapshots", "out-of-memory", "efficiency", "predict", "reports"),
    "From other tools": ("memprofiler", "composer", "torch-tb-profiler", "memory_viz"),
    "Many machines": (
        "clusters",
        "stores",
        "notebooks",
        "torchrun",
        "slurm",
        "kubernetes",
        "ray",
    ),
    "Look up": (
        "guarantees",
        "limits",
        "measured",
        "analyses",
        "format",
        "contributing",
        "changelog",
    ),
}
"""The pages by group, beside the index, in the order of the index."""

NAMES: Final = ("index", *(name for group in PAGES.values() for name in group))

_COMMENT: Final = re.compile(r"^ *<!--.*?-->\n|<!--.*?-->", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    """The Markdown of a page, without its comments.

    Raises:
        KeyError: there is no such page.
    """
    return _COMMENT.sub("", source_of(page))


def source_of(page: str) -> str:
    """The Markdown of a page as it is written.

    Raises:
        KeyError: there is no such page.
    """
    if page not in NAMES:
        raise KeyError(page)
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def title_of(page: str) -> str:
    """What a page's first line calls it."""
    return text_of(page).partition("\n")[0].removeprefix("# ")
