"""The demo's training: a small transformer sharded by FSDP2, one process per rank.

Runs under any launcher that sets RANK, LOCAL_RANK, WORLD_SIZE and MASTER_*: the demo's
own, or `torchrun -m memboard.collector.cli.demo.training --run-dir runs/demo`. The recording is
what a user would write: `mb.record`, `mb.profiled`, `rec.loader`,
`rec.epoch`, `rec.span`, `rec.step`. A few steps, and their calls of `training_step`, are looked at
closely: memory at both ends, hooks, what autograd saved, and every module.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import memboard as mb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch import Tensor

STEPS_PER_EPOCH: Final = 50
_SAY_EVERY_SECONDS: Final = 2.0

COLLECTED: Final[dict[str, Any]] = {
    "modules": True,
    "schedule": {"warmup": 2, "active": 3},
}
"""Steps 3 to 5, when the optimizer has its state; variables of the environment win."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How big the model and its batches are."""

    vocabulary: int
    hidden: int
    heads: int
    layers: int
    tokens: int
    batch: int
    """Sequences per rank and step."""


ON_CPU: Final = Size(
    vocabulary=2048, hidden=128, heads=4, layers=3, tokens=128, batch=4
)
ON_GPU: Final = Size(
    vocabulary=32_000, hidden=1024, heads=16, layers=12, tokens=1024, batch=4
)


class Sequences(Dataset["Tensor"]):
    """Random text whose next token follows from the two before it, so loss falls."""

    def __init__(self, size: Size, num_sequences: int, seed: int) -> None:
        """`num_sequences` of at most `size.tokens` tokens and one to predict."""
        self._size = size
        self._num_sequences = num_sequences
        self._seed = seed

    def __len__(self) -> int:
        return self._num_sequences

    def __getitem__(self, index: int) -> Tensor:
        random = torch.Generator().manual_seed(self._seed * 1_000_003 + index)
        tokens = [int(t) for t in torch.randint(0, 64, (2,), generator=random)]
        while len(tokens) <= self._size.tokens:
            tokens.append((3 * tokens[-1] + tokens[-2] + 1) % 64)
        return torch.tensor(tokens)


class Layer(nn.Module):
    """Causal self-attention and a feed-forward network, each behind a norm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.norm_attention = nn.LayerNorm(size.hidden)
        self.qkv = nn.Linear(size.hidden, 3 * size.hidden)
        self.out = nn.Linear(size.hidden, size.hidden)
        self.norm_feed_forward = nn.LayerNorm(size.hidden)
        self.feed_forward = nn.Sequential(
            nn.Linear(size.hidden, 4 * size.hidden),
            nn.GELU(),
            nn.Linear(4 * size.hidden, size.hidden),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """(batch, tokens, hidden) to the same shape."""
        batch, tokens, width = hidden.shape
        split = self.qkv(self.norm_attention(hidden)).view(
            batch, tokens, 3, self.heads, width // self.heads
        )
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        fed: Tensor = hidden + self.feed_forward(self.norm_feed_forward(hidden))
        return fed


class Transformer(nn.Module):
    """A decoder that predicts the next token."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.vocabulary, size.hidden)
        self.position = nn.Embedding(size.tokens, size.hidden)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.hidden)
        self.head = nn.Linear(size.hidden, size.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, length + 1) to the mean loss of predicting each next one."""
        tokens, targets = tokens[:, :-1], tokens[:, 1:]
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.embedding(tokens) + self.position(places)
        for layer in self.layers:
            hidden = layer(hidden)
        logits = self.head(self.norm(hidden)).flatten(0, 1)
        return functional.cross_entropy(logits, targets.flatten())


def num_parameters(size: Size) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(size).parameters())


def build(size: Size, device: torch.device) -> tuple[nn.Module, torch.optim.Optimizer]:
    """The sharded model and its optimizer."""
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(
        device.type, (dist.get_world_size(),), mesh_dim_names=("dp",)
    )
    torch.manual_seed(0)
    model = Transformer(size).to(device)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


@mb.profiled
def training_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, tokens: Tensor
) -> Any:
    """Forward, backward and optimizer; returns the loss."""
    loss = model(tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def train(
    run_dir: Path,
    *,
    device: torch.device,
    num_steps: int,
    num_seconds: float,
    seed: int,
) -> None:
    """Train and record until `num_steps` steps are done, or so many seconds over."""
    rank = int(os.environ["RANK"])
    size = ON_CPU if device.type == "cpu" else ON_GPU
    flops: mb.FlopsOptions = {"per_token": 6 * num_parameters(size)}
    with mb.record(run_dir, config=COLLECTED, flops=flops) as rec:
        if device.type == "cpu":
            dist.init_process_group("gloo")
        else:
            dist.init_process_group("nccl", device_id=device)
        model, optimizer = build(size, device)
        rec.attach(model=model, optimizer=optimizer)
        loader = DataLoader(
            Sequences(size, size.batch * STEPS_PER_EPOCH, seed + rank),
            batch_size=size.batch,
            num_workers=1,
            pin_memory=device.type != "cpu",
        )
        printed_at, began = 0.0, time.monotonic()
        for step, batch in enumerate(_batches(rec, loader, num_steps)):
            # Batches are as long as their longest text: that is why memory varies.
            tokens = batch[:, : _length(size, seed, step) + 1].to(device)
            loss = training_step(model, optimizer, tokens)
            rec.step(tokens=tokens[:, 1:].numel(), samples=len(tokens))
            if rank == 0 and time.monotonic() - printed_at > _SAY_EVERY_SECONDS:
                printed_at = time.monotonic()
                with rec.span("say how far it is"):
                    progress = f"step {step + 1}/{num_steps}"
                    print(f"{progress}, loss {loss.item():.3f}", flush=True)
            if _is_late(began + num_seconds, device):
                break
        dist.destroy_process_group()


def _batches(rec: Any, loader: Iterable[Tensor], num_steps: int) -> Iterator[Tensor]:
    """Epoch after epoch, until `num_steps` batches are out."""
    recorded = rec.loader(loader)
    step = 0
    while step < num_steps:
        rec.epoch(step // STEPS_PER_EPOCH, length=STEPS_PER_EPOCH)
        for batch in recorded:
            if step == num_steps:
                return
            yield batch
            step += 1


def _is_late(deadline: float, device: torch.device) -> bool:
    """Whether it is for some rank: all end with the same step."""
    late = torch.tensor(float(time.monotonic() > deadline), device=device)
    dist.all_reduce(late, dist.ReduceOp.MAX)
    return bool(late.item())


def _length(size: Size, seed: int, step: int) -> int:
    """Tokens of a step's batch, the same on every rank."""
    random = torch.Generator().manual_seed(seed * 7919 + step)
    return int(torch.randint(size.tokens // 2, size.tokens + 1, (), generator=random))


def main() -> int:
    """Train as the arguments and the launcher's environment say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if options.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    train(
        options.run_dir,
        device=device,
        num_steps=options.steps,
        num_seconds=options.seconds,
        seed=options.seed,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
