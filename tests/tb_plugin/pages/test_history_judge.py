"""Histories judged in the background: once each, and few at a time."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from memboard.tb_plugin.facts.findings import judge as module
from memboard.tb_plugin.facts.findings.judge import HistoryJudge, HistoryVerdict
from memboard.tb_plugin.formats.snapshots.files.listing import FoundSnapshot
from memboard.tb_plugin.index.history_list import FoundHistory, reference_of_file
from memboard.tb_plugin.jobs.job import Job
from memboard.tb_plugin.worker.cache import FileKey

RUN: Any = SimpleNamespace(made_of="snapshots")
RECORDING: Any = SimpleNamespace(made_of="recording")
HISTORY: Any = object()


def found(number: int) -> FoundHistory:
    file = FoundSnapshot(
        f"f{number}", f"/{number}", f"{number}", FileKey(1, number, 10, 1)
    )
    return FoundHistory("run", reference_of_file(file), "file", file)


class Opened:
    """A reader whose histories are all open already."""

    num_ended = 0

    def known(self, key: object) -> Job[Any, Any]:
        opening: Any = Job(SimpleNamespace(key=key))  # type: ignore[type-var]
        opening.end(HISTORY, None)
        return opening


@pytest.fixture
def go_on(monkeypatch):
    event = threading.Event()

    def judge(_: object, *, with_end: bool) -> HistoryVerdict:
        event.wait(300)
        return HistoryVerdict(None, None, has_end=with_end)

    monkeypatch.setattr(module, "judge", judge)
    yield event
    event.set()


def test_only_so_many_histories_are_held_while_they_wait(go_on):
    judge: Any = HistoryJudge(Opened())  # type: ignore[arg-type]  # as far as it is asked
    many = [found(number) for number in range(3 * module.MAX_WAITING)]
    for history in many:
        assert judge.ask(RUN, history, open_it=False) is None
        assert judge.is_under_way(history)  # some wait to be asked for again
    assert len(judge._under_way) == module.MAX_WAITING
    go_on.set()
    left = many
    for _ in range(10):
        left = [
            one for one in left if not judge.ask(RUN, one, open_it=False, seconds=60)
        ]
    assert not left
    assert not judge._under_way
    assert not any(map(judge.is_under_way, many))


def test_the_last_event_is_judged_where_findings_rest_on_it(go_on):
    go_on.set()
    judge: Any = HistoryJudge(Opened())  # type: ignore[arg-type]  # as far as it is asked

    def has_end(run: Any) -> bool:
        judged = judge.ask(run, found(1), open_it=False, seconds=60)
        assert not judge.is_under_way(found(1))
        return bool(judged.has_end)

    # The file may lie in the folder of a recording, too.
    assert [has_end(run) for run in (RUN, RUN, RECORDING, RUN)] == [0, 0, 1, 1]
    assert judge.version[0] == 2
