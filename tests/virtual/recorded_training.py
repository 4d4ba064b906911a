"""The operations of a training whose allocator somebody recorded on a real GPU.

    python -m tests.virtual.recorded_training OUT TOKENS [--mixed]

NiuHuangxiaozi/assignment2-systems on GitHub published snapshots of three steps of a small
transformer (`cs336_systems/profile_memory`). This does what their model, loss and optimizer
do to the allocator, operation for operation, in words of its own. OUT gets the snapshot.
"""

# ruff: noqa: RET504 - a name keeps a tensor for as long as it did there

from __future__ import annotations

import sys
from contextlib import nullcontext
from math import sqrt
from typing import Any

import torch
from torch import nn

WORDS, LENGTH, WIDTH, LAYERS, HEADS, INNER, BATCH = 10_000, 256, 512, 4, 16, 1344, 10
STEPS = 3


def drawn(*shape: int, spread: float) -> nn.Parameter:
    values = nn.Parameter(torch.empty(shape, device="cuda"))
    nn.init.trunc_normal_(values, std=spread, a=-3 * spread, b=3 * spread)
    return values


def softmax(x: torch.Tensor) -> torch.Tensor:
    top, _ = torch.max(x, dim=-1, keepdim=True)
    return torch.exp(x - top) / torch.sum(torch.exp(x - top), dim=-1, keepdim=True)


class Linear(nn.Module):
    def __init__(self, inward: int, outward: int) -> None:
        super().__init__()
        self.weight = drawn(outward, inward, spread=sqrt(2 / (inward + outward)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...a,ba->...b", x, self.weight)


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH, device="cuda"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind = x.dtype
        x = x.to(torch.float32)
        root = torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-5)
        scaled = x / root * self.weight
        return scaled.to(kind)


class Rotation(nn.Module):
    """Sines and cosines stay on the host and are uploaded each time."""

    def __init__(self) -> None:
        super().__init__()
        half = WIDTH // HEADS // 2
        rates = torch.tensor([1e4 ** (-i / half) for i in range(half)])
        angles = torch.arange(LENGTH)[:, None] * rates
        self.sines, self.cosines = torch.sin(angles), torch.cos(angles)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[-2])
        sines = self.sines[places].to("cuda")
        cosines = self.cosines[places].to("cuda")
        high, low = sines[None, None, :, :, None], cosines[None, None, :, :, None]
        x = x.reshape(*x.shape[:-1], -1, 2)
        first = low * x[..., :1] - high * x[..., 1:]
        second = high * x[..., :1] + low * x[..., 1:]
        turned = torch.cat([first, second], dim=-1)
        turned = turned.reshape(*turned.shape[:-2], -1)
        return turned


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rotation = Rotation()
        self.query, self.key = Linear(WIDTH, WIDTH), Linear(WIDTH, WIDTH)
        self.value, self.out = Linear(WIDTH, WIDTH), Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.query(x), self.key(x), self.value(x)
        query, key, value = self.heads(query), self.heads(key), self.heads(value)
        query = self.rotation(query)
        key = self.rotation(key)
        seen = torch.tril(torch.ones(x.shape[-2], x.shape[-2]))
        mixed = self.mix(query, key, value, seen)
        mixed = mixed.transpose(1, 2).reshape(x.shape)
        mixed = self.out(mixed)
        return mixed

    @staticmethod
    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(*x.shape[:-1], HEADS, -1).transpose(1, 2)

    @staticmethod
    def mix(query: Any, key: Any, value: Any, seen: torch.Tensor) -> torch.Tensor:
        seen = seen.to(query.device)
        products = torch.einsum("...ab,...cb->...ac", query, key)
        scores = products / torch.sqrt(torch.tensor(query.shape[-1], device="cuda"))
        scores = scores.masked_fill_(~seen.bool(), -float("inf"))
        shares = softmax(scores)
        mixed = torch.einsum("...ab,...bc->...ac", shares, value)
        return mixed


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = Linear(WIDTH, INNER), Linear(INNER, WIDTH)
        self.gate = Linear(WIDTH, INNER)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raised = self.up(x)
        bent = self.silu(raised)
        gate = self.gate(x)
        gated = bent * gate
        return self.down(gated)

    @staticmethod
    def silu(x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.attention, self.gated = Attention(), Gated()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.before(x)
        attended = self.attention(normed)
        middle = attended + x
        renormed = self.between(middle)
        raised = self.gated(renormed)
        result = raised + middle
        return result


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = drawn(WORDS, WIDTH, spread=1)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = Norm()
        self.head = Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding[tokens]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits = self.head(x)
        return logits


def cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    top, _ = torch.max(x, dim=-1, keepdim=True)
    logarithms = (
        x - top - torch.log(torch.sum(torch.exp(x - top), dim=-1, keepdim=True))
    )
    wanted = torch.zeros_like(logarithms)
    wanted.scatter_(-1, target.unsqueeze(-1), 1)
    loss = -torch.sum(wanted * logarithms) / x.shape[0]
    return loss


class Adam(torch.optim.Optimizer):
    """Makes its moments anew each step, one parameter after the other."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 1e-3})
        for parameter in self.param_groups[0]["params"]:
            self.state[parameter] = {
                "first": torch.zeros_like(parameter.data),
                "second": torch.zeros_like(parameter.data),
            }

    def step(self) -> None:  # type: ignore[override]
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            grad = parameter.grad.data
            first = state["first"]
            new_first = 0.9 * first + 0.1 * grad
            state["first"] = new_first
            second = state["second"]
            new_second = 0.999 * second + 0.001 * grad**2
            state["second"] = new_second
            parameter.data = parameter.data - 1e-3 * (
                new_first / (torch.sqrt(new_second) + 1e-8)
            )
            parameter.data = parameter.data - 0.0 * parameter.data


def main() -> None:
    out, tokens, mixed = sys.argv[1], int(sys.argv[2]), "--mixed" in sys.argv
    how = torch.autocast("cuda", torch.bfloat16) if mixed else nullcontext()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    model = Transformer()
    optimizer = Adam(model.parameters())
    given = torch.randint(0, WORDS, (BATCH, tokens)).to("cuda")
    labels = torch.randint(0, WORDS, (BATCH,)).to("cuda")
    with how:
        for _ in range(STEPS):
            optimizer.zero_grad()
            logits = model(given)
            last = logits[:, -1, :]
            loss = cross_entropy(last, labels)
            loss.backward()
            optimizer.step()
    torch.cuda.memory._dump_snapshot(out)


if __name__ == "__main__":
    main()
