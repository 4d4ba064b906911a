"""Names of kernels: what runs under each, by a table of rules (`rules.tsv`)."""
