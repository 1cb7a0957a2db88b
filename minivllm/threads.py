"""A small pool of threads for work that releases Python's lock: matrix products and kernels.

vLLM leaves this to its CUDA streams.  On a CPU, Numba's own threads (``parallel=True``) and those
of the BLAS library wait for work by spinning, each on the cores that the other needs.  The
threads here serve both: they wait awake for some milliseconds, in which they help with kernels
(`minivllm.attention.ops.board`), then sleep, and BLAS is kept to the thread that calls it.
Their number is `envs.num_threads()`.
"""

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from minivllm import envs
from minivllm.logger import init_logger

logger = init_logger(__name__)

# Where the BLAS libraries that NumPy may be built with look for their number of threads.
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                   "VECLIB_MAXIMUM_THREADS")

# Fewer multiplications are done before another thread has woken up.
_WORTH_SHARING = 1 << 18

# (function, its arguments, where to put None or the exception when it is done)
Task = tuple[Callable[..., Any], tuple[Any, ...], "SimpleQueue[BaseException | None]"]


_blas_is_limited = False


def limit_blas_threads() -> None:
    """Keep the BLAS library to the thread that calls it.

    It reads its own environment variable when NumPy is loaded; whoever has set that knows better.
    Once NumPy is loaded, only the package threadpoolctl can tell it.
    """
    global _blas_is_limited
    if _blas_is_limited:
        return
    _blas_is_limited = True
    if "numpy" not in sys.modules:
        for variable in _BLAS_VARIABLES:
            os.environ.setdefault(variable, "1")
        return
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        logger.warning("BLAS keeps its own threads, which get in the way of minivllm's: import "
                       "minivllm before numpy, or install threadpoolctl.")
        return
    threadpool_limits(1, user_api="blas")


# (board, index, value): returns when ``board[index]`` is no longer `value`, or after a while.
Wait = Callable[[Any, int, int], object]

# Of a board: counters of tasks, and what `minivllm.attention.ops.board` keeps behind them.
BOARD_SIZE = 80
_POSTED, _FINISHED = 0, 1


def _do_not_wait(board: Any, index: int, value: int) -> None:
    """Sleep at once."""


_wait_awake: Wait = _do_not_wait


def wait_awake_with(wait: Wait) -> None:
    """Let threads spend some time in `wait`, which releases Python's lock, before they sleep."""
    global _wait_awake
    _wait_awake = wait


class ThreadPool:
    """Calls a function on all threads at once.

    Attributes
    ----------
    num_threads : int
        The calling thread included.
    board : (BOARD_SIZE,) int64
        What threads look at while they wait awake.
    """

    def __init__(self, num_threads: int) -> None:
        import numpy as np  # not before `limit_blas_threads`

        self.num_threads = num_threads
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        # Its counters are only a hint that it is worth looking: the queues decide.
        self.board = np.zeros(BOARD_SIZE, np.int64)
        for i in range(1, num_threads):
            threading.Thread(target=self._work, name=f"minivllm-{i}", daemon=True).start()

    def _work(self) -> None:
        while True:
            num_posted = self.board[_POSTED]
            if self._tasks.empty():
                _wait_awake(self.board, _POSTED, num_posted)
            function, args, done = self._tasks.get()
            try:
                function(*args)
                done.put(None)
            except BaseException as error:
                done.put(error)
            if function is not _do_nothing:
                self.board[_FINISHED] += 1

    def run(self, function: Callable[..., Any], *args: Any) -> None:
        """Call ``function(thread, num_threads, *args)`` for each thread number, and wait.

        What a thread raises is raised here, once all have ended.
        """
        done: SimpleQueue[BaseException | None] = SimpleQueue()
        num_finished = self.board[_FINISHED]
        for thread in range(1, self.num_threads):
            self._tasks.put((function, (thread, self.num_threads, *args), done))
        self.board[_POSTED] += 1
        try:
            function(0, self.num_threads, *args)
        finally:
            if self.num_threads > 1 and done.empty():
                _wait_awake(self.board, _FINISHED, num_finished)
            errors = [done.get() for _ in range(1, self.num_threads)]
        for error in errors:
            if error is not None:
                raise error

    def wake(self) -> None:
        """Let threads that sleep look at the board again."""
        if self._tasks.empty():
            for _ in range(1, self.num_threads):
                self._tasks.put((_do_nothing, (), SimpleQueue()))


def _do_nothing() -> None:
    """Be awake."""


_pool: ThreadPool | None = None


def get_pool() -> ThreadPool:
    """Return the process's pool, made when first asked for."""
    global _pool
    if _pool is None:
        _pool = ThreadPool(envs.num_threads())
    return _pool


def share(work: int, function: Callable[..., Any], *args: Any) -> None:
    """Call a function on all threads, or on this one if there is little to do.

    Parameters
    ----------
    work : int
        About how many multiplications it takes.
    function : callable
        Takes the thread's number, the number of threads, and `args`.
    """
    if is_worth_sharing(work):
        get_pool().run(function, *args)
    else:
        function(0, 1, *args)


def is_worth_sharing(work: int) -> bool:
    """Return whether so many multiplications take longer than waking up another thread."""
    return work >= _WORTH_SHARING


def _forget_pool() -> None:
    """Threads do not survive a fork: let the child make its own."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_pool)
