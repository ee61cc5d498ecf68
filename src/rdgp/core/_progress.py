"""A progress line on the terminal for whatever takes more than two seconds."""

import sys
import time
from types import TracebackType
from typing import TextIO

_PATIENCE = 2.0  # seconds before anything is shown
_INTERVAL = 0.2


class Progress:
    """Show steps done, time left and a short message on one line; silent when fast or when nobody watches."""

    def __init__(self, label: str, total: int, *, enabled: bool = True, stream: TextIO | None = None) -> None:
        self.label, self.total = label, total
        self.stream = sys.stderr if stream is None else stream
        self.enabled = enabled and self.stream.isatty()
        self.start = self.shown = time.monotonic()
        self.width = 0

    def __enter__(self) -> "Progress":
        return self

    def update(self, done: int, message: str = "") -> None:
        """Redraw the line if it is time to."""
        now = time.monotonic()
        if not self.enabled or now - self.start < _PATIENCE or now - self.shown < _INTERVAL:
            return
        self.shown = now
        left = (now - self.start) / max(done, 1) * max(self.total - done, 0)
        self._write(f"{self.label} {done}/{self.total} · {_clock(left)} left {message}".rstrip())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.width:
            self._write("")
            self.stream.write("\r")

    def _write(self, line: str) -> None:
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
