"""One sentence for what goes wrong inside a user's network or criterion.

Causes are looked for only once a call has failed: what works pays nothing, and nothing that works is refused. Errors
of the user's own classes, lack of memory and mistakes of skiplab itself are left as they are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.torch_private import is_batched, tree_leaves

# Of exactly these types: a subclass is the user's own, or torch's for a lack of memory, and says what it means.
PLAIN = (
    *(RuntimeError, NotImplementedError, ValueError, TypeError),
    *(IndexError, KeyError, AttributeError, AssertionError),
)
LONE_SAMPLE = "give a lone sample an axis of samples, x[None]"
_PASSING_ON = ("__torch_function__", "called")  # the latter of following.py
_NETWORKS = ("skiplab.architectures", "skiplab.remedies")


def refuse_forward(problem: Exception, model: nn.Module, inputs: Any, target: Any = None) -> None:
    """Say in one sentence why a network failed on its inputs, unless that is not for us to say."""
    if _is_explained_here(problem):
        raise Refused(_why_forward(problem, model, inputs, target)) from problem


def refuse_criterion(problem: Exception, output: Any, target: Any) -> None:
    """Say in one sentence why a criterion failed on an output and a target, unless that is not for us to say."""
    if _is_explained_here(problem):
        raise Refused(_why_criterion(problem, output, target)) from problem


def refuse_loss_call(problem: TypeError) -> None:
    """Say in one sentence that a loss function takes other arguments; what fails inside it is the user's to read."""
    if problem.__traceback__ is not None and problem.__traceback__.tb_next is None:
        raise Refused(
            f"loss_fn cannot be called as loss_fn(model, batch) ({_said(problem)}); give it these two parameters."
        ) from problem


def refuse_overwriting(problem: Exception) -> None:
    """Say in one sentence that something a derivative needs was overwritten in place, if that is what went wrong."""
    if "inplace" in str(problem) or "in-place" in str(problem):
        raise Refused(
            "an in-place operation overwrites what derivatives need; write it out of place, such as x = x + y for "
            f"x += y or inplace=False (autograd: {str(problem).splitlines()[0][:160]})."
        ) from problem


def described(value: Any) -> str:
    """What a value is: a tensor's type and shape, the parts of a dict or tuple, else the kind of thing."""
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        parts = [f"{name}: {described(part)}" for name, part in value.items()]
        return f"a {type(value).__name__} of {', '.join(parts[:4] + ['…'] * (len(parts) > 4)) or 'nothing'}"
    if isinstance(value, tuple | list) and 0 < len(value) <= 4:
        return f"a {type(value).__name__} of {', '.join(map(described, value))}"
    return "None" if value is None else f"a {type(value).__name__}"


def inputs_of(model: nn.Module) -> list[inspect.Parameter]:
    """The parameters of a network's forward; none where Python does not know them, as of a compiled one."""
    try:
        return list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return []


def _is_explained_here(problem: Exception) -> bool:
    if type(problem) not in PLAIN or "allocate memory" in str(problem):
        return False
    # The first frame is our call of the user's code. A later one of ours is a hook, and a mistake there is our own;
    # but all that the user's code computes passes through ``__torch_function__`` and what it hands over to.
    trace = problem.__traceback__
    trace = trace.tb_next if trace is not None else None
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        ours = name.startswith("skiplab.") and not name.startswith(_NETWORKS)
        if ours and trace.tb_frame.f_code.co_name not in _PASSING_ON:
            return False
        trace = trace.tb_next
    return True


def _why_forward(problem: Exception, model: nn.Module, inputs: Any, target: Any) -> str:
    said = _said(problem)
    given = [part for part in tree_leaves(inputs) if isinstance(part, Tensor)]
    wrong = _wrong_arguments(problem, said, model, inputs) or _wrong_type(said, model, inputs, given, target)
    if wrong is not None:
        return wrong
    if "more than 1 value per channel" in said:
        return (
            "batch normalisation in training mode needs more than one value a channel, but the input is "
            f"{described(inputs)}; pass more samples, or measure in evaluation mode."
        )
    remedy = "pass what its forward takes, a sample a row"
    if given and given[0].ndim < 2:
        remedy = LONE_SAMPLE
    if "vmap" in said:
        remedy = 'take out what cannot be batched, or use Ensemble.of(…, backend="loop")'
    return f"the network fails on {described(inputs)} ({said}); {remedy}."


def _wrong_arguments(problem: Exception, said: str, model: nn.Module, inputs: Any) -> str | None:
    if any(isinstance(part, np.ndarray) for part in tree_leaves(inputs)):
        return f"the input is {described(inputs)}; turn NumPy arrays into tensors with torch.from_numpy."
    if _is_inside_forward(problem):
        return None  # one part of the network calls another wrongly
    missing = re.search(r"forward\(\) missing .* required positional arguments?: (.*)", said)
    if missing is not None and not isinstance(inputs, Mapping):
        return f"the network takes {missing[1]} beside its first input; pass batches as dicts of all inputs by name."
    unknown = re.search(r"forward\(\) got an unexpected keyword argument '(.*?)'", said)
    if unknown is not None and isinstance(inputs, Mapping):
        takes = ", ".join(each.name for each in inputs_of(model)) or "others"
        return f"the batch names {unknown[1]!r}, but the network takes {takes}; name the inputs as its forward does."
    return None


def _is_inside_forward(problem: Exception) -> bool:
    """Whether the network was entered at all, or its call failed at once."""
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_name == "forward":
            return True
        trace = trace.tb_next
    return False


def _wrong_type(said: str, model: nn.Module, inputs: Any, given: list[Tensor], target: Any) -> str | None:
    own = [t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point()]
    embeddings = [part for part in model.modules() if isinstance(part, nn.Embedding | nn.EmbeddingBag)]
    if not given:
        return None
    x = given[0]
    if own and any(part.device != own[0].device for part in given):
        return f"the input is on {x.device} and the network on {own[0].device}; move one with .to(…)."
    if embeddings and x.is_floating_point() and re.search(r"Long, Int|indices", said):
        return f"the input is {described(inputs)}, but an embedding takes whole numbers; convert it with .long()."
    counted = (t for t in given if not t.is_floating_point() and not t.is_complex())
    whole = [t for t in counted if t.numel() and not is_batched(t)]
    most = max((part.num_embeddings for part in embeddings), default=0)
    # Numbers that some embedding has may have gone to it, and the fault lie elsewhere: in a position, say.
    strange_numbers = any(t.min().item() < 0 or t.max().item() >= most for t in whole)
    if embeddings and "index out of range in self" in said and strange_numbers:
        reach = ", ".join(f"{t.min().item()} to {t.max().item()}" for t in whole) or "others"
        sizes = ", ".join(str(part.num_embeddings) for part in embeddings)
        return (
            f"the input holds the numbers {reach}, but the network's embeddings have {sizes} entries, counted from "
            "0; pass numbers that they have, or build them larger."
        )
    if not own or not re.search(r"dtype|scalar type|Input type|ScalarType|same type", said):
        return None
    wanted = own[0].dtype
    if not x.is_floating_point() and isinstance(target, Tensor) and target.is_floating_point():
        return f"the input is {x.dtype} and the target {target.dtype}; pass (input, target) in this order."
    # Numbers before masks and places, which are of another type by nature.
    strange = [
        part for part in sorted(given, key=lambda t: not t.is_floating_point()) if part.dtype != wanted
    ]
    if strange and (strange[0].is_floating_point() or not embeddings):
        return (
            f"the input is {strange[0].dtype}, but the network's parameters are {wanted}; convert one of them, say "
            f"the input with .to({wanted})."
        )
    return None


def _why_criterion(problem: Exception, output: Any, target: Any) -> str:
    said = _said(problem)
    if output is None:
        return f"the network returns None ({said}); let its forward return the output."
    if not isinstance(output, Tensor):
        return (
            f"the network returns {described(output)}, which the criterion cannot take ({said}); pass "
            "criterion=lambda output, target: … that picks one tensor, or loss_fn."
        )
    out = re.search(r"Target (-?\d+) is out of bounds", said)
    if out is not None:
        classes = output.shape[1] if output.ndim > 1 else len(output)
        return (
            f"a label is {out[1]}, but the network has {classes} outputs, for labels 0 to {classes - 1}; count the "
            "classes from 0, or give the network more outputs."
        )
    lengths = [len(part) for part in (output, target) if isinstance(part, Tensor) and part.ndim > 0]
    if len(lengths) == 2 and lengths[0] != lengths[1]:
        return (
            f"the network returns {lengths[0]} rows for {lengths[1]} targets; pass a target for each sample."
        )
    return (
        f"the criterion fails on an output {described(output)} and a target {described(target)} ({said}); pass "
        "targets of the type and shape that it takes."
    )


def _said(problem: Exception) -> str:
    """The first sentence of an error and its kind."""
    lines = str(problem).strip().splitlines()
    line = lines[0].split(". ")[0][:200].rstrip(" .;") if lines else ""
    return f"{type(problem).__name__}: {line}" if line else type(problem).__name__
