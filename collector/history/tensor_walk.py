"""One walk over all tensors that training is made of.

What it costs is the processor waiting for objects that lie all over memory. So each
tensor is asked for all there is to know at once, in one loop without a call of Python's
own, and nothing is kept of it but numbers and its name.
"""

from __future__ import annotations

import weakref
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch.nn.parameter import is_lazy

from memboard.collector.core.model_parts import listed, named_modules
from memboard.collector.core.plain import forgiving
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.modules.fsdp_units import (
    find_units,
    gathered_buffers,
    reduced_buffers,
    unsharded,
    unsharded_grads,
)
from memboard.collector.modules.tensors import PLAIN, plain_tensors, tensors_in
from memboard.collector.modules.tree import ModuleTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.collector.modules.fsdp_units import Unit

    Known = Iterable[tuple[torch.UntypedStorage, int, str]]
    """A storage, its category and its name."""

_CODE: Final = {name: index for index, name in enumerate(CATEGORIES)}
_PARAM: Final = _CODE["param"]
_GRAD: Final = _CODE["grad"]
_BUFFER: Final = _CODE["buffer"]
_OPTIMIZER: Final = _CODE["optimizer"]


class Walk:
    """One look at everything; what was met first under an address counts."""

    def __init__(self, device_type: str) -> None:
        """`device_type`: tensors elsewhere are left out."""
        self._device_type = device_type
        self._least_device = -1 if device_type == "cpu" else 0
        self._seen = {0}
        """Addresses; storages that were emptied, as FSDP does, have none."""
        self._owners: dict[int, str] = {}
        """By id: the name of each parameter."""
        self.address: list[int] = []
        """Of each storage, in the order they were met; the others are as long."""
        self.num_bytes: list[int] = []
        self.category: list[int] = []
        self.name: list[str] = []
        self.device: list[int] = []
        """Index; -1 of the host."""

    def model(self, model: Any) -> None:
        if model is None:
            return
        modules = _modules(model)
        managed: set[int] = set()
        kinds = set(map(type, modules.modules))
        if any(hasattr(kind, "_get_fsdp_state") for kind in kinds):
            tree = ModuleTree(model)
            for unit in find_units(tree):
                self._unit(unit, tree.paths[unit.modules[0]], managed)
        names, parameters = _members(model, modules, "parameters")
        if managed:
            rows = [
                row
                for row, parameter in enumerate(parameters)
                if id(parameter) not in managed
            ]
            names = [names[row] for row in rows]
            parameters = [parameters[row] for row in rows]
        # Backwards: of two names of one parameter the first has the last word.
        self._owners.update(zip(map(id, parameters[::-1]), names[::-1], strict=True))
        self._take(parameters, names, _PARAM)
        self._take(*_gradients(parameters, names), _GRAD)
        names, buffers = _members(model, modules, "buffers")
        self._take(buffers, names, _BUFFER)

    def optimizers(self, optimizers: Iterable[Any]) -> None:
        """The states of each parameter."""
        owners = self._owners
        for outer in optimizers:
            optimizer = getattr(outer, "optimizer", outer)  # trainers wrap them
            values: list[Any] = []
            names: list[str] = []
            states = getattr(optimizer, "state", {})
            for parameter, state in zip([*states], [*states.values()], strict=True):
                owner = owners.get(id(parameter), "")
                if not isinstance(state, dict):
                    values.append(state)
                    names.append(f" of {owner}" if owner else "")
                    continue
                values += state.values()
                names += [f"{key} of {owner}" if owner else str(key) for key in state]
            self._take(values, names, _OPTIMIZER)

    def known(self, storages: Known) -> None:
        """Storages that others know; a name that is there already stays."""
        for storage, category, tensor_name in storages:
            device = storage.device
            if device.type == self._device_type:
                self._keep(
                    storage, tensor_name, -1 if device.index is None else device.index
                )
                self._mark(category)

    def _take(self, values: Sequence[Any], names: Sequence[str], category: int) -> None:
        """Tensors, and those inside of what is none; what cannot be read is left out."""
        seen, met, least = self._seen, self._seen.add, self._least_device
        add_address, add_size = self.address.append, self.num_bytes.append
        add_name, add_device = self.name.append, self.device.append
        for value, tensor_name in zip(values, names, strict=True):
            if type(value) not in PLAIN:
                self._take_parts(value, tensor_name)
                continue
            try:
                device = value.get_device()  # -1: on the host
                storage = value.untyped_storage()
                address = storage.data_ptr()
                if address in seen or device < least:
                    continue
                size = storage.nbytes()
            except RuntimeError:  # sparse ones have no bytes of their own
                self._take_parts(value, tensor_name)
                continue
            met(address)
            add_address(address)
            add_size(size)
            add_name(tensor_name)
            add_device(device)
        self._mark(category)

    def _take_parts(self, value: Any, tensor_name: str) -> None:
        """What a value's bytes lie in; nothing where it is lazy, or shows none."""
        with forgiving:
            for tensor in tensors_in(value):
                for part in plain_tensors(tensor):
                    device = part.get_device()
                    if device >= self._least_device:
                        self._keep(part.untyped_storage(), tensor_name, device)

    def _keep(
        self, storage: torch.UntypedStorage, tensor_name: str, device: int
    ) -> None:
        address, size = storage.data_ptr(), storage.nbytes()
        if address not in self._seen:
            self._seen.add(address)
            self.address.append(address)
            self.num_bytes.append(size)
            self.name.append(tensor_name)
            self.device.append(device)

    def _mark(self, category: int) -> None:
        """All that came since the last time are of it."""
        self.category += [category] * (len(self.address) - len(self.category))

    def _unit(self, unit: Unit, path: str, managed: set[int]) -> None:
        """One FSDP state: shards, whole parameters, and what is under way."""
        for param in unit.params():
            parameter_name = str(getattr(param, "_param_fqn", None) or path)
            sharded, whole = param.sharded_param, [*unsharded(param)]
            self._owners[id(sharded)] = parameter_name
            managed.add(id(sharded))
            managed.update(map(id, whole))
            self._add("sharded_param", parameter_name, sharded)
            if sharded.grad is not None:
                self._add("sharded_grad", f"{parameter_name}.grad", sharded.grad)
            self._add("unsharded_param", parameter_name, *whole)
            self._add(
                "unsharded_grad", f"{parameter_name}.grad", *unsharded_grads(param)
            )
        for group in unit.groups:
            for category, noun, buffers in (
                ("all_gather", "all-gather", gathered_buffers(group)),
                ("reduce_scatter", "reduce-scatter", reduced_buffers(group)),
            ):
                self._add(category, f"{noun} of {path}", *buffers)

    def _add(self, category: str, tensor_name: str, *tensors: torch.Tensor) -> None:
        self._take(tensors, [tensor_name] * len(tensors), _CODE[category])


class Members:
    """A model's parameters and buffers where they were: says which gradients there are.

    Of another step's gradients this takes a third of a walk. Nothing is kept alive.
    """

    def __init__(self, model: Any, device_type: str) -> None:
        """Look at all of them once. `device_type`: tensors elsewhere are left out.

        Raises:
            TypeError: some are not plain tensors, as where FSDP has its shards.
        """
        modules = _modules(model)
        names, parameters = _members(model, modules, "parameters")
        _, buffers = _members(model, modules, "buffers")
        if not PLAIN.issuperset(map(type, (*parameters, *buffers))):
            raise TypeError("not all members are plain tensors")
        self._members = [
            (weakref.ref(tensor), tensor.data_ptr(), name)
            for tensor, name in zip(
                (*parameters, *buffers), (*names, *[""] * len(buffers)), strict=True
            )
            if tensor.device.type == device_type
        ]

    def gradients(self) -> dict[int, str] | None:
        """Addresses of storages, each with the name of its first parameter.

        None: parameters or buffers have moved.

        Raises:
            TypeError: a gradient is not of plain memory.
        """
        name_by_address: dict[int, str] = {}
        for reference, address, parameter_name in self._members:
            tensor = reference()
            if tensor is None or tensor.data_ptr() != address:
                return None
            gradient = tensor.grad
            if gradient is None:
                continue
            if type(gradient) not in PLAIN or gradient.layout is not torch.strided:
                raise TypeError("a gradient is not of plain memory")
            name_by_address.setdefault(
                gradient.untyped_storage().data_ptr(), parameter_name
            )
        return name_by_address


def _gradients(
    parameters: Sequence[Any], names: Sequence[str]
) -> tuple[list[Any], list[str]]:
    """Gradients that are there, with their names."""
    gradients: list[Any] = []
    of: list[str] = []
    for parameter, parameter_name in zip(parameters, names, strict=True):
        if type(parameter) in PLAIN or not is_lazy(parameter):
            gradient = parameter.grad
            if gradient is not None:
                gradients.append(gradient)
                of.append(f"{parameter_name}.grad")
    return gradients, of


class _Modules(NamedTuple):
    """All modules of a model, each once, and what the names of their members begin with.

    Two lists: thousands of pairs would set off the collection of garbage.
    """

    starts: list[str]
    modules: list[torch.nn.Module]


def _modules(model: Any) -> _Modules:
    """As `named_modules` gives them, which takes four times as long."""
    modules = _Modules([], [])
    if not _is_torchs(model, "named_modules"):
        for prefix, module in named_modules(model):
            modules.starts.append(f"{prefix}." if prefix else "")
            modules.modules.append(module)
        return modules
    seen = {id(None)}  # a child that was taken away leaves its name
    starts, waiting = [""], [model]
    while waiting:
        start, module = starts.pop(), waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        modules.starts.append(start)
        modules.modules.append(module)
        inner = module._modules  # noqa: SLF001
        if inner:
            starts += [f"{start}{name}." for name in reversed(inner)]
            waiting += reversed(inner.values())
    return modules


def _members(model: Any, modules: _Modules, kind: str) -> tuple[list[str], list[Any]]:
    """As `named_parameters` or `named_buffers` give them, but shared ones again."""
    names: list[str] = []
    members: list[Any] = []
    method = f"named_{kind}"
    if not _is_torchs(model, method):
        for member_name, member in listed(model, method):
            names.append(member_name)
            members.append(member)
        return names, members
    own_of = attrgetter(f"_{kind}")
    for start, own in zip(modules.starts, map(own_of, modules.modules), strict=True):
        if own:
            for member_name, member in tuple(own.items()):
                if member is not None:
                    names.append(start + member_name)
                    members.append(member)
    return names, members


def _is_torchs(model: Any, method: str) -> bool:
    """Whether a model's method is torch's own: wrappers have others, which name better."""
    function = getattr(getattr(model, method, None), "__func__", None)
    return function is getattr(torch.nn.Module, method)
