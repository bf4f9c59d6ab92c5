"""The digits are scikit-learn's own, split once and for all."""

from __future__ import annotations

import numpy as np
import pytest

from skiplab import data
from skiplab.checks import DataMissing
from skiplab.data import digits


def test_both_splits_together_are_scikit_learns_digits() -> None:
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    parts = [data.load("digits", split) for split in ("train", "test")]
    assert [len(part) for part in parts] == [1_437, 360]
    assert all(part.images.shape[1:] == (8, 8, 1) and part.images.dtype == np.uint8 for part in parts)
    ours = np.concatenate([np.c_[part.images.reshape(-1, 64), part.labels] for part in parts])
    theirs = np.c_[np.rint(values * 255 / 16), labels]
    assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.astype(int).tolist()))


def test_every_class_is_in_both_splits() -> None:
    for split in ("train", "test"):
        assert set(data.load("digits", split).labels.tolist()) == set(range(10))


def test_a_caller_cannot_spoil_the_memory() -> None:
    before = data.load("digits")
    before.images[:] = 0
    before.labels[:] = 0
    assert data.load("digits").images.any()
    assert data.load("digits").labels.any()


def test_without_scikit_learn_the_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits.importlib.util, "find_spec", lambda name: None)
    digits._table.cache_clear()
    assert not data.is_available("digits")
    with pytest.raises(DataMissing, match="not installed; run `pip install scikit-learn`"):
        data.load("digits")
