"""One colour and one label for each condition, the same in every figure.

The first seven colours are Okabe and Ito's, which colour-blind readers tell apart; the others were taken
from Tol's muted scheme to differ from these in lightness. Folded skip matrices are greys as in Orhan & Pitkow
(2018), those of the τ family run through a sequential map: the darker, the more orthogonal.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Sequence

_COLOURS = {
    "plain": "#D55E00",
    "residual": "#0072B2",
    "hyper-residual": "#009E73",
    "path-residual": "#CC79A7",
    "bias-symm-break": "#E69F00",
    "bias-l2-reg": "#56B4E9",
    "bias-init": "#332288",
    "bias-reg": "#882255",
    "bias-reg-bn": "#DDAA33",  # the published version's yellow
    "dense-orthogonal": "#111111",
}
# The same thing under another name must not look like another thing.
_ALIASES = {
    "identity": "residual",
    "skip": "residual",
    "hyper": "hyper-residual",
    "orthogonal": "dense-orthogonal",
}
_FALLBACK = ("#117733", "#AA4499", "#999933", "#44AA99", "#CC6677", "#7F6000", "#6A51A3", "#5F6B7A")

_LABELS = {
    "plain": "Plain",
    "residual": "Residual",
    "hyper-residual": "Hyper-residual",
    "hyper-residual-sums": "Hyper-residual, not divided",
    "path-residual": "Path-residual",
    "bias-symm-break": "BiasSymmBreak",
    "bias-l2-reg": "BiasL2Reg",
    "bias-init": "BiasInit",
    "bias-reg": "BiasReg",
    "identity": "Identity",
    "dense-orthogonal": "Dense orthogonal",
    "orthogonal": "Orthogonal",
}
_FOLDED = re.compile(r"(?:folded|rows)[-_ ]?(\d+)")
_FULL_WIDTH = 128  # the papers fold 128 → 64 → … → 1
_TAU = re.compile(r"tau-(\d*\.?\d+(?:e-?\d+)?)")
_LIGHTEST_TAU = 0.5
# After matplotlib's viridis, from the dense orthogonal matrix's black to where it is still seen on white.
_SEQUENCE = ("#111111", "#46409A", "#1F958B", "#6DBE45", "#F2B701")
# Matplotlib's inferno, as far.
_IN_TIME = ("#111111", "#420A68", "#932667", "#DD513A", "#FCA50A")


def colour_of(name: str) -> str:
    """Return the hex colour of a condition; a name we do not know gets one that depends on it alone."""
    key = _key(name)
    key = _ALIASES.get(key, key)
    if key in _COLOURS:
        return _COLOURS[key]
    if folded := _FOLDED.fullmatch(key):
        return _grey(_folding(int(folded[1])))
    if tau := _TAU.fullmatch(key):
        return _between(_correlating(float(tau[1])), _SEQUENCE)
    if key.endswith("-bn"):
        # Batch normalisation changes a network's training, not its family: the same hue, darker.
        return _darker(colour_of(key.removesuffix("-bn")))
    return _FALLBACK[zlib.crc32(key.encode()) % len(_FALLBACK)]


def distinct(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, no two alike as far as there are enough: known ones have theirs, others in turn."""
    given = list(dict.fromkeys(names))
    found = {name: colour_of(name) for name in given if _is_known(_key(name))}
    spare = [each for each in (*_FALLBACK, *_COLOURS.values()) if each not in found.values()]
    unknown = [name for name in given if name not in found]
    return found | {name: spare[place % len(spare)] for place, name in enumerate(unknown)}


def _is_known(key: str) -> bool:
    plain = key.removesuffix("-bn")
    return _ALIASES.get(plain, plain) in _COLOURS or bool(_FOLDED.fullmatch(key) or _TAU.fullmatch(key))


def in_order(count: int) -> list[str]:
    """Colours of things that have an order, such as epochs: from light orange, the first, to black, the last."""
    return [_between(1 - place / max(count - 1, 1), _IN_TIME) for place in range(count)]


def label_of(name: str) -> str:
    """Return the words a legend shows for a condition."""
    key = _key(name)
    if key in _LABELS:
        return _LABELS[key]
    if folded := _FOLDED.fullmatch(key):
        return f"Folded to {folded[1]}"
    if tau := _TAU.fullmatch(key):
        return f"τ = {float(tau[1]):g}"
    if key.endswith("-bn"):
        return f"{label_of(key.removesuffix('-bn'))} + BN"
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _folding(width: int) -> float:
    # Folding halves the number of orthogonal columns, so equal steps in log₂ get equal steps in lightness.
    return 1 - min(math.log2(max(width, 1)) / math.log2(_FULL_WIDTH), 1.0)


def _correlating(tau: float) -> float:
    # τ = 0 is orthogonal; the values in use, .01 to .5, differ by factors, so their steps are nearly in log τ, and
    # the smallest is as far from black as it is from the next ones.
    return min(math.log1p(300 * tau) / math.log1p(300 * _LIGHTEST_TAU), 1.0)


def _between(share: float, sequence: Sequence[str]) -> str:
    """From the first colour of a sequence (0) to its last (1), which keep many lines apart."""
    place = share * (len(sequence) - 1)
    start = min(int(place), len(sequence) - 2)
    ends = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in sequence[start : start + 2]]
    mixed = (round(one + (place - start) * (two - one)) for one, two in zip(*ends, strict=True))
    return "#" + "".join(f"{level:02X}" for level in mixed)


def _grey(share: float) -> str:
    """From the dense orthogonal matrix's black (0) to the lightest grey (1)."""
    level = round(0x11 + share * (0xAC - 0x11))
    return f"#{level:02X}{level:02X}{level:02X}"


def _darker(colour: str) -> str:
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) * 0.5):02X}" for i in (1, 3, 5))
