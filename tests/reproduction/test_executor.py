"""Executors: the same bits from each, failures as words, and clusters asked before they are trusted."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from counted_studies import EMPTY, WITH_DATA, Draw, counts, draw

from skiplab.checks import Refused
from skiplab.reproduction import provenance
from skiplab.reproduction.cluster import _local_cluster, check_workers, what_is_here
from skiplab.reproduction.executor import Job, execute, run_job
from skiplab.reproduction.runner import Options, run_study
from skiplab.reproduction.store import Store


def jobs_of(count: int = 3, deadline: float | None = None) -> list[Job]:
    return [Job(f"key-{seed}", draw.of(Draw(seed)), "cpu", None, deadline) for seed in range(count)]


def silent(key: str, done: float, text: str) -> None:
    """Hear nothing."""


def tables(name: str) -> dict[str, pd.DataFrame]:
    done = {each.key: each for each in execute(jobs_of(), name, silent)}
    assert [each.problem for each in done.values()] == [""] * 3
    return {key: each.table for key, each in sorted(done.items()) if each.table is not None}


def assert_same_bits(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    assert one.keys() == other.keys()
    assert len(one) == 3
    for key, table in one.items():
        pd.testing.assert_frame_equal(table, other[key], check_exact=True)


def test_processes_give_the_bits_that_serial_gives(tmp_path: Path, marks: Path) -> None:
    serial = tables("serial")
    assert_same_bits(serial, tables("processes"))
    assert counts(marks) == {0: 2, 1: 2, 2: 2}


@pytest.mark.slow
def test_dask_gives_the_bits_that_serial_gives(tmp_path: Path, marks: Path) -> None:
    assert_same_bits(tables("serial"), tables("dask"))
    assert counts(marks) == {0: 2, 1: 2, 2: 2}


def test_threads_do_not_change_a_trial_and_are_given_back(tmp_path: Path, marks: Path) -> None:
    before = torch.get_num_threads()
    seen = []

    def tell(key: str, done: float, text: str) -> None:
        seen.append(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        list(execute(jobs_of(1), "serial", tell))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == [1]


def test_a_failure_comes_back_as_words(tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTED_FAILING", "0")
    monkeypatch.setenv("COUNTED_REFUSING", "1")
    crashed, refused, fine = execute(jobs_of(), "serial", silent)
    assert crashed.table is None
    assert "Traceback" in crashed.problem
    assert "seed 0 was told to fail" in crashed.problem
    assert refused.problem == "seed 1 was told to refuse; choose another."
    assert fine.table is not None
    assert fine.record["trial"] == "counted/draw"
    assert fine.record["version"] == 1
    assert fine.record["source"] == provenance.source_hash()


def test_after_the_deadline_no_trial_starts(tmp_path: Path, marks: Path) -> None:
    done = list(execute(jobs_of(deadline=time.time() - 1), "serial", silent))
    assert [each.out_of_time for each in done] == [True] * 3
    assert counts(marks) == {}


def test_a_trial_that_meets_the_deadline_is_out_of_time(
    tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_SECONDS", "30")
    (job,) = jobs_of(1, deadline=time.time() + 0.1)
    done = run_job(job, lambda done, text: None)
    assert done.out_of_time
    assert done.table is None
    assert counts(marks) == {0: 1}


@pytest.mark.slow
def test_progress_is_passed_on_while_workers_work(marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTED_SECONDS", "0.5")
    heard: set[tuple[str, float, str]] = set()
    list(execute(jobs_of(2), "processes", lambda *words: heard.add(words)))
    assert heard == {("key-0", 0.5, "half way"), ("key-1", 0.5, "half way")}


def test_an_unknown_executor_is_refused_before_anything_runs(store: Store, marks: Path) -> None:
    with pytest.raises(
        Refused, match=r"executor 'proceses' is unknown; choose one of serial, .*mean processes"
    ):
        run_study(WITH_DATA, store, scale="smoke", options=Options(executor="proceses"))
    assert counts(marks) == {}


def test_the_default_executor_fits_the_device() -> None:
    assert Options().chosen_executor == "processes"
    assert Options(device="cuda").chosen_executor == "serial"
    assert Options(device="cuda:1", executor="dask").chosen_executor == "dask"


def test_workers_must_have_our_skiplab_and_our_data() -> None:
    here = {"source": "ours", "data": {"cifar10": "aa"}}
    check_workers({"tcp://w:1": here}, here)
    with pytest.raises(Refused, match=r"worker tcp://w:2 has no skiplab; install this version there first"):
        check_workers({"tcp://w:1": here, "tcp://w:2": Exception("ModuleNotFoundError")}, here)
    with pytest.raises(Refused, match=r"worker tcp://w:1 has another skiplab"):
        check_workers({"tcp://w:1": here | {"source": "older"}}, here)
    with pytest.raises(
        Refused, match=r"worker tcp://w:1 has not our cifar10; run `skiplab data fetch cifar10`"
    ):
        check_workers({"tcp://w:1": here | {"data": {"cifar10": None}}}, here)


def test_a_worker_answers_with_its_source_and_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path))
    answer = what_is_here(["cifar10", "digits"])
    assert answer["source"] == provenance.source_hash()
    assert answer["data"]["cifar10"] is None
    assert len(answer["data"]["digits"]) >= 16


@pytest.mark.slow
def test_a_cluster_without_workers_or_skiplab_is_refused(tmp_path: Path, marks: Path) -> None:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        with pytest.raises(Refused, match=r"has no workers; start some and try again"):
            list(execute(jobs_of(), address, silent))
        # A worker on which importing skiplab fails, as where it is not installed.
        broken = tmp_path / "path" / "skiplab"
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("raise ModuleNotFoundError('No module named skiplab')")
        environment = os.environ | {"PYTHONPATH": str(broken.parent)}
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            cluster.scheduler_address,
            "--no-nanny",
        ]
        worker = subprocess.Popen(
            [*command, "--no-dashboard"], env=environment, cwd=tmp_path,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with Client(cluster) as client:
                client.wait_for_workers(1, timeout=30)
            with pytest.raises(Refused, match=r"has no skiplab; install this version there first"):
                list(execute(jobs_of(), address, silent))
        finally:
            worker.terminate()
            worker.wait(30)
    assert counts(marks) == {}


@pytest.mark.slow
def test_where_no_scheduler_answers_the_executor_is_refused(tmp_path: Path, marks: Path) -> None:
    with pytest.raises(Refused, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        list(execute(jobs_of(), "dask://127.0.0.1:9", silent))


@pytest.mark.slow
def test_a_dask_worker_that_dies_costs_one_retry_and_is_named_when_it_dies_again(
    marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_DYING_ONCE", "1")
    monkeypatch.setenv("COUNTED_DYING", "2")
    done = {each.key: each for each in execute(jobs_of(5), "dask", silent)}
    assert {key for key, each in done.items() if each.table is not None} == {
        "key-0",
        "key-1",
        "key-3",
        "key-4",
    }
    assert done["key-2"].problem.startswith(
        "its worker process died twice, the second time with no other beside it"
    )
    assert counts(marks)[1] == 2
    assert counts(marks)[2] == 2


@pytest.mark.slow
def test_nobody_else_can_speak_to_a_local_dask_cluster() -> None:
    from distributed import Client

    with ExitStack() as stack:
        cluster = _local_cluster(stack)
        address = cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        with Client(cluster) as ours:
            assert ours.submit(abs, -1).result() == 1
        with pytest.raises((OSError, TypeError, ValueError)):
            Client(address.replace("tls://", "tcp://"), timeout=3)
        # Somebody who speaks TLS without our certificate is turned away as well.
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
        host, port = address.removeprefix("tls://").split(":")
        with socket.create_connection((host, int(port)), 5) as plain, pytest.raises(OSError):  # noqa: PT011
            _turned_away(stranger, plain)


def _turned_away(stranger: ssl.SSLContext, plain: socket.socket) -> None:
    """Speak to a server until it breaks off, as an alert or by closing the connection."""
    with stranger.wrap_socket(plain) as wrapped:
        wrapped.sendall(b"hello")
        assert wrapped.recv(1) == b""
        raise ConnectionResetError


@pytest.mark.slow
def test_results_that_are_ready_come_from_dask_in_one_message(
    marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred trials that have finished while one was being stored are no two hundred round trips."""
    from distributed import Client

    asked: list[int] = []
    gather = Client._gather_remote

    async def counted(self: Client, *args: Any, **settings: Any) -> Any:
        asked.append(1)
        return await gather(self, *args, **settings)

    monkeypatch.setattr(Client, "_gather_remote", counted)
    coming = execute(jobs_of(200), "dask", silent)
    first = next(coming)
    while len(counts(marks)) < 200:
        time.sleep(0.05)
    time.sleep(1)  # until the last of them is known to be done
    asked.clear()
    rest = list(coming)
    assert len({first.key, *(done.key for done in rest)}) == 200
    assert all(done.table is not None for done in rest)
    assert len(asked) <= 5


@pytest.mark.slow
def test_a_thousand_empty_trials_go_through_dask_and_are_stored_once(
    store: Store, marks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What skiplab and Dask cost is printed; a time is no test."""
    wall, own = time.monotonic(), time.process_time()
    run = run_study(EMPTY, store, options=Options(executor="dask"))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    with capsys.disabled():
        print(
            f"\n1,000 empty trials through Dask: {time.monotonic() - wall:.1f} s, of processor time "
            f"{time.process_time() - own:.1f} s here and {children.ru_utime + children.ru_stime:.1f} s in workers"
        )
    assert len(run.trials) == len(list((store.root / "trials").iterdir())) == 1000
