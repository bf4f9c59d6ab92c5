"""Eigenvalues of the τ family's matrices, against what note 4 proves of them."""

from __future__ import annotations

import numpy as np
import pytest

from skiplab.experiments.skip_networks import skip_of
from skiplab.reproduction.trial import Bench
from skiplab.studies.orhan2018.skip_spectra import QUANTITIES, Spectra, skip_spectra


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], np.ndarray]:
    """(τ's skip, quantity) → values (seeds, ranks)."""
    frame = skip_spectra.function(Spectra((0.0, 0.2, 0.4), (0, 1, 2), width=16), Bench())
    return {
        (str(skip), str(quantity)): rows.pivot(index="seed", columns="layer", values="value").to_numpy()
        for (skip, quantity), rows in frame.groupby(["skip", "quantity"], observed=True)
    }


def test_every_tau_seed_and_rank_is_there(found: dict[tuple[str, str], np.ndarray]) -> None:
    assert set(found) == {(skip_of(tau), quantity) for tau in (0.0, 0.2, 0.4) for quantity in QUANTITIES}
    assert {values.shape for values in found.values()} == {(3, 16)}
    assert all((np.diff(values, axis=1) <= 0).all() for values in found.values())
    distinct = found["tau-0.4", "covariance"]
    assert not np.allclose(distinct[0], distinct[1]), "every seed draws its own matrix"


def test_at_zero_the_matrix_is_orthogonal(found: dict[tuple[str, str], np.ndarray]) -> None:
    for quantity in QUANTITIES:
        np.testing.assert_allclose(found["tau-0", quantity], 1.0, rtol=1e-6)


def test_eigenvalues_stay_on_the_unit_circle(found: dict[tuple[str, str], np.ndarray]) -> None:
    for skip in ("tau-0.2", "tau-0.4"):
        np.testing.assert_allclose(found[skip, "modulus"], 1.0, rtol=1e-6)


def test_the_covariances_determinant_is_one_and_the_correlations_trace_is_n(
    found: dict[tuple[str, str], np.ndarray],
) -> None:
    """det ΣΣᵀ = |det Σ|² = 1, as all |eigenvalues| are 1; a correlation matrix has ones on its diagonal."""
    for skip in ("tau-0.2", "tau-0.4"):
        np.testing.assert_allclose(np.log(found[skip, "covariance"]).sum(1), 0.0, atol=1e-4)
        np.testing.assert_allclose(found[skip, "correlation"].sum(1), 16.0, rtol=1e-5)


def test_larger_tau_spreads_covariance_and_correlation(found: dict[tuple[str, str], np.ndarray]) -> None:
    for quantity in ("covariance", "correlation"):
        spread = [np.log(found[skip_of(tau), quantity]).std(1).mean() for tau in (0.0, 0.2, 0.4)]
        assert spread[0] < 1e-6
        assert spread[2] > 1.5 * spread[1]
