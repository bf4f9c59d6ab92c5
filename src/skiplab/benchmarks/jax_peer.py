"""The training benchmark in JAX: ``vmap`` over networks, one ``jit`` for an epoch, the same arithmetic as ours.

The same networks (orhan2017 eq 25 with the identity as skip) from the same weights, Adam, the cross-entropy, batches
drawn by shuffles of their own per network, data and state on the device. JAX is optional: ``pip install jax``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skiplab.benchmarks.steps import RATE

if TYPE_CHECKING:
    from skiplab.benchmarks.training import TrainingSize
    from skiplab.data import TensorSet

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # Kingma & Ba, as in training/optimisers.py


def jax_epoch(size: TrainingSize, device: str, *, mixed: bool) -> Callable[[], None]:
    """One epoch of all networks; raises ImportError where JAX, or a GPU that it sees, is missing."""
    if not device.startswith("cuda"):
        raise ImportError("JAX is timed on a GPU only")
    # Otherwise JAX takes three quarters of the GPU's memory, whatever it needs.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("the JAX that is installed sees no GPU")
    from skiplab.benchmarks.steps import noise

    data = noise(size.images, size.inputs, device="cpu")
    state = start(size)
    inputs, labels = arrays(data)
    shuffles = jax.jit(jax.vmap(lambda key: jax.random.permutation(key, size.images)))
    epoch = jax.jit(steps(mixed=mixed), donate_argnums=0)
    number = 0

    def run() -> None:
        nonlocal state, number
        number += 1
        keys = jax.random.split(jax.random.key(number), size.networks)
        order = shuffles(keys).reshape(size.networks, -1, size.batch).swapaxes(0, 1)
        with jax.default_matmul_precision("tensorfloat32"):  # as torch multiplies in trials
            state = epoch(state, inputs, labels, order)
        jax.block_until_ready(state)

    return run


def start(size: TrainingSize) -> dict[str, Any]:
    """The state before training: the parameters of our own networks, stacked, and Adam's moments."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    networks = [dict(size.network(seed).named_parameters()) for seed in range(size.networks)]
    parameters = {
        name: jnp.asarray(np.stack([network[name].detach().numpy() for network in networks]))
        for name in networks[0]
    }
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return {
        "parameters": parameters,
        "first": zeros,
        "second": jax.tree.map(jnp.copy, zeros),
        "count": jnp.zeros(()),
    }


def arrays(data: TensorSet) -> tuple[Any, Any]:
    """The samples as JAX's arrays."""
    import jax.numpy as jnp

    return jnp.asarray(data.inputs.numpy()), jnp.asarray(data.labels.numpy())


def steps(*, mixed: bool) -> Callable[..., dict[str, Any]]:
    """The function (state, inputs, labels, order) → state: a step for each row of order, (steps, E, batch)."""
    import jax
    import jax.numpy as jnp

    def network(parameters: dict[str, Any], x: Any) -> Any:
        depth = sum(name.endswith("linear.weight") for name in parameters)
        for layer in range(depth):
            weight, bias = (parameters[f"hidden.{layer}.linear.{part}"] for part in ("weight", "bias"))
            following = jax.nn.relu(x @ weight.T + bias)
            x = following + x if layer else following
        return x @ parameters["output.weight"].T + parameters["output.bias"]

    def loss(parameters: dict[str, Any], x: Any, y: Any) -> Any:
        if mixed:
            parameters, x = jax.tree.map(lambda each: each.astype(jnp.bfloat16), (parameters, x))
        scores = jax.nn.log_softmax(network(parameters, x).astype(jnp.float32))
        return -jnp.take_along_axis(scores, y[:, None], 1).mean()

    def adam(state: dict[str, Any], gradient: dict[str, Any]) -> dict[str, Any]:
        count = state["count"] + 1
        first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["first"], gradient)
        second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, state["second"], gradient)
        rate, root = RATE / (1 - BETA1**count), jnp.sqrt(1 - BETA2**count)
        parameters = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) / root + EPS), state["parameters"], first, second
        )
        return {"parameters": parameters, "first": first, "second": second, "count": count}

    def run(state: dict[str, Any], inputs: Any, labels: Any, order: Any) -> dict[str, Any]:
        def step(state: dict[str, Any], indices: Any) -> tuple[dict[str, Any], None]:
            gradient = jax.vmap(jax.grad(loss))(state["parameters"], inputs[indices], labels[indices])
            return adam(state, gradient), None

        return jax.lax.scan(step, state, order)[0]

    return run
