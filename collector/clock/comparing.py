"""Comparisons of this rank's clock with rank 0's while training runs, as notes.

Notes of kind `clock` hold what `exchange.Comparison.data` says, `monotonic_ns` (the
moment), `wall_ahead_ns` (how far the wall clock was ahead of recorded times then), the
schedule's `cycle` and `host_id`. A wall clock that was set is a note of kind
`clock_jump`. What is not known is said: a comparison by wall clock alone has no bound
where the system knows none.

Files are exchanged on a thread of their own that training never waits for. Round trips
through torch.distributed are the exception: they are calls that all ranks make between
two steps, and therefore happen only where the settings ask for them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from collector.clock.distributed import RoundTrips
from collector.clock.exchange import (
    REFERENCE_RANK,
    Card,
    Comparison,
    best_of,
    same_host,
)
from collector.clock.files import Answerer, Asker
from collector.clock.process_clock import PROCESS_CLOCK
from collector.clock.system import host_id, wall_error_ns
from collector.config.schedule import Action
from collector.format.names import RANK_FILES_DIR
from collector.trouble import warn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.clock.exchange import RoundTrip
    from collector.clock.process_clock import ProcessClock
    from collector.config.sections import ClockConfig
    from collector.loop.cycles import Cut, Cycles
    from collector.rank import Identity
    from collector.trouble import Troubles

    Note = Callable[[str, dict[str, Any]], None]

FOLDER: Final = "clocks"
"""Beside the rank files: questions and answers."""

_JUMP_NS: Final = 1_000_000
"""What the wall clock may wander off between two looks without having been set."""

_SETTLE_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 0.2


class ClockComparing:
    """Of one recording; see the module. Never raises."""

    def __init__(
        self,
        config: ClockConfig,
        run_dir: Path,
        identity: Callable[[], Identity],
        note: Note,
        cycles: Cycles,
        troubles: Troubles,
        clock: ProcessClock = PROCESS_CLOCK,
    ) -> None:
        """`identity`: who this process is, as far as is known by now."""
        self._config = config
        self._folder = run_dir.joinpath(*RANK_FILES_DIR, FOLDER)
        self._identity = identity
        self._note = note
        self._cycles = cycles
        self._troubles = troubles
        self._clock = clock
        self._card = Card(host_id(), clock.to_wall_ns)
        self._ahead_ns = clock.ahead_ns()
        self._trips: RoundTrips | None = None
        self._last_cycle = 0
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Compare from now on. Every recording holds how far its wall clock may be off."""
        if not self._config.enabled:
            return
        self._tell_wall()
        if self._config.method == "distributed":
            self._trips = RoundTrips(self._clock, self._card)
            self._cycles.listen_to_edges(self)
        elif self._config.method != "wall":
            self._cycles.listen_to_edges(self)
            self._start_files()

    def look(self) -> None:
        """Notice a wall clock that was set. On the writer's thread."""
        ahead = self._clock.ahead_ns()
        jumped = ahead - self._ahead_ns
        if abs(jumped) < _JUMP_NS:
            return
        self._ahead_ns = ahead
        self._note("clock_jump", {"jumped_ns": jumped, "wall_ahead_ns": ahead})
        self._tell_wall()
        self._troubles.tell(
            "clock",
            "the wall clock of this host was set by %+.3f s. Recorded times do not follow:"
            " they stay true to one another. Keep clocks by slewing (chrony, ntpd).",
            jumped / 1e9,
        )

    def close(self) -> None:
        """Compare no more; does not wait for what is under way."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    # For `loop.cycles`, on the thread that trains.

    def begin(self, step: int) -> None:  # noqa: ARG002  # see `StepListener`
        """A cycle's first step is a moment to compare at."""
        if self._cycles.cycle != self._last_cycle:
            self._last_cycle = self._cycles.cycle
            self._compare_now()

    def end(self, step: int) -> None:  # noqa: ARG002
        """So is its last one."""
        if self._cycles.action is Action.ACTIVE_AND_SAVE:
            self._compare_now()

    def cut(self, why: Cut) -> None:
        """Other ranks may not be cut: nothing to wait for together."""

    def _compare_now(self) -> None:
        if self._trips is None:
            self._wake.set()
            return
        try:
            if self._trips.is_possible:
                trips = self._trips.make(self._config.round_trips)
                self._tell(trips, self._trips.reference, "distributed")
        except Exception as error:  # noqa: BLE001  # the border to training
            self._trips = None
            self._troubles.tell(
                "clock distributed",
                "clocks could not be compared through torch.distributed; from now on that"
                " is done through files. Every rank must reach the same cycles of the"
                " schedule, and torch must have gloo.",
                error=error,
            )
            self._start_files()

    # Through files, on a thread of its own.

    def _start_files(self) -> None:
        self._thread = threading.Thread(
            target=self._run, name="memboard-clock", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self._exchange()
        except Exception as error:  # noqa: BLE001  # the border: nothing is left of it
            self._tell_absent(f"{type(error).__name__}: {error}")

    def _exchange(self) -> None:
        while not self._identity().settled and not self._stop.wait(_SETTLE_SECONDS):
            pass  # nobody else knows either, and there is nobody to ask
        if self._stop.is_set() or self._identity().world_size == 1:
            return
        if self._identity().rank == REFERENCE_RANK:
            Answerer(self._folder, lambda: self._card, self._clock).serve(self._stop)
            return
        asker = Asker(self._folder, self._identity().rank, self._clock, self._stop)
        try:
            self._ask_on(asker)
        finally:
            asker.remove()

    def _ask_on(self, asker: Asker) -> None:
        was_answered = True
        while not self._stop.is_set():
            trips = asker.ask(self._config.round_trips)
            if trips:
                self._tell(trips, asker.reference, "files")
                if _shares_clock(self._card, asker.reference):
                    return  # the offset is exact and stays what it is
            elif was_answered and not self._stop.is_set():
                self._tell_absent("rank 0 does not answer")
            was_answered = bool(trips)
            self._wake.wait(self._config.interval_seconds)
            self._wake.clear()

    # What comes of it.

    def _tell(
        self, trips: list[RoundTrip], reference: Card | None, method: Any
    ) -> None:
        found = best_of(trips, method)
        if found is not None and reference is not None:
            found = same_host(self._card, reference, found.at_ns) or found
        if found is not None:
            self._put(found)

    def _tell_wall(self) -> None:
        self._put(
            Comparison(
                at_ns=self._clock.now_ns(),
                offset_ns=self._ahead_ns,
                error_ns=wall_error_ns(),
                method="wall",
                reference_rank=None,
            )
        )

    def _put(self, found: Comparison) -> None:
        place = {
            "monotonic_ns": found.at_ns - self._clock.to_wall_ns,
            "wall_ahead_ns": self._ahead_ns,
            "cycle": self._cycles.cycle,
            "host_id": self._card.host,
        }
        self._note("clock", {**found.data(), **place})

    def _tell_absent(self, reason: str) -> None:
        data = {
            "name": "clock",
            "status": "absent",
            "reason": reason,
            "remedy": "Record into one directory that all hosts share, or set"
            " clock.method to distributed.",
            "cost": "",
        }
        try:
            self._note("source", data)
        except Exception as error:  # noqa: BLE001  # there is nowhere else to say it
            warn("clocks are not compared: %s", reason, error=error)


def _shares_clock(mine: Card, reference: Card | None) -> bool:
    return reference is not None and bool(mine.host) and mine.host == reference.host
