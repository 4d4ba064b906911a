"""Parts of steps that are timed without a word from training.

What torch and the models do becomes spans and parts of the step. Parts are timed while
the recorder lives. As spans they are kept in the steps of `spans.states`; checkpoints and
evaluations, which are rare, in every step.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.core.compiling import (
    COMPILED_CALL,
    compiles_anything,
    is_wrapper,
    untraced,
)
from memboard.collector.core.guard import guarded
from memboard.collector.core.patches import Patches
from memboard.collector.core.source import SourceInfo
from memboard.collector.hooks import torch_calls
from memboard.collector.hooks.torch_calls import COMMUNICATION
from memboard.collector.steps.forward_inputs import ForwardInputs
from memboard.collector.steps.parts import INDEX, StepParts
from memboard.collector.steps.progress import TRAIN
from memboard.collector.steps.spans.log import ALL_STATES, SpanOptions, clock_ns
from memboard.collector.steps.spans.span import SPAN, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.recording import Recording
    from memboard.collector.steps.spans.log import SpanLog
    from memboard.collector.steps.spans.span import Entered

    Note: TypeAlias = Callable[[SourceInfo, str, str, str], None]
    """Of a source: its status (recorded, off, absent), the reason, the remedy."""

EVAL: Final = "eval"
FORWARD: Final = "forward"
LOADING: Final = "dataloader"
PREFETCHED: Final = "dataloader/prefetched"
"""Counter: batches that were ready when training took the next one."""

_ALWAYS_SEEN: Final = ("backward", "optimizer", "zero_grad", "checkpoint")
_LISTENED: Final = (*_ALWAYS_SEEN, LOADING, COMMUNICATION)
_RARE: Final = frozenset({"checkpoint", EVAL})

_FORWARD: Final = SourceInfo(
    name="spans.forward", cost="8 us per step on the training thread"
)


def _give_up(
    where: str, error: BaseException, automatic: Automatic, *_: Any, **__: Any
) -> None:
    torch_calls.leave(automatic)
    automatic.warn_once(
        "automatic spans",
        "timing failed (%s); the parts of steps are not timed from now on, the rest goes"
        " on. Switch it off with spans.automatic: false, and report this.",
        where,
        error=error,
    )


class Automatic:
    """Parts of steps, timed where torch and the models pass by. Never raises."""

    def __init__(self, log: SpanLog, warn_once: WarnOnce, note: Note) -> None:
        self.parts = StepParts()
        self.inputs = ForwardInputs()
        self.warn_once = warn_once
        self._note = note
        self._noted_forward: bool | None = None
        """What was noted of the forward last: whether it is seen."""
        self._log = log
        self._sink: Recording | None = None
        self._spans: dict[str, Span] = {}
        self._loading: dict[int | None, Span] = {}
        """Spans of waiting for a batch, by number of workers."""
        self._noted_workers: set[int] = set()
        self._forwards: Forwards | None = None
        self._eval: Entered | None = None

    def join(self, sink: Recording) -> None:
        self._sink = sink
        for part in _ALWAYS_SEEN:
            self.parts.see(part)
        torch_calls.listen(self, _LISTENED)

    def close(self) -> None:
        """End, and leave torch and the models alone."""
        self._leave_eval()
        torch_calls.leave(self)
        if self._forwards is not None:
            self._forwards.attach(())
        self._sink = None

    def attach(self, models: Iterable[Any]) -> None:
        """These are the models. May raise what odd models raise."""
        if self._forwards is None:
            self._forwards = Forwards(self)
        self._forwards.attach(models)
        self.parts.see(FORWARD, sees=self._forwards.sees_any)
        self.note_forward()

    def note_forward(self) -> None:
        """Say whether a model's forward is seen, where that was not said before."""
        forwards, noted = self._forwards, self._noted_forward
        if noted is not None and forwards is None:
            return
        sees = forwards is not None and forwards.sees_any
        if sees is noted:
            return
        self._noted_forward = sees
        if sees:
            self._note(_FORWARD, "recorded", "", "")
        elif forwards is None:
            remedy = "Give it to mb.record(model=...) or rec.attach(model=...)."
            self._note(_FORWARD, "absent", "no model is attached", remedy)
        else:
            reason = "the model takes no hooks, or is part of what torch.compile made"
            remedy = "Attach what torch.compile returned, or use rec.span."
            self._note(_FORWARD, "absent", reason, remedy)

    @property
    def has_noted_forward(self) -> bool:
        """Whether anything was said of the forward; what changes, `attach` says."""
        return self._noted_forward is not None

    # As a listener of torch's calls. Within a part of the same kind one is not noted.

    @guarded(_give_up)
    def begin(self, part: str, function: str, args: tuple[Any, ...], /) -> Any:
        if self.parts.innermost() == INDEX[part]:
            return None
        if part == LOADING:
            return self._span_of_loading(args[0]).begin()
        title = function if part == COMMUNICATION else part
        span = self._spans.get(title)
        if span is None:
            span = self._spans[title] = Span(title, self._sink, _options(part))
        return span.begin()

    @guarded(_give_up)
    def end(self, begun: Any, failed: bool, /) -> None:  # noqa: ARG002
        begun[SPAN].end(begun, None, clock_ns())

    def after_fork(self) -> bool:
        """The recorder is the parent's."""
        return False

    @guarded(_give_up)
    def enter_phase(self, phase: str, now_ns: int) -> None:
        """Another phase begins; all but training counts as evaluation."""
        self._leave_eval()
        self.parts.take(now_ns)
        if phase != TRAIN:
            self._eval = Span(phase, self._sink, _options(EVAL)).begin()

    def _leave_eval(self) -> None:
        begun, self._eval = self._eval, None
        if begun is not None:
            self.end(begun, False)

    def _span_of_loading(self, iterator: Any) -> Span:
        workers, ready = prefetched(iterator)
        if ready is not None:
            self._log.add_counter(PREFETCHED, ready, None)
        if workers is not None and self._eval is None:
            self._note_workers(workers)
        span = self._loading.get(workers)
        if span is None:
            args = {"num_workers": workers}
            span = Span(LOADING, self._sink, _options(LOADING), args)
            self._loading[workers] = span
        return span

    def _note_workers(self, num: int) -> None:
        """Say once how many workers load what training waits for."""
        if num not in self._noted_workers and self._sink is not None:
            self._noted_workers.add(num)
            self._sink.note("loading", {"num_workers": num}, user=True)


class Forwards:
    """When a model's forward begins and ends.

    A plain model gets two hooks. torch.compile traces through them as through nothing, so
    a model that is compiled is timed from outside: the wrapper that `torch.compile`
    returned gets the hooks, and of a model that was told `model.compile()` the call
    itself is wrapped.
    """

    def __init__(self, automatic: Automatic) -> None:
        self._automatic = automatic
        self._watched: list[tuple[weakref.ref[Any], Any]] = []
        """Models, and what takes the timing off them again by `remove`."""
        self._own = threading.local()
        """Forwards that have begun and not ended, of each thread by itself."""

    @property
    def sees_any(self) -> bool:
        """Whether any model is timed."""
        return bool(self._watched)

    def attach(self, models: Iterable[Any]) -> None:
        """Time these from now on, and no others. May raise what odd models raise."""
        models = list(models)
        self._automatic.inputs.keep([id(model) for model in models])
        kept = []
        for reference, timing in self._watched:
            if any(reference() is model for model in models):
                kept.append((reference, timing))
            else:
                timing.remove()
        self._watched = kept
        for model in models:
            if all(reference() is not model for reference, _ in self._watched):
                timing = self._time(model)
                if timing is not None:
                    self._watched.append((weakref.ref(model), timing))

    def _time(self, model: Any) -> Any:
        compiled = getattr(model, COMPILED_CALL, None)
        if compiled is not None and not is_wrapper(model):
            patches = Patches()
            patches.attribute(model, COMPILED_CALL, self._timed(id(model), compiled))
            return patches
        inside = compiles_anything() and not is_wrapper(model)
        if inside or not callable(getattr(model, "register_forward_hook", None)):
            return None  # compiled code may hold it, and would be compiled anew
        # Here and not above: it needs torch.
        from memboard.collector.hooks.modules import ModuleHooks

        hooks = ModuleHooks(self)
        hooks.add(id(model), model)
        return hooks

    def _timed(self, index: int, compiled: Any) -> Any:
        automatic = self._automatic

        @functools.wraps(compiled, updated=())
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = automatic.begin(FORWARD, "", ())
            automatic.inputs.note(index, args, kwargs)
            try:
                return compiled(*args, **kwargs)
            finally:
                if begun is not None:
                    automatic.end(begun, False)

        return untraced(timed)

    # As a listener of forwards.

    def before_forward(self, index: int, _module: Any, args: Any, kwargs: Any) -> None:
        begun = self._automatic.begin(FORWARD, "", ())
        self._automatic.inputs.note(index, args, kwargs)
        self._own.__dict__.setdefault("begun", []).append((index, begun))

    def after_forward(self, index: int, *_: Any) -> None:
        """It has ended, and with it what began within it and never ended."""
        stack = self._own.__dict__.get("begun", [])
        if any(model == index for model, _ in stack):
            while stack[-1][0] != index:
                stack.pop()
            begun = stack.pop()[1]
            if begun is not None:
                self._automatic.end(begun, False)

    def hook_failed(self, error: BaseException) -> None:
        _give_up(FORWARD, error, self._automatic)


def _options(part: str) -> SpanOptions:
    states = ALL_STATES if part in _RARE else None
    return SpanOptions(category=part, part=INDEX[part], states=states, flags=0)


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
