"""Where a residual branch ends: the parameters that scale it exactly, or the module that returns it.

A branch W x + b, γ x̂ + β (a normalisation with trained scales), or either behind operations that let a positive
factor through (ReLU, pooling, dropout, views) is multiplied by a number by multiplying its last parameters.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from skiplab.checks import Refused
from skiplab.remedies.recorded_pass import RecordedPass, RecordedStep
from skiplab.subjects.operations import COPIES, DROPOUTS, FLATTENINGS, MEANS, VIEWS, WINDOWS
from skiplab.subjects.residual_blocks import ADDITIONS, PRODUCTS, WEIGHTS

NORMS = frozenset({"batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm"})
ATTENTION = "multi_head_attention_forward"
# f(c x) = c f(x) for c > 0
HOMOGENEOUS = frozenset(
    {
        "relu",
        "leaky_relu",
        "prelu",
        "permute",
        "transpose",
        "getitem",
        "squeeze",
        "unsqueeze",
        "to",
        "roll",
        "neg",
    }
    | {"expand", "unflatten", "swapaxes", "movedim", "div", "truediv", "T", "mT", "alias"}
    | {
        name
        for each in (COPIES, DROPOUTS, FLATTENINGS, MEANS, VIEWS, *WINDOWS.values())
        for name in each.names
    }
)


@dataclass(frozen=True)
class BranchEnd:
    """What to multiply: parameters by name, or else the output of a module. ``kind`` is "weights", "norm" or ""."""

    parameters: tuple[str, ...] = ()
    kind: str = ""
    module: str | None = None


def branch_end(record: RecordedPass, addition: int, operand: int, name: str) -> BranchEnd:
    """Where the branch that is the given operand of an addition ends, or a refusal that names what is in the way."""
    start = record.steps[addition].parents[operand]
    walk = _Walk(record, addition)
    problem = walk.back(start)
    if problem is None:
        return BranchEnd(tuple(walk.parameters), walk.kind)
    for place in walk.trail:
        alone = set(record.users(place)) <= {addition, *walk.trail}
        for module, _ in record.modules_returning(place):
            if module and alone and record.times_called(module) == 1:
                return BranchEnd(module=module)
    raise Refused(
        f"the branch of {name!r} ends in {problem}, and no module of its own returns it, so it cannot be scaled; end "
        "it in a module, such as nn.Tanh() in place of torch.tanh."
    )


def sum_end(record: RecordedPass, addition: int, name: str) -> str:
    """The module whose output is the sum, up to operations that let a positive factor through."""
    place = addition
    while True:
        users = record.users(place)
        for module, calls in record.modules_returning(place):
            after = all(record.steps[user].number > calls for user in users)
            if after and record.times_called(module) == 1:
                return module
        if len(users) != 1 or not _passes(record.steps[users[0]]):
            raise Refused(
                f"the sum {name!r} is no output of a module, so alpha cannot scale it; leave alpha out, or give "
                "every residual addition a module of its own."
            )
        place = users[0]


class _Walk:
    """From a branch's last step back to the parameters that are linear in it."""

    def __init__(self, record: RecordedPass, addition: int) -> None:
        self.record = record
        self.passed = {addition}
        self.trail: list[int] = []  # what a factor passes through, and the step that stops it
        self.parameters: list[str] = []
        self.kind = ""

    def back(self, place: int) -> str | None:
        """Collect the parameters; what is in the way in words, or None."""
        step = self.record.steps[place]
        if not set(self.record.users(place)) <= self.passed:
            return f"{_called(step)}, which others read too"
        self.passed.add(place)
        self.trail.append(place)
        shared = [each for each in step.parameters if self.record.uses[each] > 1]
        if shared and step.name != "prelu":
            return f"{shared[0]!r}, which others use too"
        if step.name in WEIGHTS or step.name in NORMS:
            return self._weights(step)
        if step.name in PRODUCTS and len(step.parents) == 1 and step.parameters:  # a layer scale
            self._take(step.parameters, "weights")
            return None
        if step.name in ADDITIONS and (step.parameters or len(step.parents) == 2):
            self.trail.clear()
            self._take(step.parameters, "weights")
            return next(filter(None, map(self.back, step.parents)), None)
        if _passes(step):
            return self.back(step.parents[0])
        return _called(step)

    def _weights(self, step: RecordedStep) -> str | None:
        wanted: Collection[str] = step.parameters
        if step.name == ATTENTION:
            wanted = [each for each in wanted if "out_proj." in each]
        elif step.name in WEIGHTS and (step.other_tensors or len(step.parents) > 1):
            return f"{_called(step)}, whose weights are computed"
        if not wanted:
            return f"{_called(step)} without trained scales"
        self._take(wanted, "norm" if step.name in NORMS else "weights")
        return None

    def _take(self, names: Collection[str], kind: str) -> None:
        self.parameters += [name for name in names if name not in self.parameters]
        self.kind = self.kind or kind


def _passes(step: RecordedStep) -> bool:
    """Whether a positive factor passes through a step."""
    product = step.name in PRODUCTS and not step.parameters
    return len(step.parents) == 1 and (step.name in HOMOGENEOUS or product)


def _called(step: RecordedStep) -> str:
    return f"{step.name}() in {step.scope!r}" if step.scope else f"{step.name}()"
