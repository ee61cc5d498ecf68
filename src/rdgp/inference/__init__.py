"""Training: the evidence lower bound and the one loop that raises it."""
