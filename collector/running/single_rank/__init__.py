"""Ranks that run one after the other: stores, groups and objects without the others."""
