"""Hooks on modules, autograd and optimizers, for whoever listens."""
