"""The experiments of the paper, a module for each.

Each has a function `run(settings)`, which returns the numbers of one run, and `HYPOTHESES`, the functions that test
statements on a table of results.
"""
