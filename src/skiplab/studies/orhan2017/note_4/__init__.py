"""Note 4: skip matrices Σ = T O T⁻¹ with eigenvalues on the unit circle and correlated eigenvectors."""

from skiplab.studies.orhan2017.note_4.study import STUDY
from skiplab.studies.orhan2017.tau_matrices import SPECTRA, matrices, values
from skiplab.studies.orhan2017.tau_matrices import TauMatrices as Matrices

__all__ = ["SPECTRA", "STUDY", "Matrices", "matrices", "values"]
