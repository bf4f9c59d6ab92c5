"""Second derivatives of a loss: products with the Hessian and Gauss–Newton matrices, and their spectra."""
