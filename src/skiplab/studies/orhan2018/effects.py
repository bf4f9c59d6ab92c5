"""The smallest effects worth having, in the units of this paper's claims.

The captions print no values of which a tenth could be taken; accuracy's one point is ``ONE_POINT`` of ``gains``.
"""

from __future__ import annotations

import math

from skiplab.experiments.gains import ONE_POINT

HALF_POINT = ONE_POINT / 2  # of accuracy, where a caption says "slightly better", which a point would not be
SHARE = 0.01  # of eigenvalues or responses: one in a hundred, as one point is of answers
GROUP_SHARE = (
    0.05  # of eigenvalues, between best and worst networks; declared before the runs of figures 4 and S7
)
CORRELATION = math.atanh(0.2)  # as Fisher's z; declared before the runs of figures 4 and S7
NORM = 0.01  # of incoming weights, a hundredth of the norm of about 1 with which training starts
SLOPE = 0.1  # of an estimate against the truth: a tenth of following it
TWOFOLD = math.log(2)  # of gradient norms between the top and the bottom layer: less is not vanishing
TENTH = math.log(1.1)  # of a norm, as a logarithm: design's tenth of a value
