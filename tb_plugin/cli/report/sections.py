"""The sections of a report: what the Overview, Modules and Functions views show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tb_plugin.cli.report.values import named, number, plain, rows, values_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tb_plugin import api


_RANK_COLUMNS: Final = (
    "peak_bytes",
    "peak_step",
    "capacity_bytes",
    "growth_bytes_per_step",
    "num_alloc_retries",
    "num_ooms",
    "last_step",
)


def overview_section(answer: api.OverviewResponse) -> dict[str, Any]:
    """Headlines, ranks, attempts, sources and facts."""
    return {
        "headlines": {h.key: _headline(h) for h in answer.headlines},
        "ranks": _ranks(answer.strip),
        "peak_series": answer.strip.peak_series,
        "capacity_kind": answer.strip.capacity_kind,
        "median_peak_bytes": number(answer.strip.median_peak_bytes),
        "outlier_ranks": list(answer.strip.outliers),
        "attempts": plain(answer.attempts),
        "endings": plain(answer.endings),
        "sources": plain(answer.recorded),
        "facts": {fact.key: fact.value for fact in answer.facts},
        "planted": list(answer.planted),
        "prediction": plain(answer.prediction),
    }


def modules_section(
    answer: api.ModulesResponse, passed_over: Sequence[str] = ()
) -> dict[str, Any]:
    """One window on one rank at one state, module by module.

    `passed_over`: later windows that were not taken, as they ended early.
    """
    return {
        "passed_over": list(passed_over),
        "windows": plain(answer.windows),
        "window": answer.window,
        "ranks": values_of(answer.ranks),
        "rank": answer.rank,
        "device": answer.device,
        "state": answer.state,
        "states": list(answer.states),
        "facts": plain(answer.facts),
        "split": _split(answer.split),
        "modules": _modules(answer),
        "absent": plain(answer.absent),
    }


def function_section(answer: api.FunctionsResponse) -> dict[str, Any]:
    """The calls of one function on one rank, and what was collected in the newest."""
    calls = answer.calls
    columns = {
        "attempt": values_of(calls.attempt),
        "iteration": values_of(calls.iteration),
        "step": values_of(calls.step),
        "start_ms": values_of(calls.start_ms),
        "end_ms": values_of(calls.end_ms),
    }
    listed = rows(columns)
    for call in listed:
        call["stats"] = {}
    for stat in answer.stats:
        sides = (stat.start, stat.end, stat.difference)
        values = zip(*map(values_of, sides), strict=True)
        name = named(stat.name, stat.unit)
        for call, (start, end, difference) in zip(listed, values, strict=True):
            if start is not None or end is not None:
                call["stats"][name] = {
                    "start": start,
                    "end": end,
                    "difference": difference,
                }
    return {
        "function": answer.function,
        "phase": answer.phase,
        "ranks": values_of(answer.ranks),
        "rank": answer.rank,
        "num_calls": answer.num_calls,
        "calls": listed,
        "hooks": _hooks(answer.hooks),
        "activations": _activations(answer.activations),
        "module_window": answer.module_window,
    }


def histories_section(answers: Iterable[api.FunctionsResponse]) -> list[dict[str, Any]]:
    """Captures of the allocator, each once."""
    found = {
        reference.id: plain(reference)
        for answer in answers
        for reference in answer.histories
    }
    return list(found.values())


def _headline(headline: api.Headline) -> dict[str, Any]:
    if headline.value is None:
        return {"absent_reason": headline.absent_reason}
    other = headline.other_end
    return {
        named("value", headline.unit): number(headline.value),
        "rank": headline.rank,
        "step": headline.step,
        "caveats": list(headline.caveats),
    } | ({} if other is None else {named("other_end", headline.unit): number(other)})


def _ranks(strip: api.RankStrip) -> list[dict[str, Any]]:
    hosts = [strip.hosts[index] for index in values_of(strip.host)]
    columns: dict[str, list[Any]] = {"rank": values_of(strip.rank), "host": hosts}
    for name in _RANK_COLUMNS:
        columns[name] = values_of(getattr(strip, name))
    columns["lost"] = [lost == 1 for lost in values_of(strip.lost)]
    return rows(columns)


def _modules(answer: api.ModulesResponse) -> list[dict[str, Any]]:
    tree = answer.tree
    names = [tree.names[index] for index in values_of(tree.name)]
    types = [tree.types[i] if i >= 0 else "" for i in values_of(tree.type)]
    parents = values_of(tree.parent)
    fqns: list[str] = []
    for name, parent in zip(names, parents, strict=True):
        fqns.append(name if parent < 0 else f"{fqns[parent]}.{name}")
    listed = rows(
        {
            "module": fqns,
            "type": types,
            "is_fsdp": [flag == 1 for flag in values_of(tree.is_fsdp)],
            "param_bytes": values_of(tree.param_bytes),
            "buffer_bytes": values_of(tree.buffer_bytes),
            "num_calls": values_of(answer.num_calls),
            "call": values_of(answer.call_shown),
            "time_us": values_of(answer.time_us),
            "total_bytes": values_of(answer.total_bytes),
            "held_bytes": values_of(answer.held_bytes),
            "own_bytes": values_of(answer.own_bytes),
        }
    )
    for module in listed:
        module["categories_bytes"] = {}
    for category in answer.categories:
        sizes = zip(listed, values_of(category.bytes), strict=True)
        for module, size in sizes:
            if size is not None:
                module["categories_bytes"][category.name] = size
    return listed


def _split(split: api.ModuleSplit | None) -> dict[str, Any] | None:
    if split is None:
        return None
    return {
        "total_bytes": number(split.total_bytes),
        "held_bytes": number(split.held_bytes),
        "unattributed_bytes": number(split.unattributed_bytes),
        "categories_bytes": {one.name: one.bytes for one in split.unattributed},
    }


def _hooks(hooks: api.HookValues | None) -> list[dict[str, Any]] | None:
    if hooks is None:
        return None
    at = values_of(hooks.module)
    columns = {
        "module": [hooks.modules.paths[index] for index in at],
        "type": [hooks.modules.types[index] for index in at],
    }
    for attribute in hooks.attributes:
        name = named(attribute.name, attribute.unit)
        columns[name] = values_of(attribute.values)
    return rows(columns)


def _activations(saved: api.SavedActivations | None) -> dict[str, Any] | None:
    if saved is None:
        return None
    at = values_of(saved.module)
    paths, types = saved.modules.paths, saved.modules.types
    return {
        "total_bytes": number(saved.total_bytes),
        "total_npp_compat_bytes": number(saved.total_npp_compat_bytes),
        "saved": rows(
            {
                "module": [paths[index] if index >= 0 else None for index in at],
                "type": [types[index] if index >= 0 else "" for index in at],
                "dtype": [saved.dtypes[index] for index in values_of(saved.dtype)],
                "num_tensors": values_of(saved.num_tensors),
                "bytes": values_of(saved.bytes),
                "npp_compat_bytes": values_of(saved.npp_compat_bytes),
            }
        ),
    }
