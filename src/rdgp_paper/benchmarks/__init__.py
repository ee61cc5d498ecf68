"""How well models predict: commands such as `python -m rdgp_paper.benchmarks.winds`."""
