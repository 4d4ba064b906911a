"""The entry point that TensorBoard imports at its start: light and harmless.

An exception while this module is imported would end `tensorboard` itself, so it imports
nothing but TensorBoard's own base class; the plugin proper is imported in `load`, and
whatever goes wrong there is logged and costs the user only this one tab.
"""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorboard.plugins.base_plugin import TBLoader

from memboard.tb_plugin import PLUGIN_NAME

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


_logger = logging.getLogger("memboard")

_MOST_DESCRIPTORS: Final = 1 << 16
"""Far above any logdir's files, and below what systems without a hard limit refuse."""

_MACOS_DESCRIPTORS: Final = 10_240
"""macOS names no hard limit but refuses more than OPEN_MAX."""


class Loader(TBLoader):  # type: ignore[misc]
    """Loads the MemBoard plugin. No method raises."""

    def define_flags(self, parser: argparse.ArgumentParser) -> None:
        """Add our flags to TensorBoard's, in a group of their own."""
        with _harmless("MemBoard could not define its flags"):
            group = parser.add_argument_group("MemBoard plugin")
            group.add_argument(
                "--memboard_keep_all_samples",
                choices=["true", "false"],
                default="true",
                help="Keep every record of MemBoard's own event file instead of a"
                " random sample. An entry for memboard in --samples_per_plugin wins."
                " (default: %(default)s)",
            )
            group.add_argument(
                "--memboard_raise_file_limit",
                choices=["true", "false"],
                default="true",
                help="Raise the soft limit on open files to the hard one: TensorBoard's"
                " data server keeps every event file open, and loses all runs when it"
                " runs out. (default: %(default)s)",
            )
            group.add_argument(
                "--memboard_read_ahead",
                choices=["true", "false"],
                default="true",
                help="Read the newest run in the background right after TensorBoard"
                " has started, so that its page is there at once. Off, everything is"
                " read when it is first asked for. (default: %(default)s)",
            )
            group.add_argument(
                "--memboard_drop",
                choices=["true", "false"],
                default="true",
                help="Take memory snapshots that are dropped onto MemBoard's page: they"
                " are kept in a private temporary directory until TensorBoard ends. Off,"
                " the page takes nothing. (default: %(default)s)",
            )
            group.add_argument(
                "--memboard_hosts",
                metavar="NAMES",
                default="",
                help="Host names, with commas between them, under which a proxy makes"
                " TensorBoard reachable. MemBoard takes dropped files only under this"
                " machine's own names and these; where TensorBoard listens on localhost"
                " alone, as it does by default, it answers nothing under others: a web"
                " site could make its own name lead here. (default: none)",
            )
            group.add_argument(
                "--memboard_perfetto",
                metavar="DIR",
                default="",
                help="A folder with Perfetto's built page: traces are opened in it"
                " rather than at ui.perfetto.dev, where that cannot be reached. It runs"
                " in your browser with TensorBoard's own rights. (default: none)",
            )

    def fix_flags(self, flags: argparse.Namespace) -> None:
        """Runs before TensorBoard starts its data server, which inherits the limit."""
        with _harmless("MemBoard could not adapt TensorBoard's flags"):
            if getattr(flags, "memboard_keep_all_samples", "true") == "true":
                _keep_all_samples(flags)
            if getattr(flags, "memboard_raise_file_limit", "true") == "true":
                _raise_file_limit()

    def load(self, context: Any) -> Any:
        """The plugin, or None (TensorBoard then starts without the tab)."""
        plugin: Any = None
        with _harmless(
            "MemBoard could not be loaded; TensorBoard goes on without it. Please"
            " check the installation: pip install --force-reinstall memboard"
        ):
            from memboard.tb_plugin.plugin import MemBoardPlugin

            plugin = MemBoardPlugin(context)
            if getattr(context.flags, "memboard_read_ahead", "false") == "true":
                plugin.read_ahead()
        return plugin


@contextmanager
def _harmless(failed: str) -> Iterator[None]:
    """TensorBoard starts whatever goes wrong in here; the log says what `failed`."""
    try:
        yield
    except Exception:
        _logger.exception(failed)


def _keep_all_samples(flags: argparse.Namespace) -> None:
    """Without this TensorBoard keeps 100 records (Rust loader) or 10 (Python's)."""
    samples = getattr(flags, "samples_per_plugin", None)
    if isinstance(samples, dict):
        samples.setdefault(PLUGIN_NAME, 0)


def _raise_file_limit() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MACOS_DESCRIPTORS if sys.platform == "darwin" else _MOST_DESCRIPTORS
    wanted = most if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        _logger.debug("the limit on open files stays at %d: %s", soft, error)
