"""Routes of an open allocator history.

Pictures are made of an open history alone: no run is brought up to date for them and no
lock of a run is taken, so panning stays smooth while a run is being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from memboard.tb_plugin.facts.histories.opening import (
    DeviceQuery,
    HistoryQuery,
    open_history,
)
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory


H = TypeVar("H", bound=HistoryQuery)


def of_history(
    name: str, query: type[H]
) -> Callable[[Callable[[OpenHistory, H], object]], Callable[[OpenHistory, H], object]]:
    """Declare what is made of an open history and a query as the route `name`."""

    def declare(
        view: Callable[[OpenHistory, H], object],
    ) -> Callable[[OpenHistory, H], object]:
        @route(name, query)
        def answer(asked: RouteRequest[H]) -> object:
            history = open_history(asked.state, asked.query)
            asked.decided_by(history.key)
            return view(history, asked.query)

        return view

    return declare


D = TypeVar("D", bound=DeviceQuery)

DeviceView: TypeAlias = "Callable[[OpenDevice, Selection, D], object]"


def of_device(
    name: str, query: type[D]
) -> Callable[[DeviceView[D]], Callable[[OpenHistory, D], object]]:
    """Declare what is made of a device, and of what is shown of it, as the route `name`.

    It is answered NotFoundError where there is no such device, stream or pool.
    """

    def declare(view: DeviceView[D]) -> Callable[[OpenHistory, D], object]:
        @of_history(name, query)
        def of_its_history(history: OpenHistory, asked: D) -> object:
            device = history.device(asked.device)
            return view(device, device.selection(asked.stream, asked.pool), asked)

        return of_its_history

    return declare
