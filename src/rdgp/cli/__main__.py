"""Let `python -m rdgp.cli` do what `rdgp` does."""

import sys

from rdgp.cli import main

if __name__ == "__main__":
    sys.exit(main())
