"""Following a pass to the rectifiers in it that are called as functions; see ``activation_patterns``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from torch import Tensor, nn

from skiplab.subjects import Subject
from skiplab.subjects.activation_calls import place_of, rectifies
from skiplab.subjects.batches import Batch
from skiplab.subjects.blocks import shown
from skiplab.subjects.following import FRESH, Call, Followed, Follower


class RectifierFollower(Follower):
    """Notes what rectifiers take that are called outside the modules that are looked at already.

    ``functions`` names those that are meant, of which every call counts; None means all there are.
    """

    def __init__(
        self, module: nn.Module, looked_at: Collection[str], functions: Collection[str] | None
    ) -> None:
        super().__init__()
        self.parts = dict(module.named_modules())
        self.looked_at, self.functions = frozenset(looked_at), functions
        self.hidden: dict[str, None] = {}  # recurrent layers, whose rectifiers are inside one call
        self.lost = False
        self.met: Counter[str] = Counter()
        self.note: Callable[[str, Tensor], Tensor]

    def run(
        self, subject: Subject, model: nn.Module, batch: Batch, note: Callable[[str, Tensor], Tensor]
    ) -> None:
        """Call one network on a batch."""
        self.met.clear()
        self.note = note
        self.scopes, self.output = [""], None
        with self.watching(model):
            subject.call(model, batch)
        out = self.output
        self.lost |= out is not None and out.is_floating_point() and not isinstance(out, Followed)
        self.output = None

    @property
    def unseen(self) -> str:
        """Which rectifiers a pass may have, or has, that could not be noted."""
        if self.functions is not None:
            return ""
        words = ["rectifiers that are called as functions, where the pass could not be followed"] * self.lost
        if self.hidden:
            words.append(f"{shown([*self.hidden])}, whose rectifiers are inside one call to torch")
        return "; ".join(words)

    def source(self, value: Tensor) -> int:
        return 0

    def follow(self, call: Call) -> Any:
        if call.name in FRESH:
            return None
        if call.name in ("rnn_relu", "rnn_relu_cell"):
            self.hidden[call.scope or "the network"] = None
        if rectifies(call) and self._is_meant(call.scope, place := place_of(call, self.parts)):
            self.met[place] += 1
            count = self.met[place]
            self.note(place if count == 1 else f"{place}#{count}", call.taken[0])
        return 0 if isinstance(call.outcome, Tensor) else [0] * len(call.outcome)

    def _is_meant(self, scope: str, place: str) -> bool:
        return scope not in self.looked_at if self.functions is None else place in self.functions
