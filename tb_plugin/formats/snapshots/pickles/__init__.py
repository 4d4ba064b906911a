"""The machine that reads snapshot pickles without classes."""
