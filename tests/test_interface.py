"""What `import skiplab as sl` offers for studies: run and results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import skiplab as sl
from skiplab.checks import DataMissing, Refused


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is published and no image set is here but digits."""
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", tmp_path / "published")
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "no sets"))
    monkeypatch.setenv("SKIPLAB_STORE", str(tmp_path / "default"))


def test_run_then_results(tmp_path: Path) -> None:
    run = sl.run("orhan2017/figure-4", scale="smoke", store=tmp_path / "mine")
    assert run.folder == tmp_path / "mine" / "studies/orhan2017/figure-4/smoke"
    assert {row["study"] for row in run.verdicts} == {"orhan2017/figure-4"}
    table = sl.results("orhan2017/figure-4", store=str(tmp_path / "mine"))
    pd.testing.assert_frame_equal(table, pd.read_parquet(run.folder / "table.parquet"))


def test_overrides_are_keywords_and_deviations() -> None:
    run = sl.run("orhan2017/figure-4", scale="smoke", runs=3, seed=1)
    assert run.deviations == {
        "runs": {"declared": 2, "used": 3},
        "seed": {"declared": 0, "used": 1},
    }
    assert sorted(sl.results("orhan2017/figure-4")["target"].unique()) == [1, 2, 3]


def test_wrong_calls_say_the_way_out() -> None:
    with pytest.raises(Refused, match=r"no study 'figure-4'; .*Did you mean orhan2017/figure-4"):
        sl.run("figure-4")
    with pytest.raises(Refused, match="orhan2017/figure-4 has not been run here; run it with `skiplab run"):
        sl.results("orhan2017/figure-4")
    with pytest.raises(DataMissing, match="orhan2017/figure-7 needs cifar10 and cifar100-coarse, not found"):
        sl.run("orhan2017/figure-7")


def test_the_package_names_what_it_offers() -> None:
    assert set(sl.__all__) <= set(dir(sl))
    for name in sl.__all__:
        assert getattr(sl, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'diagnos'"):
        sl.diagnos  # noqa: B018
