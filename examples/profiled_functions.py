"""Memory of functions and modules: a transformer sharded by FSDP2, looked at closely.

    torchrun --nproc-per-node 2 examples/profiled_functions.py --logdir runs
    tensorboard --logdir runs

Memory, Calls shows memory at the start and end of `training_step` and `evaluate`,
what autograd saved in between and what hooks measured of each module; Memory, Modules shows
who held what through two whole steps, forward, backward and optimizer. By default the
first call of each function passes and the second one is collected; here the third and
fourth are, when the optimizer has its state. Started without torchrun it trains on one
rank.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

import memboard as mb

VOCABULARY = 1000
HIDDEN = 128
TOKENS = 64
BATCH = 8


class Model(nn.Module):
    """Predicts the next token with a stack of transformer layers."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(HIDDEN, 4, 4 * HIDDEN, batch_first=True)
            for _ in range(num_layers)
        )
        self.head = nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, length + 1) to the mean loss of predicting each next one."""
        tokens, targets = tokens[:, :-1], tokens[:, 1:]
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return functional.cross_entropy(
            self.head(hidden).flatten(0, 1), targets.flatten()
        )


def count_outputs(module: nn.Module, _: object, outputs: object) -> None:
    """A hook of your own: `save_attrs` keeps what it leaves on every module."""
    if isinstance(outputs, torch.Tensor):
        module.output_bytes = outputs.nbytes


# What is collected, and when; a YAML file with these keys does as well.
CONFIG = {
    "schedule": {"warmup": 2, "active": 2},
    "modules": True,
    "hooks": {"post_forward": [count_outputs], "save_attrs": ["output_bytes"]},
}


class Trainer:
    """The functions to look at are decorated; nothing else changes."""

    def __init__(self, device: torch.device) -> None:
        mesh = init_device_mesh(
            device.type, (dist.get_world_size(),), mesh_dim_names=("dp",)
        )
        torch.manual_seed(0)
        self.device = device
        self.model = Model(num_layers=3).to(device)
        for layer in self.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def loss(self) -> torch.Tensor:
        """Texts that count upwards from a random token."""
        starts = torch.randint(0, VOCABULARY, (BATCH, 1), device=self.device)
        counted = torch.arange(TOKENS + 1, device=self.device)
        return self.model((starts + counted) % VOCABULARY)

    @mb.profiled
    def training_step(self) -> float:
        """Forward, backward and optimizer."""
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def train(run_dir: Path, *, num_steps: int, device: torch.device) -> None:
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    trainer = Trainer(device)
    with mb.record(
        run_dir, model=trainer.model, optimizer=trainer.optimizer, config=CONFIG
    ) as rec:
        for step in range(num_steps):
            loss = trainer.training_step()
            rec.step(tokens=BATCH * TOKENS, samples=BATCH)
            if step % 2 == 1:
                # A stretch of code may be looked at too; each phase counts its own.
                with (
                    rec.phase("val"),
                    rec.span("evaluate", memory=True),
                    torch.no_grad(),
                ):
                    evaluated = trainer.loss().item()
                if dist.get_rank() == 0:
                    print(f"step {step}, loss {loss:.3f}, evaluated {evaluated:.3f}")
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    # What torchrun sets; without it this is a job of one rank.
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("LOCAL_RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault(
        "MASTER_PORT", "0" if os.environ["WORLD_SIZE"] == "1" else "29500"
    )
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cpu")
    if torch.cuda.device_count() > local_rank:
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    run_dir = options.logdir / "profiled-functions"
    train(run_dir, num_steps=options.steps, device=device)


if __name__ == "__main__":
    main()
