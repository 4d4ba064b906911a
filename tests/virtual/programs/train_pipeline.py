"""Pipeline parallelism: one stage a rank, or two where the schedule interleaves."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

WIDTH, BATCH, PARTS = 256, 32, 8


def layers(number):
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(number))
    )


def loss_of(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)


def main(kind: str) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    if kind == "interleaved":
        modules = [layers(2).to(device) for _ in range(2)]
        stages = [
            PipelineStage(module, place * size + rank, 2 * size, device)
            for place, module in enumerate(modules)
        ]
        schedule = ScheduleInterleaved1F1B(stages, PARTS, loss_fn=loss_of)
        ends = rank == size - 1
    else:
        modules = [layers(4).to(device)]
        stage = PipelineStage(modules[0], rank, size, device)
        kinds = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
        schedule = kinds[kind](stage, PARTS, loss_fn=loss_of)
        ends = rank == size - 1
    optimizer = torch.optim.AdamW([p for one in modules for p in one.parameters()])
    inputs = torch.randn(BATCH, WIDTH, device=device)
    targets = torch.randn(BATCH, WIDTH, device=device)
    for _ in range(20):
        losses = []
        given = (inputs,) if rank == 0 else ()
        if ends:
            schedule.step(*given, target=targets, losses=losses)
        else:
            schedule.step(*given)
        optimizer.step()
        optimizer.zero_grad()
    print("rank", rank, "is done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
