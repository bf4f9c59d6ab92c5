"""Trials in worker processes on this machine: one per core, each with one trial at a time.

Workers are kept from one stage to the next, since importing torch takes seconds. They end with the process that
started them, however it ends: the system kills them (Linux), or they see that their parent has changed. A worker that
dies leaves a closed pipe, so it is known which trial it had.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from skiplab.reproduction.executor import Done, Job, Tell, died_twice, run_elsewhere

# Before torch is imported: each worker has one core.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
GRACE = 2.0  # seconds that a worker has to leave nothing half-written behind
LOOK = 1.0  # seconds between two looks whether the parent is there


# In the parent ----------------------------------------------------------------------------------------------


class Worker:
    """A worker process and the pipe to it."""

    def __init__(self) -> None:
        self.start = _surroundings()
        self.job: Job | None = None
        self.pipe, theirs = Pipe()
        code = f"import sys; sys.path[:] = {_path()!r}; from skiplab.reproduction.processes import serve; serve()"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, str(theirs.fileno()), str(os.getpid()), str(_in_main_thread())],
                env=os.environ | ONE_THREAD,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is for the parent, which ends its workers
            )

    def give(self, job: Job) -> bool:
        """Hand it a job, and say whether it is still there to take it."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(pickle.dumps(job))
            self.job = job
            return True
        return False

    def heard(self) -> tuple[str, Any]:
        """What it says: its progress, that it is done, or nothing ever again."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, OSError):
            # It is ending, unless a thread that its trial started keeps it.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
        return "died", None

    def is_of_use(self) -> bool:
        """Whether it lives, and was started where the folder, the environment and the path were as they are now."""
        return self.process.poll() is None and self.start == _surroundings()

    def end(self) -> str:
        """End it now, and say how it had ended if it had."""
        how = self.process.poll()
        if how is None:
            self.process.kill()
        self.process.wait()
        self.pipe.close()
        return _in_words(how)


_idle: list[Worker] = []


def in_processes(jobs: Sequence[Job], count: int, tell: Tell) -> Generator[Done, None, None]:
    """Run jobs in so many workers and yield each as it finishes; one whose worker died is tried once more, alone."""
    lost: list[Job] = []
    for job, done, _ in _finished(jobs, count, tell):
        if done is None:
            lost.append(job)
        else:
            yield done
    for job in lost:
        for _, done, how in _finished([job], 1, tell):
            yield done or died_twice(job, how)


def _finished(jobs: Sequence[Job], count: int, tell: Tell) -> Iterator[tuple[Job, Done | None, str]]:
    """Each job with what became of it: None, and how its worker died, where it did."""
    waiting = deque(jobs)
    busy: dict[Any, Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < count:
                worker, job = _hired(), waiting.popleft()
                if worker.give(job):
                    busy[worker.pipe] = worker
                else:
                    yield job, None, worker.end()
            ready = wait(list(busy), LOOK)
            # A process that the worker started may hold its end of the pipe open.
            dead = [
                pipe
                for pipe, worker in busy.items()
                if pipe not in ready and worker.process.poll() is not None
            ]
            for pipe in (*ready, *dead):
                worker = busy[pipe]
                assert worker.job is not None
                word, content = worker.heard()
                if word == "progress":
                    tell(worker.job.key, *content)
                    continue
                del busy[pipe]
                if word == "died":
                    yield worker.job, None, worker.end()
                else:
                    job, worker.job = worker.job, None
                    # It has work before its table is stored, which may take as long as a trial.
                    if waiting and worker.give(waiting[0]):
                        waiting.popleft()
                        busy[pipe] = worker
                    else:
                        _idle.append(worker)
                    yield job, replace(content, key=job.key), ""
    finally:
        # Workers may be writing checkpoints, and are asked before they are made to end.
        for worker in busy.values():
            worker.process.terminate()
        grace = time.monotonic() + GRACE
        for worker in busy.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, grace - time.monotonic()))
            worker.end()


def _hired() -> Worker:
    """A worker that is idle, or a new one."""
    while _idle:
        worker = _idle.pop()
        if worker.is_of_use():
            return worker
        worker.end()
    return Worker()


@atexit.register
def dismiss() -> None:
    """End all idle workers."""
    while _idle:
        _idle.pop().end()


def _surroundings() -> Any:
    with contextlib.suppress(OSError):  # the folder may be gone
        return dict(os.environ), _path(), os.getcwd()
    return dict(os.environ), _path(), None


def _path() -> list[str]:
    return [each for each in sys.path if isinstance(each, str)]  # Python passes over all else


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _in_words(status: int | None) -> str:
    """How a process ended; the system kills whoever takes too much memory."""
    if status is None:
        return "ended"
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"{name}, as when memory runs out" if name == "SIGKILL" else name
    return f"exit status {status}"


# In a worker ------------------------------------------------------------------------------------------------


def serve() -> None:
    """Run jobs that come by a pipe until it is closed; called as ``serve`` with the pipe and the parent's id."""
    handle, parent = int(sys.argv[1]), int(sys.argv[2])
    _die_with(parent, by_the_system=sys.argv[3] == "True")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    pipe = Connection(handle)
    while True:
        try:
            content = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        done = _answered(content, pipe)
        try:
            answer = pickle.dumps(("done", done))
        except Exception:  # a table may hold anything
            answer = pickle.dumps(
                ("done", Done("", None, {}, problem=traceback.format_exc(), damage=done.damage))
            )
        pipe.send_bytes(answer)
        del done, answer
        _give_memory_back()


def _give_memory_back() -> None:
    """Hand what a trial has freed to the system, which the C library would keep: its small tensors, at their peak.

    Measured on glibc: 1,224 MB after a trial of 10,000 tensors of 100 KB became 221 MB in .2 s, and .1 ms were needed
    where there was nothing to hand back. Over 240 trials of balduzzi2017/figure-6 a worker had 388 to 394 MB either
    way, so no worker needs to be replaced.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _leave(*_: Any) -> None:
    """End after whatever is being written has been put away."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal.SIGTERM)


def _answered(content: bytes, pipe: Connection) -> Done:
    try:
        job = pickle.loads(content)
    except Exception:  # such as a module that is not there, or a trial that is not in it
        return Done("", None, {}, problem=traceback.format_exc())
    return run_elsewhere(job, lambda _, done, text: pipe.send(("progress", (done, text))))


def _die_with(parent: int, *, by_the_system: bool = True) -> None:
    """Let this process end when its parent does, even by KILL and in the middle of a trial.

    To the system the parent is the thread that started us, so it is asked only where that is the main one.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # only Linux has it
        if by_the_system:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG of linux/prctl.h

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        os._exit(1)

    # Also for a parent that ended before the line above, and for other systems.
    threading.Thread(target=watch, daemon=True).start()
