"""Networks at gains that no other study has are trials of their own."""

from __future__ import annotations

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.apart import other_gains_apart
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction import Call, Results


def named(model: str, gains: tuple[float, ...]) -> Call:
    members = [Member(seed, gain, sigma=gain / 10, mean=-gain) for gain in gains for seed in (0, 1)]
    return networks.call(Training(), "digits", model, members, what="search", stage="search")


def test_a_trial_is_divided_at_the_common_gains() -> None:
    def stage(results: Results) -> list[Call]:
        return [named("bias-reg", (0.3, 2.0, 1.0, 0.01)), named("plain", (0.3, 1.0))]

    calls = other_gains_apart(stage)(Results(None))
    assert calls == [
        named("bias-reg", (0.3, 1.0)),
        named("bias-reg", (2.0, 0.01)),
        named("plain", (0.3, 1.0)),
    ]
    assert [(call.label, call.stage) for call in calls[:2]] == [
        ("digits, bias-reg, search, 4 networks", "search")
    ] * 2
    assert other_gains_apart(stage).__name__ == "stage"


def test_measured_networks_are_divided_too() -> None:
    members = [Member(0, 0.3), Member(0, 2.0)]
    whole = Measured(networks.together(Training(), "digits", "plain", members), "narrow", at=(0,), exact=5)
    first, second = other_gains_apart(lambda _: [measured.call(whole)])(Results(None))
    assert [call.settings.networks.gains for call in (first, second)] == [(0.3,), (2.0,)]
    assert (second.settings.at, second.settings.exact, second.stage) == ((0,), 5, "narrow")
