"""The smallest effects worth having that several studies name, beside a point of accuracy (experiments.gains)."""

import math

# Of a ratio of accuracies: a point for a network that answers everything right.
ONE_PERCENT = 0.01
# Of times, walks, basins and speeds, which are compared in powers of ten.
TEN_PERCENT = math.log10(1.1)
POWERS_OF_TEN = "powers of ten"
# Of log gradient norms: a norm that halves on its way through the whole network.
HALVING = math.log(2)
# Of accuracy, where the paper says "slightly better".
HALF_A_POINT = 0.005
