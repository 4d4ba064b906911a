"""Parts of the step's time that were not recorded: why, and which setting records them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.series.step_parts import PARTS
from tb_plugin.api.steps import AbsentPart

if TYPE_CHECKING:
    from collections.abc import Collection

    from tb_plugin.index.run import Run

_SEEN_BY: Final[dict[str, tuple[str, str]]] = {
    "dataloader": (
        "no dataloader was seen",
        "iterate a torch DataLoader, or wrap yours: rec.loader(dataloader)",
    ),
    "forward": (
        "no model is attached",
        "attach it: rec.attach(model, optimizer)",
    ),
    "backward": (
        "no backward was seen",
        "attach the model, and call loss.backward() on the training thread",
    ),
    "optimizer": (
        "no optimizer was seen",
        "attach it: rec.attach(model, optimizer)",
    ),
    "zero_grad": (
        "no optimizer was seen",
        "attach it: rec.attach(model, optimizer)",
    ),
    "checkpoint": (
        "no checkpoint was seen",
        (
            "torch.save and torch.distributed.checkpoint are seen by themselves; around"
            ' others put rec.span("checkpoint")'
        ),
    ),
    "eval": (
        "no evaluation was seen",
        'put it into rec.phase("eval"), or use a trainer integration',
    ),
    "communication": (
        "no collective was seen on the training thread",
        (
            "collectives inside a backward (DDP, FSDP) count as that; a torch profile shows"
            " them by themselves"
        ),
    ),
}


def absent_parts(
    run: Run, rank: int | None, recorded: Collection[str]
) -> tuple[AbsentPart, ...]:
    """What the rank did not record of the parts of its steps."""
    off = _switched_off(run, rank)
    return tuple(
        AbsentPart(name, *(off or _SEEN_BY[name]))
        for name in PARTS
        if name not in recorded
    )


def _switched_off(run: Run, rank: int | None) -> tuple[str, str] | None:
    """Why no part of any step was recorded; None where some could be."""
    if run.made_of != "recording":
        return "the files of another tool hold no steps", "record with collector.record"
    files = [file for _, file in run.rank_files(rank)] if rank is not None else []
    config = files[-1].header.config if files else {}
    spans = config.get("spans")
    if not isinstance(spans, dict):
        return (
            "the recording knows no parts of steps",
            "record with spans.automatic=True (the default of newer versions)",
        )
    for name in ("enabled", "automatic"):
        if spans.get(name) is False:
            return f"spans.{name} is off", f"set spans.{name}=True"
    return None
