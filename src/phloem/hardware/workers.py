"""Processes of this host that share independent pieces of work: one function of many items.

They are fresh interpreters that read pickles from their standard input, so that nothing of this process is
copied (threads, locks, a GPU), and no script of a user's is run again, as multiprocessing does. One whose
parent is gone reads the end of its input and ends.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any, TypeVar

from phloem.errors import InputError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_SIZE = struct.Struct("<Q")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PROGRAM = "from phloem.hardware.workers import serve; serve()"


def answers_of(
    function: Callable[[Item], Answer], items: Sequence[Item], n_workers: int
) -> Iterator[tuple[Item, Answer]]:
    """Every item and its answer, as they come. function: can be pickled, and has one thread.

    Errors: what function raises, the first one; InputError where a process is gone.
    """
    asked, said = SimpleQueue[Item](), SimpleQueue[tuple[Item, Any, BaseException | None]]()
    for item in items:
        asked.put(item)
    workers = [_started() for _ in range(min(n_workers, len(items)))]
    try:
        for worker in workers:
            Thread(target=_ask, args=(worker, function, asked, said), daemon=True).start()
        for _ in items:
            item, answer, error = said.get()
            if error is not None:
                raise error
            yield item, answer
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _started() -> subprocess.Popen[bytes]:
    environment = os.environ | dict.fromkeys(_THREADS, "1")
    command = [sys.executable, "-c", _PROGRAM]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def _ask(
    worker: subprocess.Popen[bytes],
    function: Callable[[Any], Any],
    asked: SimpleQueue[Any],
    said: SimpleQueue[tuple[Any, Any, BaseException | None]],
) -> None:
    """One process's share: whatever is next."""
    assert worker.stdin is not None and worker.stdout is not None
    item = None
    try:
        _send(worker.stdin, function)
        while True:
            item = asked.get_nowait()
            _send(worker.stdin, item)
            said.put((item, *_received(worker.stdout)))
    except Empty:
        pass
    except Exception as error:
        gone = InputError(
            f"a process that shared the work is gone ({type(error).__name__})",
            hint="Give fewer --threads, each of which takes memory, and the same command again.",
        )
        said.put((item, None, gone))


def serve() -> None:
    """Answer until the input ends. What functions print goes to standard error."""
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        function = _received(source)
        while True:
            item = _received(source)
            try:
                answer: tuple[Any, BaseException | None] = function(item), None
            except Exception as error:
                answer = None, error
            _send(answers, answer)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass


def _send(stream: IO[bytes], what: Any) -> None:
    data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


def _received(stream: IO[bytes]) -> Any:
    """EOFError where the other side is gone."""
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (size,) = _SIZE.unpack(head)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)
