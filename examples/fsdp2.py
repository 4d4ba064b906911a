"""A transformer sharded by FSDP2 over all ranks, recorded as fsdp2.yaml says.

    torchrun --nproc-per-node 2 examples/fsdp2.py --logdir runs
    tensorboard --logdir runs

Every rank calls `mb.record` with the same run directory; MemBoard takes the rank
from torchrun's environment and the mesh coordinates from the DeviceMesh. Started without
torchrun it trains on one rank.
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

CONFIG = Path(__file__).with_suffix(".yaml")

VOCABULARY = 1000
HIDDEN = 128
TOKENS = 64
BATCH = 8


class Model(nn.Module):
    """Predicts the next token with a stack of causal transformer layers."""

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
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(
            length, device=tokens.device
        )
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        logits = self.head(hidden).flatten(0, 1)
        return functional.cross_entropy(logits, targets.flatten())


def train(run_dir: Path, config: Path, *, num_steps: int, device: torch.device) -> None:
    # Recording may start before init_process_group: start-up is then seen too.
    with mb.record(run_dir, config=config) as rec:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        size = dist.get_world_size()
        mesh = init_device_mesh(device.type, (size,), mesh_dim_names=("dp",))

        torch.manual_seed(0)
        model = Model(num_layers=4).to(device)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        # What did not exist yet when recording began.
        rec.attach(model=model, optimizer=optimizer, mesh=mesh)
        torch.manual_seed(dist.get_rank())  # every rank reads texts of its own

        for step in range(num_steps):
            # Texts that count upwards from a random token.
            starts = torch.randint(0, VOCABULARY, (BATCH, 1), device=device)
            counted = torch.arange(TOKENS + 1, device=device)
            loss = model((starts + counted) % VOCABULARY)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            rec.step(tokens=BATCH * TOKENS, samples=BATCH)
            if step % 20 == 0 and dist.get_rank() == 0:
                print(f"step {step}, loss {loss.item():.3f}")
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--steps", type=int, default=100)
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
    run_dir = options.logdir / "fsdp2"
    train(run_dir, options.config, num_steps=options.steps, device=device)


if __name__ == "__main__":
    main()
