"""The routes about allocator histories: which there are, opening one, and its pictures.

Pictures are made of an open history alone: no run is brought up to date for them and no
lock of a run is taken, so panning stays smooth while a run is being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.budget import Budget
from tb_plugin.histories_query import HistoriesQuery, parse_histories_query
from tb_plugin.readers.histories import HistoriesReader
from tb_plugin.readers.history_list import (
    default_of,
    history_of,
    listed,
    of_rank,
    shown_place,
)
from tb_plugin.readers.imports.importer import Importer
from tb_plugin.readers.kept import Kept
from tb_plugin.server.errors import NotFoundError, NotReadyError, UnreadableError
from tb_plugin.server.respond import data_answer, etag_of, not_modified
from tb_plugin.views import view_of
from tb_plugin.views.histories import MAX_HISTORIES, histories
from tb_plugin.views.history import history
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request, Response

    from tb_plugin import api
    from tb_plugin.readers.histories import Opening
    from tb_plugin.readers.history_list import FoundHistory
    from tb_plugin.readers.open_history import OpenHistory
    from tb_plugin.run import Run
    from tb_plugin.store import Store
    from tb_plugin.views.compare import Compared
    from tb_plugin.views.rank_histories import RankHistories

FIND_SECONDS: Final = 2.0
"""What looking for histories may take at a time."""
OPEN_SECONDS: Final = 1.0
"""How long `/history` waits for one that is being opened before it says how far it is."""
PICTURE_SECONDS: Final = 3.0
"""How long everything else waits for it."""

VIEWS: Final = (
    *("stacks", "allocations", "allocation_holders", "allocation_live"),
    *("allocation_block", "allocation_range"),
    *("segments", "segment_timeline", "allocator_events"),
)
"""Routes of what is made of an open history and a query."""

ROUTES: Final = ("histories", "history", "compare", "rank_histories", *VIEWS)


class HistoryRoutes:
    """Answers by the route's name."""

    def __init__(
        self,
        store: Store,
        summary: Callable[[Run], api.RunSummary],
        importer: Callable[[], Importer] = Importer,
    ) -> None:
        """`summary` of a run, whose lock is held; `importer` is called when needed."""
        self.reader: Final = HistoriesReader(importer)
        self._store = store
        self._kept = Kept()
        self._summary = summary

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing, is not there, or is not
                open yet.
        """
        query = parse_histories_query(request.args)
        if name == "histories":
            return self._histories(request, query)
        if name == "history":
            return self._history(request, query)
        if name == "compare":
            return self._compare(request, query)
        if name == "rank_histories":
            return self._rank_histories(request, query)
        return self._picture(name, request, query)

    def begin(self, path: str) -> None:
        """Begin to open a file that was named one by one; nobody waits for it."""
        for run in self._store.runs():
            listing = run.found.snapshots
            for file in () if listing is None else listing.found.files:
                if file.path == path:
                    with run.lock:
                        budget = Budget(FIND_SECONDS)
                        run.update(budget)
                        found = history_of(run, file.id, budget)
                    self.reader.open(run, found)
                    return

    def open_history(self, query: HistoriesQuery) -> OpenHistory:
        """The history of a query, opened.

        Raises:
            NotFoundError: there is no such history.
            NotReadyError: it is still being opened.
            UnreadableError: it cannot be opened.
        """
        if query.history is not None:
            known = self.reader.opened(query.run, query.history)
            if known is not None:
                return known
        found, opening = self._open(query)
        opening.wait(PICTURE_SECONDS)
        if opening.history is not None:
            return opening.history
        if opening.problem is not None:
            problem = opening.problem
            where = ", ".join(filter(None, (problem.path, problem.where)))
            raise UnreadableError(problem.what, where, problem.remedy)
        raise NotReadyError(
            "The history is still being opened.",
            shown_place(found),
            "Ask again in a moment.",
        )

    def _histories(self, request: Request, query: HistoriesQuery) -> Response:
        run = self._store.run(query.run)
        with run.lock:
            budget = Budget(FIND_SECONDS)
            run.update(budget)
            found = listed(run, budget)
            if budget.exhausted:
                run.expect_more()
            wanted = of_rank(found, query.rank)
            shown = map(self.reader.look_up, wanted[-MAX_HISTORIES:])
            states = [one and one.state for one in shown]
            etag = etag_of(self._store.epoch, "histories", run.version, query, states)
            unchanged = not_modified(request, etag, CONTENT_TYPE)
            if unchanged is not None:
                return unchanged
            response = histories(
                run,
                self._summary(run),
                found,
                wanted,
                self.reader.look_up,
                still_reading=budget.exhausted or run.unfinished,
            )
        return data_answer(request, envelope(response), etag)

    def _history(self, request: Request, query: HistoriesQuery) -> Response:
        found, opening = self._open(query)
        opening.wait(OPEN_SECONDS)
        run = self._store.run(query.run)
        with run.lock:
            summary = self._summary(run)
            version = run.version
        state = (opening.state, opening.progress, opening.doing)
        etag = etag_of(self._store.epoch, "history", version, found.key, *state)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response = history(summary, found, opening)
        self.reader.tidy()
        return data_answer(request, envelope(response), etag)

    def _compare(self, request: Request, query: HistoriesQuery) -> Response:
        a, b = self._compared(query), self._compared(query.other)
        keys = (a.history.key, a.summary, b.history.key, b.summary)
        etag = etag_of(self._store.epoch, "compare", keys, query)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        return data_answer(request, envelope(view_of("compare")(a, b, query)), etag)

    def _compared(self, query: HistoriesQuery) -> Compared:
        from tb_plugin.views.compare import Compared

        history = self.open_history(query)
        run = self._store.run(query.run)
        with run.lock:
            summary, found = self._summary(run), self._find(run, query)
        return Compared(summary, found, history, query.device, query.moment)

    @property
    def _ranks(self) -> RankHistories:
        def make() -> RankHistories:
            from tb_plugin.views.rank_histories import RankHistories

            return RankHistories(self.reader, self._store.cache)

        return self._kept.get("ranks", make)

    def _rank_histories(self, request: Request, query: HistoriesQuery) -> Response:
        from tb_plugin.views.rank_histories import belonging, rank_histories

        run = self._store.run(query.run)
        with run.lock:
            budget = Budget(FIND_SECONDS)
            run.update(budget)
            every = listed(run, budget)
            asked = self._find(run, query)
            summary, version = self._summary(run), run.version
            still_reading = budget.exhausted or run.unfinished
        title, chosen = belonging(every, asked)
        ranks = {one.reference.rank for one in every} - {None}
        facts, problems = self._ranks.read(run, chosen, Budget(FIND_SECONDS))
        # Of thousands of ranks the answer takes long to make, and is polled.
        decides = (
            title,
            [one.key for one in chosen],
            [*facts],
            problems,
            still_reading,
        )
        etag = etag_of(self._store.epoch, "rank_histories", version, *decides)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        response = rank_histories(
            summary,
            title,
            chosen,
            len(ranks),
            facts,
            problems,
            still_reading=still_reading,
        )
        return data_answer(request, envelope(response), etag)

    def _picture(self, name: str, request: Request, query: HistoriesQuery) -> Response:
        found = self.open_history(query)
        etag = etag_of(self._store.epoch, name, found.key, query)
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        return data_answer(request, envelope(view_of(name)(found, query)), etag)

    def _open(self, query: HistoriesQuery) -> tuple[FoundHistory, Opening]:
        run = self._store.run(query.run)
        with run.lock:
            found = self._find(run, query)
        return found, self.reader.open(run, found, query.again)

    def _find(self, run: Run, query: HistoriesQuery) -> FoundHistory:
        """The history of a query; hold the run's lock."""
        budget = Budget(FIND_SECONDS)
        run.update(budget)
        try:
            return _chosen(run, query, budget)
        except NotFoundError as error:
            if not (budget.exhausted or run.unfinished):
                raise
            raise NotReadyError(
                "The run is still being read: the history was not met yet.",
                error.where,
                "Ask again in a moment.",
            ) from None


def _chosen(run: Run, query: HistoriesQuery, budget: Budget) -> FoundHistory:
    if query.history is not None:
        return history_of(run, query.history, budget)
    found = default_of(listed(run, budget))
    if found is None:
        raise NotFoundError(
            "The run has no allocator history.",
            run.found.name[:80],
            "Record some with history=True, or put snapshots into the run's directory.",
        )
    return found
