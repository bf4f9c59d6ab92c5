"""Tests of remedies share the networks that lie beside them, and the stock models in ``tests/oracles``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
