"""How Sphinx makes the site of `make docs`: pages in Markdown, the API from docstrings, the examples executed.

Pages of names and of examples are written when the site is built, so that none can be forgotten.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import skiplab
from skiplab.version import __version__

HERE = Path(__file__).parent
MADE = HERE / "made"  # what is written here at every build; git ignores it

project = "skiplab"
author = "the skiplab authors"
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_title = "skiplab"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# Links from what is generated for GitHub lead to files that are no pages here.
suppress_warnings = ["myst.xref_missing"]


def names_page() -> str:
    """Every public name with its signature and docstring, measurements first."""
    parts = ["# API reference", "Everything that `import skiplab as sl` offers."]
    offered = {name: getattr(skiplab, name) for name in sorted(skiplab.__all__)}
    offered |= {f"remedies.{name}": getattr(skiplab.remedies, name) for name in skiplab.remedies.__all__}
    for heading, kinds in (("Functions", inspect.isfunction), ("Classes", inspect.isclass)):
        parts.append(f"## {heading}")
        for name, thing in offered.items():
            if kinds(thing):
                directive = "autofunction" if heading == "Functions" else "autoclass"
                members = "\n:members:" if heading == "Classes" else ""
                parts.append(f"```{{eval-rst}}\n.. {directive}:: skiplab.{name}{_indented(members)}\n```")
    return "\n\n".join(parts) + "\n"


def example_page(path: Path) -> str:
    """A script of examples/ as a page: its first sentence as the heading, its code in a cell that is run."""
    source = path.read_text()
    words = ast.get_docstring(ast.parse(source)) or path.stem
    title, _, more = (part.strip() for part in words.partition("? ")) if "? " in words else (words, "", "")
    title = title.rstrip(".") + "?" * bool(more)
    code = source.split('"""', 2)[2].strip()
    language = "{code-cell} ipython3" if _can_run(source) else "python"
    kernel = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"
    cell = f"```{language}\n{code}\n```"
    return f"{kernel}\n# {title}\n\n{more}\n\n{cell}\n\nThe script: `examples/{path.name}`.\n"


def _can_run(source: str) -> bool:
    """Whether the packages that a script imports are here and load; torchvision may do neither."""
    try:
        for line in ast.parse(source).body:
            if isinstance(line, ast.Import):
                for each in line.names:
                    importlib.import_module(each.name)
    except (ImportError, RuntimeError):
        return False
    return True


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ")


def write_pages() -> None:
    """Write the pages that are made at every build, where they have changed."""
    pages = {"api.md": names_page()}
    pages |= {
        f"{path.stem}.md": example_page(path) for path in sorted((HERE.parent / "examples").glob("*.py"))
    }
    MADE.mkdir(exist_ok=True)
    for name, text in pages.items():
        target = MADE / name
        if not target.is_file() or target.read_text() != text:
            target.write_text(text)


def as_markup(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain English: bars as in |λ| and stars as in a * b are no markup in them."""
    literal = False
    for number, line in enumerate(lines):
        literal = line.startswith(">>>") or (literal and bool(line.strip()))
        if not literal:
            parts = re.split(r"(``.*?``)", line)
            lines[number] = "".join(
                part if part.startswith("``") else re.sub(r"([|*])", r"\\\1", part) for part in parts
            )


def setup(app: Any) -> None:
    """Write the made pages before Sphinx looks for pages."""
    write_pages()
    app.connect("autodoc-process-docstring", as_markup)
