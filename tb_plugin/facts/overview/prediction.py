"""Whether a run on a virtual GPU would fit a real one, by what its ranks predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memboard.collector.format.prediction import NOTE, order, prediction_of, together
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.overview import LedgerRow
from memboard.tb_plugin.api.overview import Prediction as ApiPrediction

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from memboard.collector.format.prediction import Prediction
    from memboard.tb_plugin.index.run import Run


def predictions_of(run: Run, ranks: Container[int]) -> dict[int, Prediction]:
    """What the last attempt says of each rank; empty where the devices were real."""
    files = run.attempts[-1].files if run.attempts else {}
    found = {}
    for event in run.notes.events(NOTE):
        file = files.get(event.rank)
        if file is not None and file.attempt == event.attempt:
            prediction = prediction_of(event.data)
            if prediction is not None:
                found[event.rank] = prediction
    complete = together(list(found.values()))
    return {
        rank: one for rank, one in zip(found, complete, strict=True) if rank in ranks
    }


def prediction_response(found: Mapping[int, Prediction]) -> ApiPrediction | None:
    """The answer for all of them, with the figures of the rank that decides it."""
    if not found:
        return None
    rank = min(sorted(found), key=lambda rank: order(found[rank]))
    prediction = found[rank]
    judged = prediction.judged()
    of = f"Rank {rank}, the worst of {len(found)}: " if len(found) > 1 else ""
    return ApiPrediction(
        fit=judged.fit,
        sentences=tuple(filter(None, (f"{of}{judged.reason}", judged.decides))),
        rows=tuple(_ledger(prediction)),
    )


def _ledger(found: Prediction) -> Iterator[LedgerRow]:
    """What a real device would hold: measured, estimated, and of other ranks."""

    def on(device: Any) -> str:
        return f" of device {device.index}" if len(found.devices) > 1 else ""

    for device in found.devices:
        peak = float(device.reserved_peak)
        source = "PyTorch's own allocator, on the virtual GPU"
        yield LedgerRow(f"Peak reserved{on(device)}", peak, peak, "", source)
    for one in found.estimates:
        mark = "measured" if one.low == one.high else "estimated"
        yield LedgerRow(one.name, float(one.low), float(one.high), mark, one.source)
    for device in found.devices:
        low, high = found.others[device.index]
        if high > 0:
            mark = "" if low == high else "estimated"
            source = "what they reserved, and their estimates"
            label = f"Other ranks{on(device)}"
            yield LedgerRow(label, float(low), float(high), mark, source)
    source = f"of the device's {size_text(found.capacity)}"
    for device in found.devices:
        label = f"Needed{on(device)}"
        if not found.has_run:
            unknown = f"{source}: not known, as it did not run its steps"
            yield LedgerRow(label, None, None, "", unknown, is_total=True)
            continue
        low, high = found.needed(device)
        mark = "" if low == high else "estimated"
        yield LedgerRow(label, float(low), float(high), mark, source, is_total=True)
