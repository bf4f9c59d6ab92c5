"""The digits inside scikit-learn: 1,797 images of 8×8, the set that needs no network.

Pixels there are 0 to 16; here they are bytes, round(value·255/16), so that every image set looks alike.
The split is ours: a fixed random order, the first 1,437 (80 %) for training, 360 for testing.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from skiplab.checks import DataMissing
from skiplab.randomness import numpy_generator

if TYPE_CHECKING:
    import numpy as np

TRAINING = 1_437
CLASSES = 10
SHAPE = (8, 8, 1)

# What fingerprint("digits") gives; a test computes it from the arrays.
FINGERPRINT = "e3ddfb7844d2a09fe520c119ddcf90ac3b71db72c0c7f2b9524c7b593ec6bd00"


def is_installed() -> bool:
    """Whether scikit-learn, which carries the digits, can be imported."""
    return importlib.util.find_spec("sklearn") is not None


def read_digits(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a split's images (N×8×8×1 bytes) and labels, as fresh arrays."""
    import numpy as np

    values, labels = _table()
    # Sorting uniform draws depends on less of numpy than its permutation(), whose stream may change.
    order = numpy_generator("digits", "split").random(len(labels)).argsort(kind="stable")
    chosen = order[:TRAINING] if split == "train" else order[TRAINING:]
    images = np.rint(values[chosen] * (255 / 16)).astype(np.uint8)
    return images.reshape(-1, *SHAPE), labels[chosen]


@lru_cache(maxsize=1)
def _table() -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise DataMissing(
            "digits is part of scikit-learn, which is not installed; run `pip install scikit-learn`."
        )
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if path.exists():
        # Importing scikit-learn takes longer than a whole smoke trial, reading its file does not.
        rows = np.loadtxt(path, delimiter=",")
        return rows[:, :-1], rows[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    return np.asarray(values), np.asarray(labels, np.int64)
