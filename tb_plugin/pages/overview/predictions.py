"""Of runs on a virtual GPU: what a real one would need, and whether the run fits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.format.prediction import NOTE, order, prediction_of, together
from tb_plugin.api.overview import Estimate, PredictedDevice
from tb_plugin.api.overview import Prediction as ApiPrediction

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from collector.format.prediction import Prediction
    from tb_plugin.index.run import Run


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
    low, high = prediction.outside
    has_run = prediction.has_run
    return ApiPrediction(
        fit=judged.fit,
        reason=judged.reason,
        decides=judged.decides,
        rank=rank,
        num_ranks=len(found),
        estimates=tuple(
            Estimate(
                name=one.name,
                low_bytes=float(one.low),
                high_bytes=float(one.high),
                source=one.source,
            )
            for one in prediction.estimates
        ),
        outside_low_bytes=float(low),
        outside_high_bytes=float(high),
        capacity_bytes=float(prediction.capacity),
        devices=tuple(
            PredictedDevice(
                device=one.index,
                peak_reserved_bytes=float(one.reserved_peak),
                others_low_bytes=float(prediction.others[one.index][0]),
                others_high_bytes=float(prediction.others[one.index][1]),
                needed_low_bytes=float(prediction.needed(one)[0]) if has_run else None,
                needed_high_bytes=float(prediction.needed(one)[1]) if has_run else None,
            )
            for one in prediction.devices
        ),
    )
