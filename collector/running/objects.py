"""Objects that ranks send each other: they do not travel through a virtual device.

torch sends objects as tensors of the group's device. Values on a virtual device are not
kept for others, so objects go another way: through the store, where all ranks run; through
files, where they run one after the other and most do not run at all. A rank whose objects
others need and that has not run is started for it (`calls.py`). Where everybody gives one,
those of absent ranks are taken to be this rank's own.
"""

from __future__ import annotations

import pickle
import sys
from inspect import signature
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from collector.running.calls import CallFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.running.calls import Absences


class Mail(Protocol):
    """How bytes get from one rank to others."""

    def put(self, name: str, content: bytes) -> None:
        """Send it: names are unique."""

    def get(self, name: str) -> bytes | None:
        """What was sent; waits where it will come, None where it has not been sent."""

    def need(self, name: str, rank: int) -> bytes:
        """What a rank sends; waits for it.

        Raises:
            CallFailed: it does not come; says why.
        """


class InStore:
    """Mail of ranks that all run, through the store they have met at."""

    def __init__(self, c10d: Any) -> None:
        self._c10d = c10d

    def put(self, name: str, content: bytes) -> None:
        """Set a key."""
        self._c10d._get_default_store().set(f"memboard/{name}", content)  # noqa: SLF001

    def get(self, name: str) -> bytes | None:
        """Wait for the key."""
        store = self._c10d._get_default_store()  # noqa: SLF001
        found: bytes = store.get(f"memboard/{name}")
        return found

    def need(self, name: str, rank: int) -> bytes:
        """Wait for the key, whoever sets it."""
        del rank
        return self.get(name) or b""


class Objects:
    """torch's functions for objects, over mail."""

    def __init__(self, c10d: Any, mail: Mail, absences: Absences) -> None:
        self._c10d = c10d
        self._mail = mail
        self._absences = absences
        self._numbers: dict[str, int] = {}

    def install(self, *, wanted: Callable[[Any], bool] = lambda _: True) -> None:
        """Take the place of torch's; `wanted` says of a group whether it needs that."""
        for name in (
            *("all_gather_object", "gather_object", "broadcast_object_list"),
            *("scatter_object_list", "send_object_list", "recv_object_list"),
        ):
            theirs = getattr(self._c10d, name)
            setattr(self._c10d, name, _chosen(getattr(self, name), theirs, wanted))

    # As torch has them.

    def all_gather_object(
        self, object_list: list[Any], obj: Any, group: Any = None
    ) -> None:
        """Every rank's object on every rank."""
        ranks, me, name = self._known(group)
        if me not in ranks:
            return
        key = self._next(f"all_gather/{name}")
        self._send(f"{key}/{me}", obj)
        for place, rank in enumerate(ranks):
            object_list[place] = self._given(f"{key}/{rank}", obj)

    def gather_object(
        self,
        obj: Any,
        object_gather_list: list[Any] | None = None,
        dst: int | None = None,
        group: Any = None,
        group_dst: int | None = None,
    ) -> None:
        """Every rank's object on one."""
        ranks, me, name = self._known(group)
        if me not in ranks:
            return
        key = self._next(f"gather/{name}")
        self._send(f"{key}/{me}", obj)
        if me == _one(ranks, dst, group_dst) and object_gather_list is not None:
            for place, rank in enumerate(ranks):
                object_gather_list[place] = self._given(f"{key}/{rank}", obj)

    def broadcast_object_list(
        self,
        object_list: list[Any],
        src: int | None = None,
        group: Any = None,
        device: Any = None,  # noqa: ARG002  # as torch has it
        group_src: int | None = None,
    ) -> None:
        """One rank's objects on every rank."""
        ranks, me, name = self._known(group)
        if me not in ranks:
            return
        source, own = _one(ranks, src, group_src), list(object_list)
        key = self._next(f"broadcast/{name}/{source}")
        object_list[:] = self._sent_or_received(key, me == source, source, own, own)

    def scatter_object_list(
        self,
        scatter_object_output_list: list[Any],
        scatter_object_input_list: list[Any] | None = None,
        src: int | None = None,
        group: Any = None,
        group_src: int | None = None,
    ) -> None:
        """One rank's objects, one on each rank."""
        ranks, me, name = self._known(group)
        if me not in ranks:
            return
        source = _one(ranks, src, group_src)
        key = self._next(f"scatter/{name}/{source}")
        own = list(scatter_object_input_list or ())
        every = self._sent_or_received(key, me == source, source, own, None)
        if every:
            scatter_object_output_list[0] = every[ranks.index(me)]

    def send_object_list(
        self,
        object_list: list[Any],
        dst: int | None = None,
        group: Any = None,
        device: Any = None,  # noqa: ARG002
        group_dst: int | None = None,
        use_batch: bool = False,  # noqa: ARG002
    ) -> None:
        """Objects for one other rank."""
        ranks, me, name = self._known(group)
        if me in ranks:
            to = _one(ranks, dst, group_dst)
            self._send(self._next(f"send/{name}/{me}-{to}"), list(object_list))

    def recv_object_list(
        self,
        object_list: list[Any],
        src: int | None = None,
        group: Any = None,
        device: Any = None,  # noqa: ARG002
        group_src: int | None = None,
        use_batch: bool = False,  # noqa: ARG002
    ) -> int:
        """Objects of one other rank, whose number is returned."""
        ranks, me, name = self._known(group)
        if me not in ranks:
            return -1
        source = _one(ranks, src, group_src)
        key = self._next(f"send/{name}/{source}-{me}")
        object_list[:] = self._received(key, source, list(object_list))
        return source

    # Behind these.

    def _known(self, group: Any) -> tuple[list[int], int, str]:
        """The group's ranks, this one, and a name that all of them have for it."""
        c10d = self._c10d
        me = int(c10d.get_rank())
        if group is c10d.GroupMember.NON_GROUP_MEMBER:
            return [], me, ""
        ranks = list(c10d.get_process_group_ranks(group or c10d.group.WORLD))
        return ranks, me, "-".join(map(str, _short(ranks)))

    def _next(self, key: str) -> str:
        """The same call of all ranks has the same number."""
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        return f"{key}/{number}"

    def _send(self, name: str, content: Any) -> None:
        self._mail.put(name, pickle.dumps(content))

    def _sent_or_received(
        self, name: str, is_ours: bool, source: int, own: Any, instead: Any
    ) -> Any:
        """What one rank has for all: its own, which it sends, or what it has sent."""
        if not is_ours:
            return self._received(name, source, instead)
        self._send(name, own)
        return own

    def _given(self, name: str, own: Any) -> Any:
        """What a rank has given, of what everybody gives; `own` where it has not run."""
        content = self._mail.get(name)
        return own if content is None else _opened(content)

    def _received(self, name: str, source: int, instead: Any) -> Any:
        """What a rank sends; `instead` where it cannot."""
        try:
            return _opened(self._mail.need(name, source))
        except CallFailed as failed:
            self._absences.add(
                f"Rank {source} sends objects to others, which go on with their own:"
                f" it was run for that, and {failed}"
            )
        return instead


def _opened(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  # the program's own, of this run


def _one(ranks: list[int], of_all: int | None, of_group: int | None) -> int:
    """The rank that either number means."""
    if of_group is not None:
        return ranks[of_group]
    return ranks[0] if of_all is None else of_all


def _short(ranks: list[int]) -> list[int]:
    """A name of a group: of ranks that are evenly apart, first, last and number."""
    apart = {after - before for before, after in pairwise(ranks)}
    return [ranks[0], ranks[-1], len(ranks)] if len(apart) == 1 else ranks


def _chosen(
    ours: Callable[..., Any], theirs: Callable[..., Any], wanted: Callable[[Any], bool]
) -> Callable[..., Any]:
    taken = signature(ours).parameters

    def called(*args: Any, **keywords: Any) -> Any:
        group = keywords.get("group")
        if group is None:  # by place, it stands at different ones
            group = next((one for one in args if _is_group(one)), None)
        if not wanted(group):
            return theirs(*args, **keywords)
        # How to read what another rank sends, as 2.15 has it, is no matter here.
        return ours(*args, **{key: keywords[key] for key in keywords if key in taken})

    called.__name__ = theirs.__name__
    return called


def _is_group(value: Any) -> bool:
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    return isinstance(value, c10d.ProcessGroup)
