"""Small models and training steps for the tracker's tests."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A transformer block of nine modules."""

    def __init__(self, dim=128, heads=4):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        )
        self.heads = heads

    def forward(self, x):
        batch, length, dim = x.shape
        shape = (batch, length, self.heads, dim // self.heads)
        q, k, v = (
            part.reshape(shape).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, dim))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Embeddings, blocks, a norm and an output: 6 modules and 9 per layer."""

    def __init__(self, vocabulary=1024, dim=128, layers=2, length=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(length, dim)
        self.layers = nn.ModuleList(Block(dim) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        x = self.tokens(x) + self.places(places)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def mlp(width=32):
    """Four modules below the root, the first of which gets no gradient for its input."""
    return nn.Sequential(
        nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
    )


def param_bytes(*modules):
    """Bytes of all parameters of these modules."""
    return sum(p.numel() * 4 for module in modules for p in module.parameters())


def tokens(batch=4, length=64, vocabulary=1024):
    """A batch of token numbers."""
    return torch.randint(0, vocabulary, (batch, length))


def train_step(model, optimizer, x):
    """One step of a language model on its own inputs; the loss."""
    return float(train_step_unread(model, optimizer, x))


def train_step_unread(model, optimizer, x):
    """The same, and the loss stays a tensor."""
    loss = functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def plain_step(model, optimizer, x):
    """One step on the sum of the outputs."""
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def conformance_step(model, optimizer, x, y):
    """The step whose peak is on record for torch's tracker: 13 759 100 bytes."""
    optimizer.zero_grad()
    out = model(x)
    loss = functional.cross_entropy(out.view(-1, out.shape[-1]), y.view(-1))
    loss.backward()
    optimizer.step()


def started(make, step, *data, num_steps=2):
    """A model and its optimizer after some steps: states and buffers are there."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(num_steps):
        step(model, optimizer, *data)
    return model, optimizer


def hooks_of(model):
    """Every hook dictionary of every module and parameter, keys in their order."""
    names = [n for n in vars(nn.Module()) if "hook" in n]
    found = {}
    for path, module in model.named_modules():
        for name in names:
            value = getattr(module, name)
            found[path, name] = (
                list(value.items()) if isinstance(value, dict) else value
            )
    for path, parameter in model.named_parameters():
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            found[path, name] = getattr(parameter, name)
    return found
