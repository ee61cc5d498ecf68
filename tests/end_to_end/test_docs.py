"""Every block of Python in the README and the documentation runs as it stands."""

import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]


def blocks(page: Path) -> list[str]:
    """Return the blocks of a page, each at the line where it stands, so that errors point there."""
    text = page.read_text()
    found = re.finditer(r"```python\n(.*?)```", text, re.DOTALL)
    return ["\n" * text[: match.start(1)].count("\n") + match.group(1) for match in found]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_in_their_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare = FILES.get(page.name)
    if prepare is not None:
        prepare()
    before = jax.config.jax_enable_x64
    scope: dict[str, object] = {"__name__": "__main__"}
    try:
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), scope)
    finally:
        jax.config.update("jax_enable_x64", before)


def _winds() -> None:
    """Write the files that the page about data reads."""
    from rdgp.datasets import load_wind

    if "RDGP_DATA" not in os.environ:
        pytest.skip("RDGP_DATA names no folder of tables")
    july = load_wind("surface", month=7).drop_vars("month")
    july.expand_dims(level=[850.0], time=[np.datetime64("2010-07-01", "ns")]).to_netcdf("winds.nc", engine="h5netcdf")


FILES = {"data.md": _winds}
