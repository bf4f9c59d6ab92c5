"""How like each other gradients at different inputs are, in theory: Balduzzi et al. (2017)."""
