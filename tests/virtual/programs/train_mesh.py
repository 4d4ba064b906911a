"""Two dimensions: fully_shard over one, tensor parallel over the other; a sharded checkpoint."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

WIDTH = 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def main(ways: int, folder: str) -> None:
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    shape = (dist.get_world_size() // ways, ways)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(*(Block() for _ in range(4))).cuda()
    for block in model:
        parallelize_module(
            block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()}
        )
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(20):
        loss = model(torch.randn(8, WIDTH, device="cuda")).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            states, optimizer_states = get_state_dict(model, optimizer)
            dcp.save(
                {"model": states, "optimizer": optimizer_states}, checkpoint_id=folder
            )
            print("saved on rank", dist.get_rank(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
