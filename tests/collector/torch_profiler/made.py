"""Events as torch gives them, made by hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Event:
    """Answers as `torch._C._autograd._KinetoEvent` does."""

    _name: str
    _start: int
    _duration: int = 0
    _thread: int = 1
    _category: str = "cpu_op"
    _device_type: int = 0
    _nbytes: int = 0
    _flops: int = 0
    _correlation: int = 0
    _linked: int = 0
    _is_async: bool = False

    def name(self):
        return self._name

    def activity_type(self):
        return self._category

    def start_thread_id(self):
        return self._thread

    def start_ns(self):
        return self._start

    def duration_ns(self):
        return self._duration

    def device_type(self):
        return self._device_type

    def device_index(self):
        return 0

    def nbytes(self):
        return self._nbytes

    def flops(self):
        return self._flops

    def correlation_id(self):
        return self._correlation

    def linked_correlation_id(self):
        return self._linked

    def is_async(self):
        return self._is_async


class Results:
    def __init__(self, events):
        self._events = list(events)

    def events(self):
        return list(self._events)


def op(name, start, duration, **more):
    return Event(name, start, duration, **{f"_{k}": v for k, v in more.items()})


def memory(start, nbytes, thread=1, device_type=0):
    category = "cpu_instant_event"
    return Event("[memory]", start, 0, thread, category, device_type, nbytes)


def kernel(name, start, duration, linked, category="kernel"):
    return Event(name, start, duration, 7, category, 1, _linked=linked)
