"""β and α of balduzzi2017 eq 2, x ↦ α(x + β F(x)), at the residual additions of any network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

import torch
from torch import nn

from skiplab.checks import Refused, positive, require, seeded
from skiplab.remedies.branch_ends import BranchEnd, branch_end, sum_end
from skiplab.remedies.extended import Scaled, extend
from skiplab.remedies.recorded_pass import RecordedPass, recorded
from skiplab.remedies.tracing import copied
from skiplab.remedies.treated import Treated, chosen, counted
from skiplab.subjects.batches import Batch
from skiplab.subjects.residual_blocks import ResidualBlock, residual_blocks

REMEDY = "rescaling branches"
LIKE_THE_OTHERS = "like the others"
ROUNDS = 10  # ours: a branch 1000 times too large took 4, with normalisation in blocks and without
CLOSE = 0.01  # ours: a hundredth is far less than ratios differ between blocks


def rescale_branches(
    model: nn.Module,
    batch: Batch,
    *,
    beta: float | str | None = None,
    alpha: float | None = None,
    seed: int = 0,
    where: Sequence[str] | None = None,
) -> Treated:
    """Return a copy in which residual additions x + F(x) are α(x + β F(x)), balduzzi2017 eq 2.

    β is 1/√n for n residual additions by default: activities with the variance (1 + β²)ⁿ (theorem 3's proof) then
    stay below e, and it is γ₂ of corollary 1, which keeps gradients from shattering. α is left alone by default;
    corollary 1's other half, γ₁ = √(1 − 1/n), differs from 1 by little.

    ``beta="like the others"`` chooses for each addition in ``where`` the β at which its branch is to its shortcut, in
    root mean square, as the median of the others is to theirs; without ``where``, for the one with the largest ratio.
    ``where`` names additions as ``subjects.residual_blocks`` does, or modules that hold them.

    Branches that end in a weight layer or a normalisation with trained scales have these multiplied, so that the
    structure stays; others have the output of their last module multiplied.
    """
    seeded(seed)  # nothing is drawn; every remedy takes one
    blocks = required_blocks(model, batch)
    names = chosen("residual addition", blocks, where, dict(model.named_modules()))
    record = recorded(model, batch)
    if beta == LIKE_THE_OTHERS:
        require(
            len(blocks) > 1,
            f"there is one residual addition, {names[0]!r}, and no others; give beta a number.",
        )
        if where is None:
            ratios = _ratios(record, blocks)
            names = [max(names, key=lambda name: ratios[name])]
        require(
            len(names) < len(blocks),
            "where names every residual addition, so there are no others; name fewer.",
        )
        betas = _like_the_others(model, batch, blocks, names, record)
    else:
        default = 1 / math.sqrt(len(blocks))
        value = default if beta is None else _number("beta", beta)
        betas = dict.fromkeys(names, value)
    changed = _scaled(model, record, blocks, betas)
    words = f"branches of {counted(names, len(blocks), 'residual addition')} times {_range(betas.values())}"
    if alpha is not None:
        for name in names:
            scale_output(
                changed, sum_end(record, record.at_call(blocks[name].call), name), positive("alpha", alpha, 1)
            )
        words += f", sums times {alpha:g}"
    return Treated(changed, words)


def required_blocks(model: nn.Module, batch: Batch) -> dict[str, ResidualBlock]:
    """The residual additions by name, or a refusal where there are none."""
    found = residual_blocks(model, batch)
    if not found.blocks:
        reasons = "; ".join(dict.fromkeys(f"in {each.name!r} {each.reason}" for each in found.others))
        because = f" ({reasons})" if reasons else ""
        raise Refused(
            f"{type(model).__name__} has no residual addition{because}, so no branch; add skips first."
        )
    return {block.name: block for block in found.blocks}


def end_of(record: RecordedPass, block: ResidualBlock) -> BranchEnd:
    """Where the branch of a residual addition ends."""
    return branch_end(record, record.at_call(block.call), block.branch, block.name)


def scale_output(changed: nn.Module, module: str, factor: float) -> None:
    """Have the output of a module multiplied by a number, in place."""
    part = changed.get_submodule(module)
    if isinstance(part, Scaled):
        part.output_scale *= factor
        return
    extend(part, Scaled)
    part.output_scale = factor  # type: ignore[assignment]


def _scaled(
    model: nn.Module, record: RecordedPass, blocks: Mapping[str, ResidualBlock], betas: Mapping[str, float]
) -> nn.Module:
    changed = copied(model, REMEDY)
    with torch.no_grad():
        for name, beta in betas.items():
            end = end_of(record, blocks[name])
            for parameter in end.parameters:
                changed.get_parameter(parameter).mul_(beta)
            if end.module is not None:
                scale_output(changed, end.module, beta)
    return changed


def _ratios(record: RecordedPass, blocks: Mapping[str, ResidualBlock]) -> dict[str, float]:
    """Branch over shortcut, in root mean square; infinite where the shortcut is 0."""
    found = {}
    for name, block in blocks.items():
        sizes = record.steps[record.at_call(block.call)].sizes
        shortcut = sizes[1 - block.branch]
        found[name] = sizes[block.branch] / shortcut if shortcut > 0 else math.inf
    return found


def _like_the_others(
    model: nn.Module,
    batch: Batch,
    blocks: Mapping[str, ResidualBlock],
    names: Sequence[str],
    record: RecordedPass,
) -> dict[str, float]:
    """β by which the named ratios equal the median of the others.

    A large branch makes the shortcuts behind it large, so the others' ratios move with β: measured again until they
    do no longer.
    """
    betas = dict.fromkeys(names, 1.0)
    for _ in range(ROUNDS):
        ratios = _ratios(recorded(_scaled(model, record, blocks, betas), batch), blocks)
        usual = median(ratio for name, ratio in ratios.items() if name not in betas)
        for name in names:
            right = 0 < ratios[name] < math.inf and 0 < usual < math.inf
            require(
                right,
                f"the branch of {name!r} is {ratios[name]:g} times its shortcut and the others' median is {usual:g}, "
                "which no beta makes alike; give beta a number.",
            )
        steps = {name: usual / ratios[name] for name in names}
        betas = {name: betas[name] * steps[name] for name in names}
        if all(abs(step - 1) < CLOSE for step in steps.values()):
            break
    return betas


def _number(what: str, value: object) -> float:
    if isinstance(value, str):
        raise Refused(f"{what} is {value!r}, but must be a positive number or {LIKE_THE_OTHERS!r}.")
    return positive(what, value, 0.1)  # type: ignore[arg-type]


def _range(values: object) -> str:
    numbers = sorted(values)  # type: ignore[call-overload]
    return f"{numbers[0]:.3g}" if numbers[0] == numbers[-1] else f"{numbers[0]:.3g} to {numbers[-1]:.3g}"
