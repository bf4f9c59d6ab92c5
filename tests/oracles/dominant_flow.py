"""yu2019's trivial case by whole matrices, one draw at a time."""

from __future__ import annotations

import numpy as np

from skiplab.theory.dominant_flow.trivial_case import TrivialCase


def whole_matrices(case: TrivialCase, kind: str, draws: int, stream: np.random.Generator) -> np.ndarray:
    """σ^(l) of each draw, as supplement D.4.1 defines it, every row counted."""
    shares = np.empty(draws)
    for draw in range(draws):
        theta = np.eye(case.n)
        for _ in range(case.steps):
            A = stream.normal(0, case.sigma_a, (case.n, case.n))
            K = np.eye(case.n) + case.epsilon * A if kind == "residual" else A
            theta = theta @ K.T @ np.diag((stream.random(case.n) < case.p).astype(float))
        theta = theta @ np.diag(stream.normal(0, case.sigma_v, case.n))
        own = np.diag(theta)
        shares[draw] = (np.abs(own) > np.abs(theta.sum(1) - own)).mean()
    return shares
