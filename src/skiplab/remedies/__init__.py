"""Changes to a copy of a user's module: what the papers propose against what they found.

A remedy never touches the module it is given. It returns a copy with the same mode, dtype and device, drawn by the
seed it is given, with what was changed in words (``Treated``), or refuses in one sentence that names what is in its
way. ``REMEDIES`` has all of them by id, to be applied in one way.
"""

from skiplab.remedies.biases import bias_regularisation
from skiplab.remedies.branches import rescale_branches
from skiplab.remedies.catalogue import REMEDIES, Remedy
from skiplab.remedies.initialising import initialise
from skiplab.remedies.one_norm import normalise_at
from skiplab.remedies.skips import add_skips
from skiplab.remedies.treated import Treated

__all__ = [
    "REMEDIES",
    "Remedy",
    "Treated",
    "add_skips",
    "bias_regularisation",
    "initialise",
    "normalise_at",
    "rescale_branches",
]
