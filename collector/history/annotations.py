"""Has torch note in its history which tensor an allocation holds, while it is there.

A capture names the tensors of its own moment; gradients and saved tensors are gone by then.
torch 2.14 and newer write an `annotate` event for an allocation that exists already. So in
collected calls parameters, gradients, buffers and saved tensors are annotated as a backward
and an optimizer's step begin, and the optimizer's states as it ends: in our captures, and
in whatever snapshot the program itself takes.

What stays where it is needs one annotation. A gradient is mostly a new allocation in each
step, also at its old address, and each allocation needs its own: once all was annotated, a
step looks for gradients alone, as long as no parameter or buffer has moved.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.plain import forgiving
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots.tags import annotation_text
from memboard.collector.hooks import torch_calls

if TYPE_CHECKING:
    from memboard.collector.history.recording import HistoryRecording
    from memboard.collector.history.tensor_walk import Members
    from memboard.collector.history.tensors import Parts, TensorMap

_STAY: Final = frozenset(
    map(CATEGORIES.index, ("param", "buffer", "optimizer", "sharded_param"))
)
"""Categories of what stays where it is: annotated once, and not in each step."""

MAX_ANNOTATIONS: Final = 20_000
"""At one moment, at two microseconds each; the rest goes without."""


class TensorAnnotations:
    """Annotates what a `TensorMap` knows, between `start` and `stop`."""

    def __init__(self, recording: HistoryRecording, tensors: TensorMap) -> None:
        self._recording = recording
        self._tensors = tensors
        self._is_listening = False
        self._annotated: dict[int, tuple[int, str]] = {}
        """By address: category and name of what stays there."""
        self._texts: dict[tuple[int, str], str] = {}
        """By category and name: making one takes longer than all else."""
        self._has_all = False
        """Whether parameters and optimizers' states were looked at."""
        self._gradient_texts: dict[str, str] = {}
        self._members: Members | None = None
        """The model's since then; None: only a walk finds what is new."""

    def start(self) -> None:
        """From now on; of no effect where torch cannot."""
        if not self._is_listening and self._recording.allocator.can_annotate:
            self._is_listening = True
            torch_calls.listen(self, (torch_calls.BACKWARD, torch_calls.OPTIMIZER))

    def stop(self) -> None:
        """No more: torch's functions are as they were."""
        if self._is_listening:
            self._is_listening = False
            torch_calls.leave(self)
        self._annotated.clear()
        self._texts.clear()
        self._gradient_texts.clear()
        self.look_again()

    def look_again(self) -> None:
        """The model or its optimizers are others."""
        self._has_all = False
        self._members = None

    # As a listener of backwards and optimizers.

    def begin(self, part: str, _name: str, _args: Any, /) -> Any:
        """Saved tensors are here as a backward begins, then gradients."""
        if part == torch_calls.BACKWARD:
            parts: Parts = ("known",) if self._has_all else ("model", "known")
            self._annotate(parts)
            return None
        if not self._has_all:
            self._annotate(("model",))
            return part
        if self._members is None or not self._annotate_gradients(self._members):
            self._annotate(("model",))
            self._members = self._tensors.members()
        return None

    def end(self, _begun: Any, _failed: bool, /) -> None:
        """Optimizers have set up their states, which bear the parameters' names."""
        self._annotate(("model", "optimizers"))
        self._has_all = True
        self._members = self._tensors.members()

    def after_fork(self) -> bool:
        """A child records no history of ours."""
        return False

    def _annotate(self, parts: Parts) -> None:
        recording, annotated, texts = self._recording, self._annotated, self._texts
        if not recording.is_ours:
            return  # the program's own history says what the program wants
        with forgiving:
            tensors = self._tensors.found(parts)
            if tensors is None:
                return
            left = MAX_ANNOTATIONS
            for address, code, tensor_name in zip(
                tensors.address, tensors.category, tensors.name, strict=True
            ):
                code_and_name = code, tensor_name
                if annotated.get(address) == code_and_name or not left:
                    continue
                if code in _STAY:
                    annotated[address] = code_and_name
                left -= 1
                text = texts.get(code_and_name)
                if text is None:
                    text = texts[code_and_name] = annotation_text(
                        CATEGORIES[code], tensor_name
                    )
                recording.allocator.annotate(address, text)

    def _annotate_gradients(self, members: Members) -> bool:
        """All of this step; False where something else is new too."""
        if not self._recording.is_ours:
            return True
        annotate, texts = self._recording.allocator.annotate, self._gradient_texts
        with forgiving:
            gradients = members.gradients()
            if gradients is None:
                self._annotated.clear()  # a new one may be where an old one was
                return False
            for address, parameter in islice(gradients.items(), MAX_ANNOTATIONS):
                text = texts.get(parameter)
                if text is None:
                    text = texts[parameter] = annotation_text(
                        "grad", f"{parameter}.grad"
                    )
                annotate(address, text)
            return True
        return False
