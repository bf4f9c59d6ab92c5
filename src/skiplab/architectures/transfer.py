"""T and T⁻¹ of yu2019 (section 3): a residual network's parameters as those of a plain one with the same function.

An identity connection adds x to W x, that is 1 to the *ID entries* of W: (c, c) of a matrix, (c, c, 0, 0) of a kernel
counted from its centre, for c ≤ min(C, D). So T(r) = r + ρ with ρ = 1 there and 0 elsewhere (eq 1), T⁻¹(p) = p − ρ.
A block that strides reads the centres of the same windows and one that widens pads with zeros, so that both have
min(C, D) ID entries too. T is a translation: gradients in p and in r are equal, number by number, and descent on both
stays together if the penalty ‖r‖² becomes ‖T⁻¹(p)‖² = ‖p − ρ‖² (section 4.1; ``training.regularisers.weight_decay``
with ``around=id_entries(net)``). Momentum keeps that, and so does Adam.

These are functions of one network; ``ensemble.mapped(to_plain)`` transfers all members of an ensemble.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from skiplab.architectures.simplified import (
    SimplifiedPlainBlock,
    SimplifiedPlainLayer,
    SimplifiedPlnMLP,
    SimplifiedPlnNet,
    SimplifiedResMLP,
    SimplifiedResNet,
)
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

PLAIN_OF: dict[type[nn.Module], type[nn.Module]] = {
    SimplifiedResNet: SimplifiedPlnNet,
    SimplifiedResMLP: SimplifiedPlnMLP,
}
RESIDUAL_OF = {plain: residual for residual, plain in PLAIN_OF.items()}


def to_plain(net: nn.Module) -> nn.Module:
    """T: the plain network that computes what this residual one does, as a new module."""
    return _twin(net, PLAIN_OF, 1.0)


def to_residual(net: nn.Module) -> nn.Module:
    """T⁻¹: the residual network that computes what this plain one does, as a new module."""
    return _twin(net, RESIDUAL_OF, -1.0)


def with_identities(
    net: nn.Module, share: float = 1.0, *, shuffled: torch.Generator | None = None
) -> nn.Module:
    """A copy of a plain network with ``share`` added at its ID entries, a part of T, or at as many ``shuffled`` ones.

    Controls of ours: how much the size of ID entries matters, and whether it matters that they are the identity's. A
    shuffled block reads channel π(c) where the identity reads c, π being drawn for every block.
    """
    if type(net) not in RESIDUAL_OF:
        raise Refused(_unknown(net, RESIDUAL_OF))
    changed = copy.deepcopy(net)
    for name, entries in id_entries(net).items():
        if shuffled is not None:
            order = torch.randperm(entries.shape[1], generator=shuffled, device=shuffled.device)
            entries = entries[:, order.to(entries.device)]
        changed.get_parameter(name).data.add_(entries, alpha=share)
    return changed


def id_entries(net: nn.Module) -> dict[str, Tensor]:
    """ρ by the names of the blocks' weights: 1 at the ID entries, 0 elsewhere; the same for both networks of a pair.

    >>> net = SimplifiedPlnMLP(3, (4, 2), 5, generator=generator)
    >>> id_entries(net)["blocks.0.linear.weight"]
    tensor([[1., 0., 0., 0.],
            [0., 1., 0., 0.]])
    """
    if type(net) not in (*PLAIN_OF, *RESIDUAL_OF):
        raise Refused(_unknown(net, (*PLAIN_OF, *RESIDUAL_OF)))
    found = {}
    for name in net.block_names:  # type: ignore[union-attr]
        block = net.get_submodule(name)
        assert isinstance(block, SimplifiedPlainBlock | SimplifiedPlainLayer)
        weight = block.get_submodule(block.weighted).weight
        assert isinstance(weight, Tensor)
        entries = weight.detach().new_zeros(weight.shape)
        diagonal_of(entries).fill_(1.0)
        found[f"{name}.{block.weighted}.weight"] = entries
    return found


def diagonal_of(weight: Tensor) -> Tensor:
    """A view of the ID entries of a weight matrix (D, C) or of a kernel (D, C, U, V) of odd sizes."""
    centre = tuple(size // 2 for size in weight.shape[2:])
    return weight.movedim((0, 1), (-2, -1))[centre].diagonal()


def _twin(net: nn.Module, kinds: dict[type[nn.Module], type[nn.Module]], sign: float) -> nn.Module:
    kind = kinds.get(type(net))
    if kind is None:
        raise Refused(_unknown(net, kinds))
    own = dict(net.named_parameters())
    first = next(iter(own.values()))
    # The weights drawn here are overwritten at once.
    twin = kind(**net.sizes, generator=torch_generator("transfer"), dtype=first.dtype)  # type: ignore[arg-type]
    twin.load_state_dict(net.state_dict())
    twin.to(first.device).train(net.training)
    added = id_entries(twin)
    for name, parameter in twin.named_parameters():
        if name in added:
            parameter.data.add_(added[name], alpha=sign)
        parameter.requires_grad_(own[name].requires_grad)
    return twin


def _unknown(
    net: nn.Module, kinds: dict[type[nn.Module], type[nn.Module]] | tuple[type[nn.Module], ...]
) -> str:
    names = " or ".join(f"a {kind.__name__}" for kind in kinds)
    return f"a {type(net).__name__} was given, but T is defined for the simplified networks; pass {names}."
