"""Training many networks: one batched computation against members in turn and plain PyTorch one by one."""

from __future__ import annotations

from skiplab.benchmarks.harness import Case

CPU_SIZE = {"networks": 10, "width": 32, "inputs": 128, "images": 2000, "batch": 100}
GPU_SIZE = {"networks": 50, "width": 128, "inputs": 3072, "images": 50000, "batch": 500}


def training_cases(device: str) -> list[Case]:
    """One epoch of E residual nets of 30 layers; plain PyTorch trains as many one after the other."""
    import torch
    import torch.nn.functional as F

    from skiplab.architectures.fully_connected import ResidualNet
    from skiplab.architectures.initialisers import Glorot
    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.randomness import torch_generator
    from skiplab.training import Plan
    from skiplab.training.loop import shuffles
    from skiplab.training.step import Step

    size = GPU_SIZE if device.startswith("cuda") else CPU_SIZE
    count, images = size["networks"], size["images"]
    draw = torch_generator("benchmark", "training")
    inputs = torch.randn(images, size["inputs"], generator=draw).to(device)
    labels = torch.randint(10, (images,), generator=draw).to(device)
    data = TensorSet(inputs=inputs, labels=labels, classes=10, name="noise", fingerprint="noise")

    def network(seed: int) -> ResidualNet:
        options = {"generator": torch_generator(seed), "init": Glorot(gain=0.3)}
        return ResidualNet(size["inputs"], size["width"], 30, 10, **options)  # type: ignore[arg-type]

    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    plan = Plan(epochs=1, batch_size=size["batch"], seeds=tuple(range(count)))

    def ours(backend: str) -> Case:
        ensemble = Ensemble.of(
            [network(seed) for seed in range(count)], backend=backend, device=device
        ).train()
        if device.startswith("cuda"):
            ensemble.compile()  # as long training does
        step = Step(ensemble, data, plan.optimiser, plan.criterion, (), None)
        step.rate.fill_(5e-4)

        def epoch() -> None:
            order = shuffles(plan.seeds, 0, images, ensemble.device)
            for indices in order.split(plan.batch_size, dim=1):
                step(indices)
            wait()

        return Case(f"skiplab, {backend}", epoch, f"{count} networks, one epoch of {images} samples")

    lone = network(0).to(device)
    optimiser = torch.optim.Adam(lone.parameters(), lr=5e-4)

    def plain() -> None:
        for _ in range(count):
            order = torch.randperm(images, generator=torch_generator(0), device="cpu").to(device)
            for indices in order.split(plan.batch_size):
                optimiser.zero_grad()
                F.cross_entropy(lone(inputs[indices]), labels[indices]).backward()
                optimiser.step()
        wait()

    others = [] if device.startswith("cuda") else [ours("loop")]
    return [ours("batched"), *others, Case("plain PyTorch, one by one", plain, "torch.optim.Adam, eager")]
