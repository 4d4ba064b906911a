"""Reports of out-of-memory errors in built runs, as the recorder lays them down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of

if TYPE_CHECKING:
    from tests.builders import RankBuilder
    from tests.simulate import OomCase

GIB = 1 << 30

FORWARD = ("forward", "/home/me/train/model.py", 128)
LIBRARY = ("linear", "/usr/lib/python3.12/site-packages/torch/nn/functional.py", 116)
OPTIMIZER = ("step", "/home/me/train/optim.py", 40)


def add_report(
    rank: RankBuilder,
    *,
    number: int = 1,
    origin: str = "oom",
    step: int | None = 40,
    tables: dict[str, Any] | None = None,
    entry: dict[str, Any] | None = None,
    **meta: Any,
) -> None:
    """A report of a full device of 80 GiB; `meta` changes what it says."""
    known: dict[str, Any] = {
        **oom.META,
        "report": number,
        "origin": origin,
        "num_ooms": number,
        "device_type": "cuda",
        "device": 0,
        "requested_bytes": 2 * GIB,
        "device_free_bytes": GIB,
        "device_total_bytes": 80 * GIB,
        "memory": {
            **dict.fromkeys(oom.MEMORY),
            "allocated_bytes": 77 * GIB,
            "active_bytes": 77 * GIB,
            "reserved_bytes": 78 * GIB,
            "reserved_peak_bytes": 78 * GIB,
        },
        "spans": ["epoch", "backward"],
        "allocator": {"settings": "", "backend": "native"},
        "history": {"recording": "ours", "events": True, "why_not": ""},
        "holders": {"live_bytes": 77 * GIB, "num_blocks": 40, "source": "segments"},
        **meta,
    }
    rank.capture(
        oom.KIND,
        "backward",
        step=step,
        iteration=0,
        label=origin,
        meta=known,
        tables=report_tables() if tables is None else tables,
        **({} if entry is None else entry),
    )


def report_tables() -> dict[str, Any]:
    """Who asked, and two lines that hold everything but a little."""
    held = [
        (40 * GIB, 30, (LIBRARY, FORWARD), CATEGORIES.index("activation")),
        (30 * GIB, 9, (OPTIMIZER,), CATEGORIES.index("optimizer")),
        (3 * GIB, 1, (LIBRARY, FORWARD), CATEGORIES.index("activation")),
        (GIB, 1, (), -1),
    ]
    return {
        "stack": oom.stack_table([(LIBRARY, FORWARD)]),
        **oom.holder_tables(held),
        "categories": oom.category_table(
            [
                (CATEGORIES.index("param"), 4 * GIB, 10),
                (CATEGORIES.index("optimizer"), 30 * GIB, 20),
            ]
        ),
    }


def add_error(rank: RankBuilder, case: OomCase, *, number: int = 1) -> None:
    """A report with the history of a simulated error, as the rank that had it."""
    label = case.label
    memory = {
        **dict.fromkeys(oom.MEMORY),
        "allocated_bytes": label.allocated_bytes,
        "active_bytes": label.active_bytes,
        "reserved_bytes": label.reserved_bytes,
    }
    add_report(
        rank,
        number=number,
        step=label.num_steps,
        tables=report_tables(),
        requested_bytes=label.requested_bytes,
        device_free_bytes=label.device_free_bytes,
        device_total_bytes=label.device_total_bytes,
        memory=memory,
        holders={"live_bytes": label.active_bytes, "num_blocks": 1, "source": ""},
    )
    rank.capture(
        "history",
        "",
        step=label.num_steps,
        iteration=0,
        label="oom",
        context="oom",
        meta={"report": number},
        tables=tables_of(case.snapshot()),
    )
