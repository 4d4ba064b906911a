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
    by_rank = {}
    for event in run.notes.events(NOTE):
        file = files.get(event.rank)
        if file is not None and file.attempt == event.attempt:
            prediction = prediction_of(event.data)
            if prediction is not None:
                by_rank[event.rank] = prediction
    complete = together(list(by_rank.values()))
    return {
        rank: prediction
        for rank, prediction in zip(by_rank, complete, strict=True)
        if rank in ranks
    }


def prediction_response(predictions: Mapping[int, Prediction]) -> ApiPrediction | None:
    """The answer for all of them, with the figures of the rank that decides it."""
    if not predictions:
        return None
    rank = min(sorted(predictions), key=lambda rank: order(predictions[rank]))
    prediction = predictions[rank]
    judged = prediction.judged()
    of = (
        f"Rank {rank}, the worst of {len(predictions)}: "
        if len(predictions) > 1
        else ""
    )
    return ApiPrediction(
        fit=judged.fit,
        sentences=tuple(filter(None, (f"{of}{judged.reason}", judged.decides))),
        rows=tuple(_ledger(prediction)),
    )


def _ledger(prediction: Prediction) -> Iterator[LedgerRow]:
    """What a real device would hold: measured, estimated, and of other ranks."""

    def on(device: Any) -> str:
        return f" of device {device.index}" if len(prediction.devices) > 1 else ""

    for device in prediction.devices:
        peak = float(device.reserved_peak)
        source = "PyTorch's own allocator, on the virtual GPU"
        yield LedgerRow(f"Peak reserved{on(device)}", peak, peak, "", source)
    for estimate in prediction.estimates:
        mark = "measured" if estimate.low == estimate.high else "estimated"
        yield LedgerRow(
            estimate.name,
            float(estimate.low),
            float(estimate.high),
            mark,
            estimate.source,
        )
    for device in prediction.devices:
        low, high = prediction.others[device.index]
        if high > 0:
            mark = "" if low == high else "estimated"
            source = "what they reserved, and their estimates"
            label = f"Other ranks{on(device)}"
            yield LedgerRow(label, float(low), float(high), mark, source)
    source = f"of the device's {size_text(prediction.capacity)}"
    for device in prediction.devices:
        label = f"Needed{on(device)}"
        if not prediction.has_run:
            unknown = f"{source}: not known, as it did not run its steps"
            yield LedgerRow(label, None, None, "", unknown, is_total=True)
            continue
        low, high = prediction.needed(device)
        mark = "" if low == high else "estimated"
        yield LedgerRow(label, float(low), float(high), mark, source, is_total=True)
