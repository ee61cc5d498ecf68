"""Options that commands share, and the reading of their texts."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
PressureLevel = Annotated[
    str | None, typer.Option("--pressure-level", help="Pressure level by value: 850, '850 hPa', '85000 Pa'.")
]
Time = Annotated[str | None, typer.Option("--time", help="Time by value: 2010-07, or a month 1..12.")]
NoiseStd = Annotated[
    str,
    typer.Option(
        "--noise-std",
        metavar="NAMES",
        help="Variables of known standard deviations, one for each of --variables, as u_err,v_err.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
Model = Annotated[Path, typer.Argument(help="Model file that rdgp fit wrote.", show_default=False)]


def as_time(text: str | None) -> str | int | None:
    """Return a month as a number, anything else as it is."""
    return int(text) if text is not None and text.isdigit() and len(text) <= 2 else text


def as_names(text: str) -> tuple[str, ...]:
    """Return names apart by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def as_numbers(text: str, option: str) -> list[float]:
    """Return numbers apart by commas, or raise."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"{option} must be numbers apart by commas, got {text!r}") from None


def as_batch_size(text: str) -> int | str | None:
    """Return "auto", None for all points, or a number."""
    if text in ("auto", "all"):
        return "auto" if text == "auto" else None
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"--batch-size must be auto, all or a whole number of at least 1, got {text!r}")
    return int(text)
