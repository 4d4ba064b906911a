"""Parts of steps that are timed without a word from training.

`torch_points` and `forwards` tell what torch and the models do; here it becomes spans and
parts of the step. Parts are timed while the recorder lives. As spans they are kept in the
steps of `spans.states`; checkpoints and evaluations, which are rare, in every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from collector.hooks import torch_points
from collector.sources.contract import SourceInfo
from collector.steps.parts import INDEX, StepParts
from collector.steps.progress import TRAIN
from collector.steps.spans.how import How
from collector.steps.spans.log import ALL_STATES, clock_ns
from collector.steps.spans.spans import Span
from collector.steps.spans.stack import SPAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.core.warn_once import Troubles
    from collector.hooks.forwards import Forwards
    from collector.steps.spans.log import SpanLog
    from collector.steps.spans.spans import SpanSink
    from collector.steps.spans.stack import Entered

    Note: TypeAlias = Callable[[SourceInfo, str, str, str], None]
    """Of a source: its status (recorded, off, absent), the reason, the remedy."""

EVAL: Final = "eval"
FORWARD: Final = "forward"
LOADING: Final = "dataloader"
PREFETCHED: Final = "dataloader/prefetched"
"""Counter: batches that were ready when the next one was asked for."""

_RARE: Final = frozenset({"checkpoint", EVAL})

_FORWARD: Final = SourceInfo(
    name="spans.forward", cost="4 us per step on the training thread"
)


class Automatic:
    """Parts of steps, timed where torch and the models pass by. Never raises."""

    def __init__(self, log: SpanLog, troubles: Troubles, note: Note) -> None:
        self.parts = StepParts()
        self._note = note
        self._told_forward: bool | None = None
        """What was said of the forward last: whether it is seen."""
        self._log = log
        self._troubles = troubles
        self._sink: SpanSink | None = None
        self._spans: dict[str, Span] = {}
        self._loading: dict[int | None, Span] = {}
        """Spans of waiting for a batch, by number of workers."""
        self._forwards: Forwards | None = None
        self._eval: Entered | None = None

    def join(self, sink: SpanSink) -> None:
        """Begin."""
        self._sink = sink
        for part in ("backward", "optimizer", "zero_grad", "checkpoint"):
            self.parts.see(part)
        torch_points.listen(self)

    def close(self) -> None:
        """End, and leave torch and the models alone."""
        self._leave_eval()
        torch_points.leave(self)
        if self._forwards is not None:
            self._forwards.close()
        self._sink = None

    def attach(self, models: Iterable[Any]) -> None:
        """These are the models. May raise what odd models raise."""
        if self._forwards is None:
            from collector.hooks.forwards import Forwards

            self._forwards = Forwards(self)
        self._forwards.attach(models)
        self.parts.see(FORWARD, sees=self._forwards.sees_any)
        self.tell_of_forward()

    def tell_of_forward(self) -> None:
        """Say whether a model's forward is seen, where that was not said before."""
        forwards, told = self._forwards, self._told_forward
        if told is not None and forwards is None:
            return
        sees = forwards is not None and forwards.sees_any
        if sees is told:
            return
        self._told_forward = sees
        if sees:
            self._note(_FORWARD, "recorded", "", "")
        elif forwards is None:
            remedy = "Give it to collector.record(model=...) or rec.attach(model=...)."
            self._note(_FORWARD, "absent", "no model is attached", remedy)
        else:
            reason = "the model takes no hooks, or is part of what torch.compile made"
            remedy = "Attach what torch.compile returned, or use rec.span."
            self._note(_FORWARD, "absent", reason, remedy)

    @property
    def has_told(self) -> bool:
        """Whether anything was said of the forward; what changes, `attach` says."""
        return self._told_forward is not None

    def begin(self, part: str, name: str = "") -> Any:
        """See `torch_points.Listener`; within a part of the same kind it is not noted."""
        try:
            if self.parts.innermost() == INDEX[part]:
                return None
            span = self._spans.get(name or part)
            if span is None:
                span = Span(name or part, self._sink, _how(part))
                self._spans[name or part] = span
            return span.begin()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fail(part, error)
            return None

    def begin_batch(self, iterator: Any) -> Any:
        """See `torch_points.Listener`; `iterator`: of batches, whatever it is."""
        try:
            if self.parts.innermost() == INDEX[LOADING]:
                return None
            workers, ready = prefetched(iterator)
            if ready is not None:
                self._log.add_counter(PREFETCHED, ready, None)
            span = self._loading.get(workers)
            if span is None:
                args = {"num_workers": workers}
                span = Span(LOADING, self._sink, _how(LOADING), args)
                self._loading[workers] = span
            return span.begin()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fail(LOADING, error)
            return None

    def end(self, begun: Any) -> None:
        """See `torch_points.Listener`."""
        try:
            begun[SPAN].end(begun, None, clock_ns())
        except Exception as fault:  # noqa: BLE001  # the border to training
            self._fail("end", fault)

    def enter_phase(self, name: str, now_ns: int) -> None:
        """Another phase begins; all but training counts as evaluation."""
        try:
            self._leave_eval()
            self.parts.take(now_ns)
            if name != TRAIN:
                span = Span(name, self._sink, _how(EVAL))
                self._eval = span.begin()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fail(EVAL, error)

    def _leave_eval(self) -> None:
        begun, self._eval = self._eval, None
        if begun is not None:
            self.end(begun)

    def _fail(self, part: str, error: BaseException) -> None:
        torch_points.leave(self)
        self._troubles.tell(
            "automatic spans",
            "timing %s failed; the parts of steps are not timed from now on, the rest"
            " goes on. Switch it off with spans.automatic: false, and report this.",
            part,
            error=error,
        )


def _how(part: str) -> How:
    states = ALL_STATES if part in _RARE else None
    return How(category=part, part=INDEX[part], states=states, flags=0)


def prefetched(iterator: Any) -> tuple[int | None, int | None]:
    """Workers of an iterator of torch's, and how many batches they have ready.

    None where it does not say: it is none of torch's, or another torch.
    """
    workers = getattr(iterator, "_num_workers", None)
    if workers is None:  # no iterator yet
        workers = getattr(iterator, "num_workers", None)
    if not isinstance(workers, int) or not workers:
        return workers if workers == 0 else None, None
    try:
        # Batches that came before their turn wait outside of the queue.
        aside = len(iterator._task_info) - iterator._tasks_outstanding  # noqa: SLF001
        return workers, iterator._data_queue.qsize() + max(0, aside)  # noqa: SLF001
    except (AttributeError, TypeError, NotImplementedError, OSError):
        return workers, None
