#!/usr/bin/env python3
"""Write what README.md and docs/ say in numbers, from published/ and from the first example alone.

python tools/readme.py            rewrite README.md, docs/scoreboard.md and docs/speed.md, and draw their figures
python tools/readme.py --check    exit 1 if they are not what this would write; the example is not run again

Each part is made in tools/pages/.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import sys
import tempfile
from pathlib import Path

from pages.found import found
from pages.scoreboard import board
from pages.speed import draw_benchmarks, speed_in_short, speed_page
from pages.validation import validated

from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.publishing import picture_bytes

ROOT = Path(__file__).parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
SCOREBOARD, SPEED = DOCS / "scoreboard.md", DOCS / "speed.md"
EXAMPLE, LOOK = ROOT / "examples" / "first_look.py", DOCS / "first_look.webp"


def written(*, run_example: bool) -> str:
    """README.md with every marked part made anew; the example only where it is to run."""
    text = README.read_text()
    parts = {"found": found, "speed": speed_in_short, "validated": validated} | (
        {"example": example} if run_example else {}
    )
    for name, make in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        made = make().replace("\\", r"\\")  # a replacement's own escapes are not meant
        text, count = re.subn(pattern, rf"\g<1>{made}\n\g<2>", text, flags=re.DOTALL)
        assert count == 1, f"README.md has no part marked {name}"
    return text


def example() -> str:
    """The first example and what it prints; its figure is drawn beside."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(str(EXAMPLE))
    with tempfile.TemporaryDirectory() as aside:
        style.save(names["figure"], Path(aside))
        write_bytes(LOOK, picture_bytes(Path(aside) / "figure.png"))
    code = EXAMPLE.read_text().split('"""', 2)[2].strip()
    return f"```python\n{code}\n```\n\nprints\n\n```text\n{printed.getvalue().strip()}\n```"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    pages = {SCOREBOARD: board, SPEED: speed_page}
    if parser.parse_args().check:
        same = all(page.read_text() == make() for page, make in pages.items())
        sys.exit(not same or written(run_example=False) != README.read_text())
    draw_benchmarks()
    README.write_text(written(run_example=True))
    for page, make in pages.items():
        page.write_text(make())
