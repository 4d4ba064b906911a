"""Small models and training steps for the tracker's tests."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A transformer block: attention and feed-forward, both after a norm."""

    def __init__(self, dim=128, heads=4):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
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
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Embeddings, blocks, a norm and an output: three modules around the blocks."""

    def __init__(self, vocabulary=1000, dim=128, layers=2, length=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(length, dim)
        self.layers = nn.ModuleList(Block(dim) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, vocabulary)
        self.register_buffer("scale", torch.ones(dim))

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        x = (self.tokens(x) + self.places(places)) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def mlp(width=32):
    """Four modules below the root, the first of which gets no gradient for its input."""
    return nn.Sequential(
        nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.ReLU()
    )


def tokens(batch=4, length=64, vocabulary=1000):
    """A batch of token numbers."""
    return torch.randint(0, vocabulary, (batch, length))


def train_step(model, optimizer, x):
    """One step of a language model on its own inputs; the loss."""
    loss = functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def plain_step(model, optimizer, x):
    """One step on the sum of the outputs."""
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())
