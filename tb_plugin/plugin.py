"""The plugin: its routes, and what TensorBoard asks of it.

Kept light, because every start of TensorBoard pays for it: what reads and analyses
(`data_routes`) is imported when something is first asked for, or by the thread that
reads ahead (`read_ahead`). Routes are GET only and change nothing, but for `/drop`.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorboard.plugins import base_plugin

from tb_plugin import PLUGIN_NAME
from tb_plugin.logdirs import logdirs_of
from tb_plugin.server.access import EVERYWHERE, Hosts
from tb_plugin.server.assets import Assets, LocalPerfetto
from tb_plugin.server.respond import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from werkzeug.wrappers import Request, Response

    from tb_plugin.data_routes import DataRoutes
    from tb_plugin.given import Given

_logger = logging.getLogger("memboard")

TAB_NAME: Final = "MemBoard"

_FIRST_LOOK_SECONDS: Final = 0.2
_LOOK_AGAIN_SECONDS: Final = 5.0


class MemBoardPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serves the page and its data."""

    plugin_name = PLUGIN_NAME

    def __init__(
        self, context: Any, given: Given | None = None, hosts: Hosts | None = None
    ) -> None:
        """`context` is a `TBContext`; nothing is read until the first request.

        `given`: what to show in place of a logdir. `hosts`: the names that are
        answered, where TensorBoard's flags do not say them.
        """
        self._logdirs = logdirs_of(context) if given is None else given.logdirs
        self._given = given
        flags = getattr(context, "flags", None)
        self.hosts = _hosts_of(flags) if hosts is None else hosts
        self._may_drop = getattr(flags, "memboard_drop", "true") == "true"
        self._perfetto = LocalPerfetto(getattr(flags, "memboard_perfetto", "") or "")
        self._assets = Assets()
        self._making = threading.Lock()
        self._made: DataRoutes | None = None
        self._look: threading.Thread | None = None
        self._next_look = 0.0

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        """The route table."""
        return {
            # Under every name, for TensorBoard's frame would stay blank without it: it
            # leads to the page, which says why it is refused.
            "/index.js": guarded(self._assets.index),
            "/app.html": guarded(self._assets.page, self.hosts),
            "/assets/*": guarded(self._assets.asset, self.hosts),
            "/perfetto/*": guarded(self._perfetto.answer, self.hosts),
            "/drop": guarded(self._drop, self.hosts, ("POST",)),
            "/runs": self._data_route("runs"),
            "/overview": self._data_route("overview"),
            "/timeline": self._data_route("timeline"),
            "/heatmap": self._data_route("heatmap"),
            "/host": self._data_route("host"),
            "/steps": self._data_route("steps"),
            "/step": self._data_route("step"),
            "/step_heatmap": self._data_route("step_heatmap"),
            "/stragglers": self._data_route("stragglers"),
            "/functions": self._data_route("functions"),
            "/verdict": self._data_route("verdict"),
            "/modules": self._data_route("modules"),
            "/module": self._data_route("module"),
            "/module_timeline": self._data_route("module_timeline"),
            "/histories": self._data_route("histories"),
            "/history": self._data_route("history"),
            "/stacks": self._data_route("stacks"),
            "/allocations": self._data_route("allocations"),
            "/allocation_holders": self._data_route("allocation_holders"),
            "/allocation_live": self._data_route("allocation_live"),
            "/allocation_block": self._data_route("allocation_block"),
            "/allocation_range": self._data_route("allocation_range"),
            "/compare": self._data_route("compare"),
            "/rank_histories": self._data_route("rank_histories"),
            "/segments": self._data_route("segments"),
            "/segment_timeline": self._data_route("segment_timeline"),
            "/allocator_events": self._data_route("allocator_events"),
            "/trace": self._data_route("trace"),
            "/trace_slices": self._data_route("trace_slices"),
            "/trace_slice": self._data_route("trace_slice"),
            "/trace_instant": self._data_route("trace_instant"),
            "/trace_search": self._data_route("trace_search"),
            "/trace_range": self._data_route("trace_range"),
            "/trace_reports": self._data_route("trace_reports"),
            "/trace_report": self._data_route("trace_report"),
            "/traces": self._data_route("traces"),
            "/trace_file": self._data_route("trace_file"),
            "/trace_merged": self._data_route("trace_merged"),
            "/profile": self._data_route("profile"),
            "/operators": self._data_route("operators"),
            "/operator": self._data_route("operator"),
            "/kernels": self._data_route("kernels"),
            "/module_times": self._data_route("module_times"),
            "/operator_memory": self._data_route("operator_memory"),
            "/distributed": self._data_route("distributed"),
            "/distributed_heatmap": self._data_route("distributed_heatmap"),
        }

    def is_active(self) -> bool:
        """Whether any run is known. Called at every page load: never waits long."""
        if self._given is not None or self._knows_runs():
            return True
        has_remote = any(logdir.url is not None for logdir in self._logdirs)
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_AGAIN_SECONDS
            self._look = threading.Thread(target=self._look_for_runs, daemon=True)
            self._look.start()
            self._look.join(_FIRST_LOOK_SECONDS)
        # What a store has not listed yet, or refuses, the page says.
        return self._knows_runs() or (has_remote and self._is_unsure())

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """How TensorBoard shows the tab."""
        return base_plugin.FrontendMetadata(
            es_module_path="/index.js", tab_name=TAB_NAME
        )

    def data_routes(self) -> DataRoutes:
        """What answers the data routes; imported and made when first needed."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> DataRoutes:
        from tb_plugin.data_routes import DataRoutes
        from tb_plugin.server.drop import Drops

        drops = Drops(allowed=self._may_drop)
        given = () if self._given is None else self._given.runs()
        routes = DataRoutes(
            self._logdirs, given, drops, lambda: self._perfetto.is_there
        )
        if self._given is not None:
            routes.capacity_bytes = self._given.capacity_bytes
        return routes

    def read_ahead(self) -> None:
        """Read what is shown first in the background, a moment from now."""
        from tb_plugin.server.read_ahead import ReadAhead

        if self._given is None:
            ReadAhead(self.data_routes).start()
        else:  # nothing else of ours is starting
            named = next(iter(self._given.files), "")
            ReadAhead(self.data_routes, named, wait=0.0).start()

    def _data_route(self, name: str) -> Callable[..., Any]:
        return guarded(partial(self._answer, name), self.hosts)

    def _answer(self, name: str, request: Request) -> Response:
        return self.data_routes().answer(name, request)

    def _drop(self, request: Request) -> Response:
        return self.data_routes().drop(request)

    def _knows_runs(self) -> bool:
        return self._made is not None and self._made.store.knows_runs

    def _is_unsure(self) -> bool:
        return self._made is None or self._made.store.is_unsure

    def _look_for_runs(self) -> None:
        try:
            self.data_routes().store.look()
        except Exception:
            _logger.exception("MemBoard failed to look for runs")


def _hosts_of(flags: Any) -> Hosts:
    bound = EVERYWHERE if getattr(flags, "bind_all", False) else None
    return Hosts(
        getattr(flags, "host", None) or bound, getattr(flags, "memboard_hosts", "")
    )
