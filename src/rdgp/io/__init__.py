"""Models and checkpoints in one file each: arrays in the safetensors format, the structure as JSON in its header.

Nothing in a file is ever executed: it names classes of this package, and only those are looked up.
"""

from rdgp.io._file import write_atomically
from rdgp.io._leaves import load_leaves, save_leaves
from rdgp.io._model import load, needs_double, save

__all__ = ["load", "load_leaves", "needs_double", "save", "save_leaves", "write_atomically"]
