"""Which modules are rectifiers: activations that switch a unit on where their input is positive.

torch's own are listed in ``operations``. Other libraries bring theirs (timm's GELUTanh and HardMish, transformers'
NewGELUActivation), which are recognised by what they do to a few numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skiplab.subjects import operations
from skiplab.subjects.untouched import untouched

KNOWN = tuple(kind for each in operations.RECTIFIERS for kind in each.modules)
REACH = 8.0  # where every smooth rectifier in use is nearly one: GELU(−8) and SiLU(−8) are above −.003

TIMES = 16  # 64 pairs of numbers: dropout of a half treats all alike once in 2⁶⁴ calls


def is_rectifier(part: nn.Module) -> bool:
    """Whether a module is a rectifier, by its class or, where torch does not know it, by what it does.

    It takes numbers one by one, passes large positive ones on and answers large negative ones with less than half.

    >>> from torch import nn
    >>> is_rectifier(nn.GELU()), is_rectifier(nn.Tanh())
    (True, False)
    """
    if isinstance(part, KNOWN):
        return True
    # Without parts, parameters and buffers there is nothing that a call could change or cost.
    holds = (*part.children(), *part.parameters(), *part.buffers())
    if holds or type(part).__module__.split(".")[0] == "torch":
        return False
    probe = torch.tensor([[-REACH, REACH, -1.0, 1.0], [REACH / 2, 0.0, -REACH, REACH]])
    probe = probe.repeat(TIMES, 1)  # what drops numbers by chance must not look alike from both ends
    answers = [_answer(part, each) for each in (probe, probe.flip(0, 1))]
    first, flipped = answers
    if first is None or flipped is None or not torch.equal(first.flip(0, 1), flipped):
        return False
    low, high, _, one = first[0].tolist()
    return high >= REACH / 2 and 0 < one < high and abs(low) < high / 2


def _answer(part: nn.Module, values: Tensor) -> Tensor | None:
    """What a module makes of numbers in evaluation; None where it takes other things or gives other shapes."""
    was_training = part.training
    try:
        part.training = False
        with untouched(part), torch.random.fork_rng(devices=[]), torch.no_grad():
            found = part(values.clone())
    except Exception:  # whatever it is that a module of another library does not like
        return None
    finally:
        part.training = was_training
    return found if isinstance(found, Tensor) and found.shape == values.shape else None
