"""How well models predict; each module is a command, such as `python -m rdgp_paper.benchmarks.winds`."""
