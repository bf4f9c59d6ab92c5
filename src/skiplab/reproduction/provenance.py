"""Where a number came from: the source tree, versions, device and time behind a table."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from skiplab.version import __version__

PACKAGE = Path(__file__).parent.parent
VERSIONED = ("torch", "numpy", "scipy", "pandas", "scikit-learn", "triton")


@functools.cache
def source_hash() -> str:
    """Hash every Python file of the package, so that results name the code even without git."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def git_hash() -> str | None:
    """Return the commit of the checkout we run from, with '+' for local changes, or None without git."""
    commit, changed = _git("rev-parse", "--short=12", "HEAD"), _git("status", "--porcelain", "--", ".")
    return None if commit is None or changed is None else commit + ("+" if changed else "")


@functools.cache
def repository() -> str | None:
    """Return the page of the repository that we were installed or cloned from, or None where it has none."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for line in metadata.metadata("skiplab").get_all("Project-URL") or ():
            name, _, address = line.partition(", ")
            if name.lower() in ("repository", "source"):
                return web_page(address)
    return web_page(_git("remote", "get-url", "origin") or "")


def web_page(remote: str) -> str | None:
    """Return the page of a repository by what git fetches it from, without user and password; None of a folder.

    >>> web_page("git@example.org:lab/skiplab.git"), web_page("/srv/skiplab")
    ('https://example.org/lab/skiplab', None)
    """
    at_host = re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)(?::\d+/|[:/])(.+)", remote)
    if at_host:
        remote = "https://{}/{}".format(*at_host.groups())
    found = re.fullmatch(r"(https?://)(?:[^/@]*@)?([\w.-]+(?::\d+)?/[\w./~-]+?)(?:\.git)?/?", remote)
    return found[1] + found[2] if found else None


def _git(*words: str) -> str | None:
    """What git says of the checkout we run from, or None without one."""
    if not (PACKAGE.parent.parent / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", *words], cwd=PACKAGE, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python, skiplab and the packages that numbers depend on."""
    # skiplab's own is known also where it runs from a checkout without being installed.
    found = {"python": platform.python_version(), "skiplab": __version__}
    for name in VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def device_name(device: str) -> str:
    """Name the hardware in words, e.g. 'NVIDIA H200' or 'x86_64 CPU, 1 thread'."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, 1 thread"


def describe(device: str, seconds: float) -> dict[str, Any]:
    """Everything that goes into a trial's or a run's record."""
    precision = "tf32 matrix products" if device.startswith("cuda") else "as the trial's dtype"
    return {
        "source": source_hash(),
        "git": git_hash(),
        "versions": versions(),
        "device": device_name(device),
        "precision": precision,
        "seconds": round(seconds, 3),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
