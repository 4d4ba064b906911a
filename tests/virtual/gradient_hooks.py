"""Trainings in which autograd's own hooks tell which storages are gradients.

    python -m tests.virtual.gradient_hooks MODEL CONTEXT OUT

in the environment of a virtual GPU. OUT gets torch's snapshot, and of every gradient that a
node was given or sent on: when, where, and whether it is a parameter's. Nothing of it is
known from stacks or lives. With CONTEXT `trace` OUT gets a trace of torch's profiler instead,
and what hooks saw lies beside it; models and hooks serve on the processor as well.
"""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 3
WORDS = 1000
WIDTH = 256


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_up = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = (
            self.qkv(self.norm(x)).view(batch, length, 3, 4, -1).permute(2, 0, 3, 1, 4)
        )
        query, key, value = heads.unbind(0)
        weights = (query @ key.transpose(-1, -2) / 8).softmax(-1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + functional.dropout(self.out(mixed), 0.1)
        return x + self.down(functional.gelu(self.up(self.norm_up(x))))


class Transformer(nn.Module):
    def __init__(self, recomputes: str = "") -> None:
        super().__init__()
        self.recomputes = recomputes
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            if self.recomputes:
                is_reentrant = self.recomputes == "reentrant"
                x = checkpoint(block, x, use_reentrant=is_reentrant)
            else:
                x = block(x)
        return self.head(x)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(16, 16, 3, 1, 1) for _ in range(2))
        self.norm = nn.BatchNorm2d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(
            x + self.norm(self.second(functional.relu(self.first(x))))
        )


def perceptron() -> nn.Module:
    layers = [(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(6)]
    return nn.Sequential(*[part for layer in layers for part in layer])


def made(model: str, device: str = "cuda") -> nn.Module:
    kind, _, more = model.partition("-")
    if kind == "transformer":
        return Transformer(more if "reentrant" in more else "").to(device)
    if kind == "conv":
        net = nn.Sequential(nn.Conv2d(3, 16, 3, 2), Residual(), Residual())
        return net.to(device)
    net = perceptron().to(device)
    if kind == "ddp":
        store = distributed.HashStore()
        backend = "nccl" if device == "cuda" else "gloo"
        distributed.init_process_group(backend, rank=0, world_size=1, store=store)
        return nn.parallel.DistributedDataParallel(
            net, gradient_as_bucket_view=more == "views"
        )
    return net


def loss_of(model: str, net: nn.Module, device: str = "cuda") -> torch.Tensor:
    if model.startswith("transformer"):
        ids = torch.randint(0, WORDS, (4, 129)).to(device)
        return functional.cross_entropy(
            net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
        )
    if model.startswith("conv"):
        return net(torch.randn(8, 3, 64, 64, device=device)).square().mean()
    rows = WIDTH if "square" in model else 3000
    return net(torch.randn(rows, WIDTH, device=device)).square().mean()


class Hooks:
    """On every node of a graph, as its backward begins."""

    def __init__(self, device: str = "cuda") -> None:
        self.seen: list[tuple[int, int, bool]] = []
        """Time in us, address, and whether it is a parameter's gradient."""
        self._device = device
        self._backward = torch.autograd.backward
        torch.autograd.backward = self.backward

    def close(self) -> None:
        torch.autograd.backward = self._backward

    def backward(self, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        roots = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        waiting = [one.grad_fn for one in roots if isinstance(one, torch.Tensor)]
        known = set()
        while waiting:
            node = waiting.pop()
            if node is not None and node not in known:
                known.add(node)
                following = [one for one, _ in node.next_functions]
                node.register_hook(self._hook(is_parameters(node), following))
                waiting += following
        return self._backward(tensors, *args, **kwargs)

    def _hook(self, here: bool, following: list[Any]) -> Any:
        there = [None if one is None else is_parameters(one) for one in following]

        def ran(sent: Any, given: Any) -> None:
            for gradient in given:
                self._note(gradient, here)
            for gradient, of_parameter in zip(sent, there, strict=False):
                if of_parameter is not None:
                    self._note(gradient, of_parameter)

        return ran

    def _note(self, gradient: Any, of_parameter: bool) -> None:
        if isinstance(gradient, torch.Tensor) and gradient.device.type == self._device:
            address = gradient.untyped_storage().data_ptr()
            self.seen.append((time.time_ns() // 1000, address, of_parameter))


def is_parameters(node: Any) -> bool:
    return isinstance(getattr(node, "variable", None), nn.Parameter)


def train(model: str, net: nn.Module, optimizer: Any, device: str = "cuda") -> None:
    """One step."""
    for _ in range(3 if "accumulate" in model else 1):
        with torch.autocast(device, torch.bfloat16, enabled="amp" in model):
            loss = loss_of(model, net, device)
        loss.backward()
        del loss
    optimizer.step()
    optimizer.zero_grad()


def traced(model: str, out: Path, device: str = "cuda") -> None:
    """Write a trace of three steps, and what hooks saw meanwhile."""
    torch.manual_seed(0)
    hooks = Hooks(device)
    try:
        net = made(model, device)
        optimizer = torch.optim.AdamW(net.parameters())
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profiler:
            for _ in range(STEPS):
                train(model, net, optimizer, device)
                profiler.step()
        profiler.export_chrome_trace(str(out))
    finally:
        hooks.close()
    out.with_suffix(".seen").write_bytes(pickle.dumps(hooks.seen))


def main(model: str, context: str, out: Path) -> None:
    if context == "trace":
        traced(model, out)
        return
    torch.manual_seed(0)
    hooks = Hooks()
    net = made(model)
    optimizer = torch.optim.AdamW(net.parameters())
    torch.cuda.memory._record_memory_history(context=context, stacks="python")
    for _ in range(STEPS):
        train(model, net, optimizer)
    out.write_bytes(pickle.dumps((torch.cuda.memory._snapshot(), hooks.seen)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
