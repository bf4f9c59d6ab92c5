"""The scripts in tools/ as modules, which are no part of the package."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).parents[2] / "tools"


def tool(name: str) -> ModuleType:
    """The script of this name, loaded anew; or the module of a package beside the scripts, such as "speed.goals"."""
    sys.path.insert(0, str(TOOLS))  # scripts import what lies beside them
    try:
        if "." in name:
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found
    finally:
        sys.path.remove(str(TOOLS))
