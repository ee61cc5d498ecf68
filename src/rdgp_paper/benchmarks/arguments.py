"""Arguments of the commands."""

import argparse
from collections.abc import Callable, Iterable


def one_of(choices: Iterable[object]) -> Callable[[str], str]:
    """Return the type of an argument with given choices, of which there may be none: argparse's own needs one."""
    known = [str(choice) for choice in choices]

    def check(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}, got {text!r}")
        return text

    return check
