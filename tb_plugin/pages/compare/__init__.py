"""Comparison: two runs or ranks by their numbers, two moments by what lives in them."""
