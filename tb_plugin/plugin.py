"""The plugin: its routes, and what TensorBoard asks of it.

Kept light, because every start of TensorBoard pays for it: what reads and analyses
(`server.state`) is imported at the first request, or by the thread that
reads ahead (`read_ahead`). Routes are GET only and change nothing, but for `/drop`.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorboard.plugins import base_plugin

from memboard.tb_plugin import PLUGIN_NAME
from memboard.tb_plugin.index.logdirs import logdirs_of
from memboard.tb_plugin.server.access import EVERYWHERE, Hosts
from memboard.tb_plugin.server.assets import Assets, LocalPerfetto
from memboard.tb_plugin.server.respond import guarded, respond, respond_to_drop
from memboard.tb_plugin.server.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from werkzeug.wrappers import Request, Response

    from memboard.tb_plugin.index.logdirs import OpenedPaths
    from memboard.tb_plugin.server.state import State

_logger = logging.getLogger("memboard")

TAB_NAME: Final = "MemBoard"

_FIRST_LOOK_SECONDS: Final = 0.2
_LOOK_AGAIN_SECONDS: Final = 5.0


class MemBoardPlugin(base_plugin.TBPlugin):  # type: ignore[misc]
    """Serves the page and its data."""

    plugin_name = PLUGIN_NAME

    def __init__(
        self,
        context: Any,
        opened: OpenedPaths | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """`context` is a `TBContext`; nothing is read until the first request.

        `opened`: what to show in place of a logdir. `hosts`: the names that are
        answered, where TensorBoard's flags do not say them.
        """
        self._logdirs = logdirs_of(context) if opened is None else opened.logdirs
        self._given = opened
        flags = getattr(context, "flags", None)
        self.hosts = _hosts_of(flags) if hosts is None else hosts
        self._may_drop = getattr(flags, "memboard_drop", "true") == "true"
        self._perfetto = LocalPerfetto(getattr(flags, "memboard_perfetto", "") or "")
        self._assets = Assets()
        self._making = threading.Lock()
        self._made: State | None = None
        self._look: threading.Thread | None = None
        self._next_look = 0.0

    def get_plugin_apps(self) -> Mapping[str, Callable[..., Any]]:
        return {
            # Under every name, for TensorBoard's frame would stay blank without it: it
            # leads to the page, which says why it is refused.
            "/index.js": guarded(self._assets.index),
            "/app.html": guarded(self._assets.page, self.hosts),
            "/assets/*": guarded(self._assets.asset, self.hosts),
            "/docs/*": guarded(self._documentation, self.hosts),
            "/perfetto/*": guarded(self._perfetto.answer, self.hosts),
            "/drop": guarded(self._drop, self.hosts, ("POST",)),
            **{f"/{route}": self._data_route(route) for route in ROUTES},
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

    def state(self) -> State:
        """What data routes share; imported and made when first needed."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> State:
        from memboard.tb_plugin.server.drop import Drops
        from memboard.tb_plugin.server.state import State

        drops = Drops(allowed=self._may_drop)
        runs = () if self._given is None else self._given.runs()
        state = State(self._logdirs, runs, drops, lambda: self._perfetto.is_there)
        if self._given is not None:
            state.capacity_bytes = self._given.capacity_bytes
        return state

    def read_ahead(self) -> None:
        """Read what is shown first in the background, a moment from now."""
        from memboard.tb_plugin.server.read_ahead import ReadAhead

        if self._given is None:
            ReadAhead(self.state).start()
        else:  # nothing else of ours is starting
            named = next(iter(self._given.files), "")
            ReadAhead(self.state, named, wait=0.0).start()

    def _data_route(self, route: str) -> Callable[..., Any]:
        return guarded(partial(self._answer, route), self.hosts)

    def _answer(self, route: str, request: Request) -> Response:
        return respond(self.state(), route, request)

    def _documentation(self, request: Request) -> Response:
        from memboard.tb_plugin.server.documentation import documentation

        return documentation(request)

    def _drop(self, request: Request) -> Response:
        return respond_to_drop(self.state(), request)

    def _knows_runs(self) -> bool:
        return self._made is not None and self._made.store.knows_runs

    def _is_unsure(self) -> bool:
        return self._made is None or self._made.store.is_unsure

    def _look_for_runs(self) -> None:
        try:
            self.state().store.look()
        except Exception:
            _logger.exception("MemBoard failed to look for runs")


def _hosts_of(flags: Any) -> Hosts:
    bound = EVERYWHERE if getattr(flags, "bind_all", False) else None
    return Hosts(
        getattr(flags, "host", None) or bound, getattr(flags, "memboard_hosts", "")
    )
