"""The shell: `rdgp fit`, `rdgp predict` and their kin."""
