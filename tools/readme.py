#!/usr/bin/env python3
"""Write what README.md and docs/ say in numbers, from published/ and from README's examples alone.

python tools/readme.py            rewrite README.md, docs/scoreboard.md and docs/speed.md, and draw their figures
python tools/readme.py --check    exit 1 if they are not what this would write; the examples are not run again

Each part is made in tools/pages/. An example whose packages are not here (torchvision: tests/stock-models.txt)
stays as it is, which is said.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import runpy
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pages.found import found
from pages.scoreboard import board
from pages.speed import draw_benchmarks, speed_in_short, speed_page
from pages.validation import validated

from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.publishing import picture_bytes

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
README, DOCS = ROOT / "README.md", ROOT / "docs"
SCOREBOARD, SPEED = DOCS / "scoreboard.md", DOCS / "speed.md"
EXAMPLES = (
    "resnet18",
    "first_look",
)  # examples/NAME.py; README shows what it prints, docs/NAME.webp its figure


def written(*, run_examples: bool) -> str:
    """README.md with every marked part made anew; the examples only where they are to run."""
    text = README.read_text()
    parts: dict[str, Callable[[], str | None]] = {
        "found": found, "speed": speed_in_short, "validated": validated
    }  # fmt: skip
    if run_examples:
        parts |= {name: partial(example, name) for name in EXAMPLES}
    for name, make in parts.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", flags=re.DOTALL)
        assert len(marks.findall(text)) == 1, f"README.md has no part marked {name}"
        made = make()
        if made is not None:
            replaced = made.replace("\\", r"\\")  # a replacement's own escapes are not meant
            text = marks.sub(rf"\g<1>{replaced}\n\g<2>", text)
    return text


def example(name: str) -> str | None:
    """An example and what it prints, its figure drawn beside; None where a package that it needs is not here."""
    script, printed = ROOT / "examples" / f"{name}.py", io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            names = runpy.run_path(str(script))
    except ModuleNotFoundError as missing:
        print(f"README keeps its part {name} as it is: {missing}")
        return None
    with tempfile.TemporaryDirectory() as aside:
        style.save(names["figure"], Path(aside))
        write_bytes(DOCS / f"{name}.webp", picture_bytes(Path(aside) / "figure.png"))
    code = script.read_text().split('"""', 2)[2].strip()
    return f"```python\n{code}\n```\n\n```text\n{printed.getvalue().strip()}\n```"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    pages = {SCOREBOARD: board, SPEED: speed_page}
    if parser.parse_args().check:
        same = all(page.read_text() == make() for page, make in pages.items())
        sys.exit(not same or written(run_examples=False) != README.read_text())
    from conftest import let_torchvision_load

    let_torchvision_load()
    draw_benchmarks()
    README.write_text(written(run_examples=True))
    for page, make in pages.items():
        page.write_text(make())
