"""DistributedDataParallel, as its tutorial has it: a sampler, buckets, a checkpoint, a mean."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main(folder: str) -> None:
    dist.init_process_group(backend="nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    torch.manual_seed(0)
    layers = [
        layer
        for _ in range(4)
        for layer in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU())
    ]
    model = nn.Sequential(*layers, nn.Linear(256, 10)).to(device)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = DistributedDataParallel(model, device_ids=[local], bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(torch.randn(4096, 256), torch.randint(10, (4096,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for step, (inputs, labels) in enumerate(loader):
            with model.no_sync():
                loss_of(model, inputs, labels, device).backward()
            loss = loss_of(model, inputs, labels, device)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            mean = loss.detach()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            if step == 1:
                if dist.get_rank() == 0:
                    torch.save(model.module.state_dict(), f"{folder}/model.pt")
                dist.barrier()
                print("saved on rank", dist.get_rank(), flush=True)
    dist.destroy_process_group()


def loss_of(model, inputs, labels, device):
    outputs = model(inputs.to(device, non_blocking=True))
    return nn.functional.cross_entropy(outputs, labels.to(device))


if __name__ == "__main__":
    main(sys.argv[1])
