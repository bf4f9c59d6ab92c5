"""Matrix-free maths on callables: Lanczos, quadrature with limits, extremes, traces, moments; knows no network."""

from skiplab.linear_algebra.deflation import deflated, orthonormal, project_out
from skiplab.linear_algebra.density import Density, spectral_density
from skiplab.linear_algebra.exact import (
    dense_bytes,
    dense_matrix,
    matrix_eigenvalues,
    require_room,
)
from skiplab.linear_algebra.extremes import Extremes, extreme_eigenvalues
from skiplab.linear_algebra.lanczos import Tridiagonal, extend, lanczos
from skiplab.linear_algebra.memory import (
    Held,
    MemoryPlan,
    allowing,
    available_bytes,
    budget_of,
    extremes_held,
    fitting_steps,
    in_words,
    lanczos_bytes,
    plan,
    trace_held,
)
from skiplab.linear_algebra.moments import SpectralMoments, moments_of
from skiplab.linear_algebra.operators import Product, probes, require_symmetric
from skiplab.linear_algebra.quadrature import Gauss, gauss, mass_limits
from skiplab.linear_algebra.traces import Trace, xtrace

__all__ = [
    "Density",
    "Extremes",
    "Gauss",
    "Held",
    "MemoryPlan",
    "Product",
    "SpectralMoments",
    "Trace",
    "Tridiagonal",
    "allowing",
    "available_bytes",
    "budget_of",
    "deflated",
    "dense_bytes",
    "dense_matrix",
    "extend",
    "extreme_eigenvalues",
    "extremes_held",
    "fitting_steps",
    "gauss",
    "in_words",
    "lanczos",
    "lanczos_bytes",
    "mass_limits",
    "matrix_eigenvalues",
    "moments_of",
    "orthonormal",
    "plan",
    "probes",
    "project_out",
    "require_room",
    "require_symmetric",
    "spectral_density",
    "trace_held",
    "xtrace",
]
