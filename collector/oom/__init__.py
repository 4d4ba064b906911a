"""Out-of-memory errors and other ends: a report at once, then a snapshot.

    witness.py      what one recorder does when told: which errors count, and once each
    reporting.py    making reports: a budget, the report at once, then the snapshot
    report.py       the report: what is known of the memory at that moment
    facts.py        the numbers in it: device, host, stacks, holders
    message.py      numbers out of the text of an exception
    history.py      the allocator's history, recorded beforehand
    observer.py     torch's observer, one per process; who of the live recorders is told
    turns.py        uncaught exceptions and SIGTERM
    torch_side.py   torch's private functions: the seam

The user's exception is never replaced or delayed by more than a second or two; what fails
in here is told once, in the log, and is otherwise as if it had not been there. What the
report and the snapshot look like on disk is said in `collector.format.oom`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.config import RecordConfig
    from collector.core.engine import Engine
    from collector.core.warn_once import Troubles
    from collector.functions.windows import Windows
    from collector.oom.witness import OomWitness
    from collector.steps.progress import Progress

__all__ = ["open_witness"]


def open_witness(
    *,
    config: RecordConfig,
    engine: Engine,
    progress: Progress,
    troubles: Troubles,
    windows: Windows,
) -> OomWitness | None:
    """Begin to watch for one recorder; None where that is switched off."""
    if not config.oom.enabled:
        return None
    from collector.oom.reporting import Context
    from collector.oom.witness import OomWitness
    from collector.steps.spans.stack import under_way

    witness = OomWitness(
        Context(
            config=config,
            engine=engine,
            progress=progress,
            troubles=troubles,
            spans=under_way,
            functions=windows.functions,
            known=windows.known_storages,
        )
    )
    witness.start()
    return witness
