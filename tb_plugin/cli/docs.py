"""Print a page of the documentation.

PAGE is a name that `memboard docs` lists, such as settings. MemBoard in the browser serves
the same pages behind its help (the key ?).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.tb_plugin.docs import NAMES, PAGES, text_of, title_of

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard docs`."""
    parser.add_argument(
        "page", nargs="?", choices=NAMES, metavar="PAGE", help="the name of a page"
    )


def run(options: argparse.Namespace) -> int:
    """Print the page, or the list of them."""
    if options.page:
        print(text_of(options.page).rstrip())
        return 0
    for group, names in PAGES.items():
        print(group)
        print(*(f"  {name:18}{title_of(name)}" for name in names), sep="\n")
    return 0
