"""What is wrong with a logdir itself, or with the store it lies at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_plugin import storage
from tb_plugin.index.listing import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin import api
    from tb_plugin.index.logdirs import Logdir


def problems_at(logdir: Logdir) -> Iterator[api.Problem]:
    """Problems of one logdir that belong to none of its runs."""
    if logdir.path is None:
        yield problem(
            logdir.shown,
            "Logdirs at such an address are not read.",
            "Check how it is written, and name the store itself:"
            " --logdir s3://bucket/runs, or a local directory.",
            severity="error",
        )
    elif storage.is_remote(logdir.path):
        yield from _at_store(logdir.path)
    elif not storage.LOCAL.isdir(logdir.path):
        yield problem(
            logdir.shown,
            "There is no such directory (yet).",
            "Check --logdir; the page fills by itself once the directory exists.",
        )


def _at_store(root: str) -> Iterator[api.Problem]:
    remote = storage.remote_at(root)
    refused = remote.refusal()
    if refused is not None:
        path, error = refused
        yield problem(path, f"{error.strerror}.", error.remedy, severity="error")
    listing = remote.progress()
    if listing:
        yield problem(root, listing, "Wait a moment: the page fills by itself.")
    if remote.num_refused_names:
        yield problem(
            root,
            f"{remote.num_refused_names:,} keys hold names that no file can have, such"
            " as `..`; they are not shown.",
            "Nothing is to be done if they are not yours.",
        )
