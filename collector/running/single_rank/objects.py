"""Objects that ranks send each other: they do not travel through a virtual device.

torch sends objects as tensors of the group's device. Values on a virtual device are not
kept for others, so objects go another way: through the store, where all ranks run; through
files, where they run one after the other and most do not run at all. A rank whose objects
others need and that has not run is started for it (`calls.py`). Where everybody gives one,
those of absent ranks are taken to be this rank's own.
"""

from __future__ import annotations

import functools
import pickle
from inspect import signature
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from memboard.collector.running.single_rank.calls import CallError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.running.single_rank.calls import Absences


class Mail(Protocol):
    """How bytes get from one rank to others."""

    def put(self, key: str, content: bytes) -> None:
        """Send it: names are unique."""

    def get(self, key: str) -> bytes | None:
        """What was sent; waits where it will come, None where it has not been sent."""

    def need(self, key: str, rank: int) -> bytes:
        """What a rank sends; waits for it.

        Raises:
            CallError: it does not come; says why.
        """


class InStore:
    """Mail of ranks that all run, through the store they have met at."""

    def __init__(self, c10d: Any) -> None:
        self._c10d = c10d

    def put(self, key: str, content: bytes) -> None:
        self._c10d._get_default_store().set(f"memboard/{key}", content)  # noqa: SLF001

    def get(self, key: str) -> bytes | None:
        store = self._c10d._get_default_store()  # noqa: SLF001
        value: bytes = store.get(f"memboard/{key}")
        return value

    def need(self, key: str, rank: int) -> bytes:
        """Wait for the key, whoever sets it."""
        del rank
        return self.get(key) or b""


class _Here(NamedTuple):
    """This rank in a group."""

    ranks: list[int]
    me: int
    name: str
    """One that all ranks have for the group."""

    def one(self, arguments: Mapping[str, Any], argument: str) -> int:
        """The rank that `argument`, or its number in the group, names."""
        of_group, of_all = arguments.get(f"group_{argument}"), arguments.get(argument)
        if of_group is not None:
            return self.ranks[int(of_group)]
        return self.ranks[0] if of_all is None else int(of_all)


class Objects:
    """torch's functions for objects, over mail."""

    def __init__(self, c10d: Any, mail: Mail, absences: Absences) -> None:
        self._c10d = c10d
        self._mail = mail
        self._absences = absences
        self._numbers: dict[str, int] = {}

    def install(self, *, wanted: Callable[[Any], bool] = lambda _: True) -> None:
        """Take the place of torch's; `wanted` says of a group whether it needs that."""
        for function, ours, instead in (
            ("all_gather_object", self._all_gather, None),
            ("gather_object", self._gather, None),
            ("broadcast_object_list", self._broadcast, None),
            ("scatter_object_list", self._scatter, None),
            ("send_object_list", self._send_list, None),
            ("recv_object_list", self._receive_list, -1),
        ):
            theirs = getattr(self._c10d, function)
            setattr(self._c10d, function, self._chosen(theirs, ours, instead, wanted))

    def _chosen(
        self,
        theirs: Callable[..., Any],
        ours: Callable[[_Here, Mapping[str, Any]], Any],
        instead: Any,
        wanted: Callable[[Any], bool],
    ) -> Callable[..., Any]:
        """`ours` is given torch's arguments by name; a rank outside returns `instead`."""
        bind = signature(theirs).bind

        @functools.wraps(theirs)
        def called(*args: Any, **keywords: Any) -> Any:
            arguments = bind(*args, **keywords).arguments
            group = arguments.get("group")
            if not wanted(group):
                return theirs(*args, **keywords)
            here = self._here(group)
            return ours(here, arguments) if here.me in here.ranks else instead

        return called

    def _all_gather(self, here: _Here, arguments: Mapping[str, Any]) -> None:
        """Every rank's object on every rank."""
        key = self._next(f"all_gather/{here.name}")
        self._send(f"{key}/{here.me}", arguments["obj"])
        for place, rank in enumerate(here.ranks):
            arguments["object_list"][place] = self._given(
                f"{key}/{rank}", arguments["obj"]
            )

    def _gather(self, here: _Here, arguments: Mapping[str, Any]) -> None:
        """Every rank's object on one."""
        key = self._next(f"gather/{here.name}")
        self._send(f"{key}/{here.me}", arguments["obj"])
        gathered = arguments.get("object_gather_list")
        if here.me == here.one(arguments, "dst") and gathered is not None:
            for place, rank in enumerate(here.ranks):
                gathered[place] = self._given(f"{key}/{rank}", arguments["obj"])

    def _broadcast(self, here: _Here, arguments: Mapping[str, Any]) -> None:
        """One rank's objects on every rank."""
        source, objects = here.one(arguments, "src"), arguments["object_list"]
        key, own = self._next(f"broadcast/{here.name}/{source}"), list(objects)
        objects[:] = self._sent_or_received(key, here.me == source, source, own, own)

    def _scatter(self, here: _Here, arguments: Mapping[str, Any]) -> None:
        """One rank's objects, one on each rank."""
        source = here.one(arguments, "src")
        key = self._next(f"scatter/{here.name}/{source}")
        own = list(arguments.get("scatter_object_input_list") or ())
        every = self._sent_or_received(key, here.me == source, source, own, None)
        if every:
            mine = every[here.ranks.index(here.me)]
            arguments["scatter_object_output_list"][0] = mine

    def _send_list(self, here: _Here, arguments: Mapping[str, Any]) -> None:
        """Objects for one other rank."""
        to = here.one(arguments, "dst")
        key = self._next(f"send/{here.name}/{here.me}-{to}")
        self._send(key, list(arguments["object_list"]))

    def _receive_list(self, here: _Here, arguments: Mapping[str, Any]) -> int:
        """Objects of one other rank, whose number is returned."""
        source, objects = here.one(arguments, "src"), arguments["object_list"]
        key = self._next(f"send/{here.name}/{source}-{here.me}")
        objects[:] = self._received(key, source, list(objects))
        return source

    # Behind these.

    def _here(self, group: Any) -> _Here:
        c10d = self._c10d
        me = int(c10d.get_rank())
        if group is c10d.GroupMember.NON_GROUP_MEMBER:
            return _Here([], me, "")
        ranks = list(c10d.get_process_group_ranks(group or c10d.group.WORLD))
        return _Here(ranks, me, "-".join(map(str, _short(ranks))))

    def _next(self, key: str) -> str:
        """The same call of all ranks has the same number."""
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        return f"{key}/{number}"

    def _send(self, key: str, content: Any) -> None:
        self._mail.put(key, pickle.dumps(content))

    def _sent_or_received(
        self, key: str, is_ours: bool, source: int, own: Any, instead: Any
    ) -> Any:
        """What one rank has for all: its own, which it sends, or what it has sent."""
        if not is_ours:
            return self._received(key, source, instead)
        self._send(key, own)
        return own

    def _given(self, key: str, own: Any) -> Any:
        """What a rank has given, of what everybody gives; `own` where it has not run."""
        content = self._mail.get(key)
        return own if content is None else _opened(content)

    def _received(self, key: str, source: int, instead: Any) -> Any:
        """What a rank sends; `instead` where it cannot."""
        try:
            return _opened(self._mail.need(key, source))
        except CallError as failed:
            self._absences.add(
                f"Rank {source} sends objects to others, which go on with their own:"
                f" it was run for that, and {failed}"
            )
        return instead


def _opened(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  # the program's own, of this run


def _short(ranks: list[int]) -> list[int]:
    """A name of a group: of ranks that are evenly apart, first, last and number."""
    apart = {after - before for before, after in pairwise(ranks)}
    return [ranks[0], ranks[-1], len(ranks)] if len(apart) == 1 else ranks
