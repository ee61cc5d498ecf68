"""Models and checkpoints in one file each: arrays in the safetensors format, the structure as JSON in its header.

Nothing in a file is ever executed: it names classes by their registered tags, and only those are looked up.
"""

from rdgp.io._file import write_atomically
from rdgp.io._leaves import load_leaves, save_leaves
from rdgp.io._model import from_json, load, needs_double, save, to_json

__all__ = ["from_json", "load", "load_leaves", "needs_double", "save", "save_leaves", "to_json", "write_atomically"]
