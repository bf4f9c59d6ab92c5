"""Path lengths of the networks that littwin2017's studies train, as rows of a trial's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

    from skiplab.ensembles import Ensemble

DEPTH, BY_SIZE, CANCELLATION, SHARE = "effective depth", "depth by size", "cancellation", "share"
GRADIENT_DEPTH, GRADIENT_SHARE = "gradient depth", "gradient share"


def path_rows(
    target: nn.Module | Ensemble, inputs: Tensor, labels: Tensor | None = None, *, at_once: int | None = None
) -> list[dict[str, Any]]:
    """One row per network, quantity and length: ``network``, ``quantity``, ``length``, ``value``.

    Length is counted in blocks; a toy's first block, which nothing skips, is one of them. BN has the statistics of
    these inputs, logits lose their mean over classes. With ``labels`` the gradient of the mean cross-entropy in all
    trained parameters is split too, on the first ``at_once`` inputs. ``length`` is −1 for what is of all lengths.
    """
    import torch

    from skiplab.measurements.path_depth import path_depth

    own: dict[str, Any] = {"counted": first_blocks(target), "mode": "batch"}
    loss = torch.nn.CrossEntropyLoss()
    few = at_once is not None and at_once < len(inputs)
    if labels is None or few:
        found = path_depth(target, inputs, **own)
        split = None
        if labels is not None:
            split = path_depth(target, (inputs[:at_once], labels[:at_once]), criterion=loss, **own)
    else:
        found = split = path_depth(target, (inputs, labels), criterion=loss, **own)
    single = {DEPTH: found.depth.value, BY_SIZE: found.depth_by_size, CANCELLATION: found.cancellation}
    shares = {SHARE: found.shares.value}
    if split is not None and split.gradient is not None:
        single[GRADIENT_DEPTH], shares[GRADIENT_SHARE] = split.gradient_depth, split.gradient.value
    rows = [
        _row(network, quantity, -1, value)
        for quantity, values in single.items()
        for network, value in enumerate(values.tolist())
    ]
    rows += [
        _row(network, quantity, length, value)
        for quantity, every in shares.items()
        for network, values in enumerate(every.tolist())
        for length, value in enumerate(values)
    ]
    return rows


def first_blocks(target: nn.Module | Ensemble) -> tuple[str, ...]:
    """The blocks that count although nothing skips them: a toy's first; of other networks none."""
    from skiplab.architectures.path_toys import BlockToy
    from skiplab.ensembles import Ensemble

    module = target.skeleton if isinstance(target, Ensemble) else target
    return (module.block_names[0],) if isinstance(module, BlockToy) else ()


def _row(network: int, quantity: str, length: int, value: float) -> dict[str, Any]:
    return {"network": network, "quantity": quantity, "length": length, "value": value}
