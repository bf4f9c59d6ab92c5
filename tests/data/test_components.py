"""Principal components against closed forms and a dense singular value decomposition."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from skiplab.checks import Refused
from skiplab.data import components
from skiplab.data.components import principal_components
from skiplab.randomness import numpy_generator


def draws(number: int, dimensions: int) -> np.ndarray:
    """Bytes whose variances differ from feature to feature."""
    noise = numpy_generator("tests", "components").normal(size=(number, dimensions))
    mixed = noise * np.linspace(5, 40, dimensions) @ np.linalg.qr(noise[:dimensions, :dimensions])[0]
    return np.clip(np.rint(mixed + 128), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
@pytest.mark.parametrize("number", [3_000, 41])  # more images than features, and fewer
def test_agrees_with_the_singular_value_decomposition(number: int, dtype: type) -> None:
    features = draws(3_000, 50)[:number].astype(dtype)
    fitted = principal_components(features, 7)
    centred = features - features.mean(axis=0)
    left, singular, right = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(fitted.variances, singular[:7] ** 2 / number, rtol=1e-10)
    signs = np.sign((fitted.directions * right[:7].T).sum(axis=0))
    np.testing.assert_allclose(fitted.directions, right[:7].T * signs, atol=1e-9)
    np.testing.assert_allclose(fitted.project(features), left[:, :7] * singular[:7] * signs, atol=1e-7)


def test_directions_are_orthonormal_and_their_largest_entry_is_positive() -> None:
    for number in (3_000, 41):
        directions = principal_components(draws(3_000, 50)[:number], 12).directions
        np.testing.assert_allclose(directions.T @ directions, np.eye(12), atol=1e-10)
        assert (directions[np.abs(directions).argmax(axis=0), np.arange(12)] > 0).all()


def test_projections_have_the_variances_and_no_correlation() -> None:
    features = draws(3_000, 50)
    fitted = principal_components(features, 5)
    covariance = np.cov(fitted.project(features).T, bias=True)
    np.testing.assert_allclose(covariance, np.diag(fitted.variances), atol=1e-8)


def test_the_sums_of_bytes_are_exact() -> None:
    features = np.full((3_000, 2), 255, np.uint8)
    features[0], features[1] = (0, 254), (253, 0)
    fitted = principal_components(features, 2)
    rows = features.tolist()
    sums = [sum(row[i] for row in rows) for i in range(2)]
    exact = np.array(
        [[3_000 * sum(r[i] * r[j] for r in rows) - sums[i] * sums[j] for j in range(2)] for i in range(2)]
    )
    values, _ = np.linalg.eigh(exact / 3_000**2)
    np.testing.assert_allclose(fitted.variances, values[::-1], rtol=1e-10)


def test_the_number_of_threads_does_not_matter() -> None:
    features = draws(2_000, 300)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fitted = principal_components(features, 20)
            results.append((fitted.directions.tobytes(), fitted.project(features).tobytes()))
    assert results[0] == results[1]


def test_too_many_components_are_refused() -> None:
    with pytest.raises(Refused, match="components is 51, but there are only 50 features; ask for at most 50"):
        principal_components(draws(3_000, 50), 51)
    with pytest.raises(Refused, match="components is 41, but 41 images span at most 40"):
        principal_components(draws(3_000, 50)[:41], 41)
    with pytest.raises(Refused, match="the number of components is 0, but must be at least 1"):
        principal_components(draws(3_000, 50), 0)


def test_directions_without_variance_are_refused() -> None:
    flat = draws(3_000, 50)
    flat[:, 9] = 4
    assert len(principal_components(flat, 49).variances) == 49
    for features, count in ((flat, 50), (np.repeat(flat[:4], 5, axis=0), 4)):
        with pytest.raises(
            Refused, match=f"components is {count}, but the .* images vary along fewer directions"
        ):
            principal_components(features, count)


def test_the_example_runs() -> None:
    result = doctest.testmod(components)
    assert result.attempted > 0
    assert result.failed == 0
