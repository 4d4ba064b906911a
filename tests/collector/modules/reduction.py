"""Totals by category at module states, from our tracker and torch's, to be compared.

`ours` reads a capture's event log with plain loops, independent of the plugin's own
analysis; `theirs` reads torch's trackers. Both give

    {(module fqn, state): [{device: {category: bytes}}, ...]}     one per call, in order

with categories and states in torch's words, without categories that hold nothing.
"""

from __future__ import annotations

from collections import defaultdict

from memboard.collector.format.memory import CATEGORIES, STATES

FSDP_CATEGORIES = {
    "sharded_param": "Sharded Param",
    "unsharded_param": "Unsharded Param",
    "buffer": "Buffer",
    "sharded_grad": "Sharded Grad",
    "unsharded_grad": "Unsharded Grad",
    "activation": "Activation",
    "temp": "Temp",
    "activation_grad": "Temp",
    "all_gather": "All Gather",
    "reduce_scatter": "Reduce Scatter",
    "optimizer": "OptState",
    "input": "Inputs",
}
PLAIN_CATEGORIES = {
    "param": "Parameter",
    "buffer": "Buffer",
    "grad": "Gradient",
    "activation": "Activation",
    "temp": "Temp",
    "activation_grad": "Temp",
    "optimizer": "Optstate",
    "input": "Other",
}
FSDP_STATES = {
    "before_pre_forward": "Before Pre-Forward",
    "after_pre_forward": "After Pre-Forward",
    "before_post_forward": "Before Post-Forward",
    "after_post_forward": "After Post-Forward",
    "before_pre_backward": "Before Pre-Backward",
    "after_pre_backward": "After Pre-Backward",
    "before_post_backward": "Before Post-Backward",
    "after_post_backward": "After Post-Backward",
    "pre_forward_ac": "Pre-Forward AC",
    "post_forward_ac": "Post-Forward AC",
}
PLAIN_STATES = {
    "before_pre_forward": "Pre-Forward",
    "after_post_forward": "Post-Forward",
    "before_pre_backward": "Pre-Backward",
    "after_post_backward": "Post-Backward",
    "pre_forward_ac": "Pre-Forward-AC",
    "post_forward_ac": "Post-Forward-AC",
}
PEAKS = {
    "Peak Forward": ("before_pre_forward", "after_post_forward"),
    "Peak Backward": ("before_pre_backward", "after_post_backward"),
}


class Log:
    """A capture's log with a balance at every number of events."""

    def __init__(self, capture):
        self.meta = capture.meta
        self.modules = capture.tables["modules"]
        self.events = capture.tables["events"]
        self.bounds = capture.tables["boundaries"]
        self.balances = list(self._balances())

    def _balances(self):
        """{device: {category: bytes}} after 0, 1, 2 ... events."""
        held = defaultdict(lambda: defaultdict(int))
        yield self._copy(held)
        for delta, category, device in zip(
            self.events["delta_bytes"].tolist(),
            self.events["category"].tolist(),
            self.events["device"].tolist(),
            strict=True,
        ):
            held[self.meta["devices"][device]][CATEGORIES[category]] += delta
            yield self._copy(held)

    @staticmethod
    def _copy(held):
        return {
            device: {name: size for name, size in sizes.items() if size}
            for device, sizes in held.items()
            if any(sizes.values())
        }

    def rows(self):
        """(fqn, state, call, number of events) of every boundary."""
        columns = [
            self.bounds[n].tolist() for n in ("module", "state", "call", "event")
        ]
        for module, state, call, event in zip(*columns, strict=True):
            fqn = self.modules["fqn"][module] if module >= 0 else ""
            yield fqn, STATES[state], call, event

    def total(self, event, device="cpu"):
        return sum(self.balances[event].get(device, {}).values())

    def peak(self, device="cpu"):
        return max(self.total(event, device) for event in range(len(self.balances)))

    def peak_snapshot(self):
        """{device: balance at its first highest moment}."""
        found = {}
        for device in self.meta["devices"]:
            totals = [self.total(e, device) for e in range(len(self.balances))]
            top = self.balances[totals.index(max(totals))]
            if device in top:
                found[device] = top[device]
        return found

    def check(self):
        """What must hold of every log."""
        for balance in self.balances:
            for sizes in balance.values():
                assert all(size > 0 for size in sizes.values()), balance
        living = defaultdict(int)
        for storage, delta in zip(
            self.events["storage"].tolist(),
            self.events["delta_bytes"].tolist(),
            strict=True,
        ):
            living[storage] += delta
            assert living[storage] >= 0
        times = self.events["time_us"].tolist()
        assert times == sorted(times)
        assert self.bounds["event"].tolist() == sorted(self.bounds["event"].tolist())
        assert self.bounds["time_us"].tolist() == sorted(
            self.bounds["time_us"].tolist()
        )


def bytes_by_owner(capture, category, *, at_start=False):
    """Bytes of a category by module; `at_start`: of what was alive then, else at the end."""
    events = capture.tables["events"]
    chosen = events["category"] == CATEGORIES.index(category)
    if at_start:
        chosen &= events["time_us"] == 0
    held = [0] * len(capture.tables["modules"]["fqn"])
    for owner, delta in zip(
        events["module"][chosen].tolist(),
        events["delta_bytes"][chosen].tolist(),
        strict=True,
    ):
        held[owner] += delta
    return held


def ours(capture, *, fsdp):
    """Our log at every state that torch's tracker knows."""
    log = Log(capture)
    log.check()
    states = FSDP_STATES if fsdp else PLAIN_STATES
    categories = FSDP_CATEGORIES if fsdp else PLAIN_CATEGORIES
    sharded = {
        fqn
        for fqn, is_fsdp in zip(
            log.modules["fqn"], log.modules["is_fsdp"].tolist(), strict=True
        )
        if is_fsdp
    }
    found = defaultdict(list)
    for fqn, state, _, event in log.rows():
        if state in states and (not fsdp or fqn in sharded):
            found[fqn, states[state]].append(
                _translated(log.balances[event], categories)
            )
    return dict(found)


def our_peaks(capture, *, fsdp):
    """Highest total of every module's forward and backward, in the order they begin."""
    log = Log(capture)
    found = defaultdict(dict)
    for fqn, state, call, event in log.rows():
        for peak, (first, last) in PEAKS.items():
            calls = found[fqn, peak if fsdp else peak.replace(" ", "-")]
            if state == first:
                calls[call] = event, len(log.balances) - 1
            elif state == last and call in calls:
                calls[call] = calls[call][0], event
    return {
        key: [
            max(map(log.total, range(start, end + 1))) for start, end in calls.values()
        ]
        for key, calls in found.items()
        if calls
    }


def our_peak(capture, *, fsdp):
    """{device: balance at its highest moment}, in torch's words."""
    categories = FSDP_CATEGORIES if fsdp else PLAIN_CATEGORIES
    return _translated(Log(capture).peak_snapshot(), categories)


def _translated(balance, categories):
    found = {device: defaultdict(int) for device in balance}
    for device, sizes in balance.items():
        for name, size in sizes.items():
            found[device][categories[name]] += size
    return found
