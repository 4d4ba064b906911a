"""One trace's figures as torch-tb-profiler's routes answer them, and as MemBoard's do.

Both sides in the same shape: microseconds, bytes, percentages; by step, operator, kernel.
`There` reads what `programs/old_plugin.py` wrote, `Here` asks MemBoard's routes.
"""

from __future__ import annotations

import json
import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tests.peers.old_plugin_traces import make
from tests.peers.running import run
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, columns_of

if TYPE_CHECKING:
    from pathlib import Path

ROLES = {
    "Kernel": "kernel",
    "Memcpy": "memcpy",
    "Memset": "memset",
    "Communication": "communication",
    "Runtime": "runtime",
    "DataLoader": "dataloader",
    "CPU Exec": "cpu_exec",
    "Other": "other",
}
DEVICE_USE = {
    "GPU Utilization": "utilization",
    "Est. SM Efficiency": "sm_efficiency",
    "Est. Achieved Occupancy": "occupancy",
    "Kernel Time using Tensor Cores": "tensor_core_share",
}
FILE = re.compile(r"(.*?)(\.\d+)?\.pt\.trace\.json(?:\.gz)?")
MS, SHARE = 1000.0, 100.0


def files_by_key(folder: Path) -> dict[str, str]:
    """Names of traces by worker and span, as torch-tb-profiler counts spans."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in folder.iterdir():
        if match := FILE.fullmatch(path.name):
            found.setdefault(match[1], []).append((match[2] or "", path.name))
    return {
        f"{worker}.{at if span else 'default'}": name
        for worker, spans in found.items()
        for at, (span, name) in enumerate(sorted(spans), 1)
    }


class There:
    """What torch-tb-profiler says of one trace."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    @cached_property
    def steps(self) -> dict[int, dict[str, float]]:
        """By step, time of each role that takes any."""
        table = self.answers["overview"]["steps"]
        names = [one.get("name", "") for one in table["columns"]]
        return {
            int(row[0]): {
                ROLES[name]: value
                for name, value in zip(names, row, strict=True)
                if name in ROLES and value
            }
            for row in table["rows"]
        }

    @cached_property
    def device_use(self) -> dict[str, float]:
        """In percent; of a trace of one device."""
        rows = self.answers["overview"].get("gpu_metrics", {"data": []})["data"]
        return {
            DEVICE_USE[row["title"]]: float(row["value"].removesuffix(" %"))
            for row in rows
            if row["title"] in DEVICE_USE
        }

    @cached_property
    def recommendations(self) -> list[str]:
        """Texts without their links."""
        text = self.answers["overview"]["recommendations"]
        items = re.findall(r"<li>(.*?)</li>", text)
        return [re.sub(r"<.*?>", "", item) for item in items if item != "N/A"]

    @cached_property
    def operators(self) -> dict[str, dict[str, float]]:
        return {
            row["name"]: {
                "num_calls": row["calls"],
                "host_self": row["host_self_duration"],
                "host_total": row["host_total_duration"],
                "device_self": row.get("device_self_duration", 0),
                "device_total": row.get("device_total_duration", 0),
                "tensor_cores": row["tc_self_ratio"],
            }
            for row in self.answers["operation/table"]["data"]
        }

    @cached_property
    def kernels(self) -> dict[str, dict[str, Any]]:
        table = self.answers["kernel/table"]
        if table is None or "data" not in table:
            return {}
        names = [one["name"] for one in table["data"]["columns"]]
        return {
            row["Name"]: {
                "num_calls": row["Calls"],
                "total": row["Total Duration (us)"],
                "mean": row["Mean Duration (us)"],
                "max": row["Max Duration (us)"],
                "min": row["Min Duration (us)"],
                "blocks_per_sm": row.get("Mean Blocks Per SM", 0.0),
                "occupancy": row.get("Mean Est. Achieved Occupancy (%)", 0.0),
                "uses_tensor_cores": row["Tensor Cores Used"] == "Yes",
            }
            for values in table["data"]["rows"]
            for row in [dict(zip(names, values, strict=True))]
        }

    @cached_property
    def memory(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """By device and operator: increase, self; allocations, self; their sizes, self."""
        if "rows" not in self.answers["memory"]:
            return {}
        return {
            (device, row[0]): tuple(row[2:])
            for device, rows in self.answers["memory"]["rows"].items()
            for row in rows
        }

    @cached_property
    def peaks(self) -> dict[str, float]:
        """Of each device, most that was allocated."""
        curve = self.answers["memory_curve"]
        return {
            device: float(re.findall(r"[\d.]+", text)[0])
            for device, text in curve.get("metadata", {"peaks": {}})["peaks"].items()
        }

    @cached_property
    def allocations(self) -> dict[str, list[tuple[float, float]]]:
        """By device: size and lifetime of those that begin in the trace."""
        rows = self.answers["memory_events"].get("rows", {})
        return {
            device: sorted(
                (row[1], math.inf if row[4] is None else row[4])
                for row in of_device
                if row[2] is not None
            )
            for device, of_device in rows.items()
        }

    @cached_property
    def modules(self) -> list[tuple[str, int, int, float]]:
        """Name, calls, operators and host time of each module in the tree."""
        found: list[tuple[str, int, int, float]] = []

        def add(rows: list[dict[str, Any]]) -> None:
            for row in rows:
                name, calls = row["name"], row["occurences"]
                found.append((name, calls, row["operators"], row["host_duration"]))
                add(row["children"])

        add(self.answers["module"].get("data", []))
        return sorted(found)


class Here:
    """What MemBoard says of the same trace."""

    def __init__(self, page: Page, name: str) -> None:
        self._page = page
        traces = ask(page, "profile")["choice"]["traces"]
        (self.source,) = [one["id"] for one in traces if one["name"] == name]

    def _ask(self, route: str, **query: Any) -> dict[str, Any]:
        return ask(self._page, route, source=self.source, **query)

    @cached_property
    def profile(self) -> dict[str, Any]:
        return self._ask("profile")

    @cached_property
    def steps(self) -> dict[int, dict[str, float]]:
        return {
            int(step): {
                part["role"]: part["ms"][at] * MS
                for part in self.profile["parts"]
                if part["ms"][at]
            }
            for at, step in enumerate(self.profile["step"])
        }

    @cached_property
    def device_use(self) -> dict[str, float]:
        if self.profile["devices"] is None:
            return {}
        columns = columns_of(self.profile["devices"])
        return {
            key: columns[key][0] * SHARE
            for key in DEVICE_USE.values()
            if not math.isnan(columns[key][0])
        }

    @cached_property
    def operators(self) -> dict[str, dict[str, float]]:
        table = self._ask("operators", top=2000)
        zeros = [0.0] * len(table["name"])
        shares = table.get("tensor_core_self_share", zeros)
        columns = {
            "num_calls": (table["num_calls"], 1),
            "host_self": (table["host_self_ms"], MS),
            "host_total": (table["host_total_ms"], MS),
            "device_self": (table.get("device_self_ms", zeros), MS),
            "device_total": (table.get("device_total_ms", zeros), MS),
            "tensor_cores": ([0 if one != one else one for one in shares], SHARE),
        }
        return {
            name: {key: values[at] * unit for key, (values, unit) in columns.items()}
            for at, name in enumerate(table["name"])
        }

    @cached_property
    def kernels(self) -> dict[str, dict[str, Any]]:
        table = self._ask("kernels", top=2000)
        return {
            name: {
                "num_calls": table["num_calls"][at],
                "total": table["total_ms"][at] * MS,
                "mean": table["mean_us"][at],
                "max": table["max_us"][at],
                "min": table["min_us"][at],
                "blocks_per_sm": _or_zero(table["blocks_per_sm"][at]),
                "occupancy": _or_zero(table["occupancy"][at]) * SHARE,
                "uses_tensor_cores": table["uses_tensor_cores"][at] == 1,
            }
            for at, name in enumerate(table["name"])
        }

    @cached_property
    def _memory_by_device(self) -> dict[str, dict[str, Any]]:
        """As torch-tb-profiler charges: frees are those of who frees."""
        keys = [one["key"] for one in self._ask("operator_memory")["devices"]]
        return {
            _device_name(key): self._ask(
                "operator_memory", device=key, charge="freeing", top=2000, px=8192
            )
            for key in keys
        }

    @cached_property
    def memory(self) -> dict[tuple[str, str], tuple[float, ...]]:
        keys = (
            "increase_bytes",
            "self_increase_bytes",
            "num_allocations",
            "self_num_allocations",
            "allocated_bytes",
            "self_allocated_bytes",
        )
        found = {}
        for device, answer in self._memory_by_device.items():
            columns = columns_of(answer["operators"])
            for at, name in enumerate(columns["name"]):
                found[device, name] = tuple(float(columns[key][at]) for key in keys)
        return found

    @cached_property
    def peaks(self) -> dict[str, float]:
        return {
            device: float(max(answer["curve"]["allocated_bytes"]))
            for device, answer in self._memory_by_device.items()
            if len(answer["curve"]["allocated_bytes"])
        }

    @cached_property
    def allocations(self) -> dict[str, list[tuple[float, float]]]:
        found = {}
        for device, answer in self._memory_by_device.items():
            table = columns_of(answer["allocations"])
            found[device] = sorted(
                (float(size), math.inf if ms != ms else float(ms) * MS)
                for size, ms in zip(
                    table["num_bytes"], table["duration_ms"], strict=True
                )
            )
        return found

    @cached_property
    def modules(self) -> list[tuple[str, int, int, float]]:
        answer = self._ask("module_times")
        columns = ("num_calls", "num_operators", "host_ms")
        rows = zip(answer["name"], *(answer[key] for key in columns), strict=True)
        # What is in no module has no calls, and no row there.
        return sorted(
            (name, int(calls), int(operators), float(ms) * MS)
            for name, calls, operators, ms in rows
            if not math.isnan(calls)
        )


def _or_zero(value: float) -> float:
    """torch-tb-profiler has zeros where nothing is known."""
    return 0.0 if value != value else float(value)


def _device_name(key: str) -> str:
    kind, _, index = key.partition(":")
    return "CPU" if kind == "0" else f"GPU{index}"


class Beside:
    """Both of them on all folders."""

    def __init__(self, logdir: Path) -> None:
        self.logdir = logdir
        make(logdir)
        folders = [str(path) for path in sorted(logdir.iterdir())]
        answers = logdir.with_name("answers.json")
        run("old_plugin", {"folders": folders, "answers": str(answers)})
        self._answers: dict[str, Any] = json.loads(answers.read_text())
        self._pages: dict[str, Page] = {}
        self._pairs: dict[str, list[tuple[There, Here]]] = {}

    def page(self, folder: str) -> Page:
        if folder not in self._pages:
            self._pages[folder] = Page(self.logdir / folder)
        return self._pages[folder]

    def told(self, folder: str) -> dict[str, Any]:
        """By worker and span; `views`."""
        return self._answers[str(self.logdir / folder)]

    def pairs(self, folder: str) -> list[tuple[There, Here]]:
        """Of each trace of a folder."""
        if folder not in self._pairs:
            answers, page = self.told(folder), self.page(folder)
            files = files_by_key(self.logdir / folder)
            self._pairs[folder] = [
                (There(answers[key]), Here(page, name)) for key, name in files.items()
            ]
        return self._pairs[folder]
