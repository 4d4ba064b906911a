"""Torch's extension points (modules, functions, optimizers), dispatched to listeners."""
