"""Trials on a Dask cluster: a local one with credentials of its own, or one that somebody has started.

Whoever can speak to a Dask scheduler can run any code on its workers. A local cluster therefore speaks TLS with
credentials that are made for it and kept in memory; a cluster that is joined takes them from Dask's own configuration
(``distributed.comm.tls``, see docs/clusters.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skiplab import data
from skiplab.checks import Refused, SkiplabError
from skiplab.files import aside_folder
from skiplab.reproduction import provenance
from skiplab.reproduction.executor import Done, Job, Tell, cores, died_twice, run_elsewhere

TOPIC = "skiplab-progress"
PATIENCE = 10  # seconds to wait for a scheduler


class ClusterLost(SkiplabError):
    """The scheduler went away while trials were running there."""


def on_dask(jobs: Sequence[Job], executor: str, tell: Tell) -> Generator[Done, None, None]:
    """Run jobs on a cluster and yield each as it finishes; one whose worker died is tried once more, alone."""
    flying = {job.key for job in jobs}

    def heard(event: Any) -> None:
        key, done, text = event[1]
        if key in flying:  # a trial of this run
            tell(key, done, text)

    with _client(executor, jobs) as client:
        client.subscribe_topic(TOPIC, heard)
        lost: list[Job] = []
        for job, done in _finished(client, executor, jobs):
            flying.discard(job.key)
            if done is None:
                lost.append(job)
            else:
                yield done
        for job in lost:
            for _, done in _finished(client, executor, [job]):
                yield done or died_twice(job, "Dask: KilledWorker")


def _finished(client: Any, executor: str, jobs: Sequence[Job]) -> Iterator[tuple[Job, Done | None]]:
    """Each job with what became of it, None where its worker died."""
    from distributed import KilledWorker, as_completed

    futures = client.map(_run_there, jobs, pure=False, retries=1)
    those = {future.key: job for future, job in zip(futures, jobs, strict=True)}
    coming = as_completed(futures)
    del futures  # or workers would keep all tables until the last one has come
    for batch in coming.batches():
        for future, result in zip(batch, _results(client, batch), strict=True):
            if isinstance(result, Done):
                yield those[future.key], result
            elif isinstance(result, KilledWorker):
                yield those[future.key], None
            else:
                raise ClusterLost(
                    f"the Dask cluster at {executor} went away ({type(result).__name__}); what had finished is "
                    "stored: start the cluster again and give the same command."
                )


def _results(client: Any, futures: Sequence[Any]) -> list[Any]:
    """What became of trials that are done: their results, in one message for all, or what kept them from having one.

    One by one, each of a thousand short trials took a question to the scheduler and one to its worker.
    """
    sound = [future for future in futures if future.status == "finished"]
    found: dict[str, Any] = {}
    with contextlib.suppress(
        Exception
    ):  # a worker that died since then took some with it: they are asked for alone
        found = dict(zip((future.key for future in sound), client.gather(sound), strict=True))
    return [found[future.key] if future.key in found else _result(future) for future in futures]


def _result(future: Any) -> Any:
    try:
        return future.result()
    except (Exception, asyncio.CancelledError) as error:
        return error


def _run_there(job: Job) -> Done:
    from distributed import get_worker

    worker = get_worker()
    return run_elsewhere(job, lambda key, done, text: worker.log_event(TOPIC, (key, done, text)))


@contextlib.contextmanager
def _client(executor: str, jobs: Sequence[Job]) -> Iterator[Any]:
    """Start a local cluster, or join one after checking that its workers have skiplab and the data."""
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise Refused("executor 'dask' needs dask; install it with `pip install 'skiplab[dask]'`.") from None
    # Whatever a worker was doing when it died is tried alone, at the end, and not beside others again.
    once = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with once, contextlib.ExitStack() as stack:
        if executor == "dask":
            client = stack.enter_context(Client(_local_cluster(stack)))
        else:
            address = _address(executor)
            try:
                client = stack.enter_context(Client(address, timeout=PATIENCE))
            except (OSError, ValueError):
                raise Refused(f"no Dask scheduler answers at {address}; start one or use dask.") from None
        # A worker without the package would hang the run: ask before anything is sent.
        names = sorted({job.call.settings.data for job in jobs if getattr(job.call.settings, "data", None)})
        answers = client.run(what_is_here, names, on_error="return")
        if not answers:
            raise Refused(f"the Dask cluster at {executor} has no workers; start some and try again.")
        check_workers(answers, what_is_here(names))
        yield client


def _local_cluster(stack: contextlib.ExitStack) -> Any:
    """One worker per core on this machine, which nobody else can speak to."""
    from distributed import LocalCluster
    from distributed.security import Security

    try:
        security = Security.temporary()
    except ImportError:
        raise Refused(
            "executor 'dask' needs cryptography, for credentials; install it with `pip install 'skiplab[dask]'`."
        ) from None
    scratch = stack.enter_context(aside_folder(Path(tempfile.gettempdir())))
    return stack.enter_context(
        LocalCluster(
            n_workers=cores(),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            dashboard_address=None,
            local_directory=str(scratch),
            silence_logs=logging.CRITICAL,  # a worker that dies is said in our words
        )
    )


def _address(executor: str) -> str:
    """The scheduler's address: by TLS where Dask's configuration names credentials."""
    import dask

    secured = dask.config.get("distributed.comm.tls.ca-file", None)
    return executor.replace("dask://", "tls://" if secured else "tcp://")


def check_workers(answers: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a cluster unless every worker has our skiplab and our data; an answer may be an exception."""
    for worker, answer in answers.items():
        # The question itself is a function of skiplab, so a worker without the package cannot even read it.
        if isinstance(answer, BaseException) or answer["source"] != here["source"]:
            word = "no" if isinstance(answer, BaseException) else "another"
            raise Refused(f"Dask worker {worker} has {word} skiplab; install this version there first.")
        # Two trials in one process would change each other's arithmetic, which is global.
        if answer.get("threads", 1) != 1:
            raise Refused(
                f"Dask worker {worker} has {answer['threads']} threads; start it with --nthreads 1."
            )
        for name, fingerprint in here["data"].items():
            if answer["data"][name] != fingerprint:
                remedy = data.remedy(name)
                raise Refused(f"Dask worker {worker} has not our {name}; run `{remedy}` there first.")


def what_is_here(names: Sequence[str], dask_worker: Any = None) -> dict[str, Any]:
    """The source hash and data fingerprints on the machine that runs this, and the threads of a worker."""
    fingerprints = {name: data.fingerprint(name) if data.is_available(name) else None for name in names}
    threads = dask_worker.state.nthreads if dask_worker else 1
    return {"source": provenance.source_hash(), "data": fingerprints, "threads": threads}
