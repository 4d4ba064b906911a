"""Ranks that meet where the program says: at a store it makes, at an address, at a file."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def main(how: str, folder: str) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if how == "store":
        store = dist.TCPStore(host, port, size, is_master=rank == 0)
        if rank == 0:
            store.set("run", "run-7")
        store.set(f"device/{rank}", torch.cuda.get_device_name())
        store.add("arrived", 1)
        while int(store.get("arrived")) < size:
            time.sleep(0.1)
        devices = {store.get(f"device/{one}").decode() for one in range(size)}
        print(rank, store.get("run").decode(), devices, flush=True)
        dist.init_process_group(
            "nccl", store=dist.PrefixStore("job", store), rank=rank, world_size=size
        )
    else:
        method = f"tcp://{host}:{port}" if how == "tcp" else f"file://{folder}/meeting"
        dist.init_process_group("nccl", init_method=method, rank=rank, world_size=size)
    model = nn.parallel.DistributedDataParallel(nn.Linear(256, 256).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        model(torch.randn(8, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
