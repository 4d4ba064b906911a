"""Batches of a feeder's stream, freed while a capture runs: their memory has to wait.

pending.py RUN [--wait]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--wait", action="store_true")
options = parser.parse_args()

feeder, trainer = torch.cuda.Stream(), torch.cuda.Stream()
with mb.record(options.run) as rec:
    weight = torch.ones(1024, device="cuda")
    rec.step()
    graph = torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle()
    with torch.cuda.graph(graph, pool=pool, stream=trainer):
        feeder.wait_stream(trainer)
        for step in range(12):
            with torch.cuda.stream(feeder):
                batch = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
            trainer.wait_stream(feeder)
            weight.mul_(0.5)
            if options.wait:
                feeder.wait_stream(trainer)
            else:
                batch.record_stream(trainer)
            del batch
            print("step", step, flush=True)
        trainer.wait_stream(feeder)
