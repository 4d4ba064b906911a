"""FSDP2's own objects: which states there are, and what their groups hold right now.

Everything that depends on FSDP's private attributes, and on which torch has them, is
read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.modules.tree import ModuleTree


class Unit:
    """One FSDP state: the modules it serves and its groups of parameters."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.modules: list[int] = []
        self.groups: list[Any] = groups_of(state)
        self.pending: list[int] = []
        """Calls whose backward is still to come, the next one last."""
        self.in_pre_backward = False

    def params(self) -> Iterator[Any]:
        """FSDP's own records of its parameters."""
        for group in self.groups:
            yield from group.fsdp_params


def groups_of(state: Any) -> list[Any]:
    """A state's parameter groups; before torch 2.12 there is at most one."""
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        group = getattr(state, "_fsdp_param_group", None)
        groups = [] if group is None else [group]
    return list(groups)


def find_units(tree: ModuleTree) -> list[Unit]:
    """The FSDP states below the root that hold parameters."""
    units: dict[int, Unit] = {}
    for index, module in enumerate(tree.modules):
        get_state = getattr(type(module), "_get_fsdp_state", None)
        if get_state is None:
            continue
        state = get_state(module)
        unit = units.setdefault(id(state), Unit(state))
        unit.modules.append(index)
    return [unit for unit in units.values() if unit.groups]


def hook_id(handle: Any, hooks: dict[int, Any]) -> int | None:
    """The key of FSDP's hook in a module's dictionary; None where it has none."""
    for single in getattr(handle, "handles", (handle,)):
        dictionary = getattr(single, "hooks_dict_ref", None)
        if dictionary is not None and dictionary() is hooks and single.id in hooks:
            key: int = single.id
            return key
    return None


def gathered_buffers(group: Any) -> Iterator[torch.Tensor]:
    """What all-gathers of a group have filled and not yet let go of."""
    for holder, attribute in (
        (group, "_all_gather_result"),
        (getattr(group, "comm_ctx", None), "all_gather_state"),
    ):
        result = getattr(holder, attribute, None)
        result = getattr(result, "all_gather_result", result)
        buffer = getattr(result, "all_gather_output", None)
        if buffer is not None:
            yield buffer


def reduced_buffers(group: Any) -> Iterator[torch.Tensor]:
    """The inputs of reduce-scatters that may still be under way."""
    comm = getattr(group, "comm_ctx", None)
    states = getattr(comm, "reduce_scatter_states", None)
    if states is None:  # one at a time, before torch 2.13
        states = (getattr(comm, "reduce_scatter_state", None),)
    for state in states:
        buffer = getattr(state, "reduce_scatter_input", None)
        if buffer is not None:
            yield buffer


def unsharded(param: Any) -> Iterator[torch.Tensor]:
    """Where a parameter is whole, or will be: FSDP keeps the tensors, and resizes."""
    whole = getattr(param, "_unsharded_param", None)
    if whole is not None:
        yield whole
    yield from getattr(param, "all_gather_outputs", ())
    yield from getattr(param, "_unsharded_inner_tensors", ())


def unsharded_grads(param: Any) -> Iterator[torch.Tensor]:
    """A parameter's whole gradients: from this backward, and kept from earlier ones."""
    whole = getattr(param, "_unsharded_param", None)
    for gradient in (
        None if whole is None else whole.grad,
        getattr(param, "unsharded_accumulated_grad", None),
    ):
        if gradient is not None:
            yield gradient


def is_in(group: Any, state: str) -> bool:
    """Whether a group is in a training state, by FSDP's name for it."""
    current = getattr(group, "_training_state", None)
    return getattr(current, "name", None) == state


def reduce_scatter() -> Any:
    """The operator that scatters gradients, whose second argument is the whole."""
    return torch.ops.c10d._reduce_scatter_base_.default
