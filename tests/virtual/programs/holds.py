"""Another process on the device: holds memory until its input ends.

holds.py MEBIBYTES
"""

import sys

import torch

held = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
