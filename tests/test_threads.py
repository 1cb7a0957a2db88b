"""The thread pool, and how many threads BLAS gets."""

import os
import subprocess
import sys
import threading

import pytest

from minivllm.threads import ThreadPool, get_pool

PRINT_BLAS_THREADS = ("from threadpoolctl import threadpool_info; import numpy; "
                      "print(max(info['num_threads'] for info in threadpool_info()))")


def test_every_thread_gets_its_number():
    pool, seen, barrier = ThreadPool(3), [], threading.Barrier(3)

    def work(thread, num_threads, label):
        barrier.wait(timeout=10)  # passed only if all three run at once
        seen.append((thread, num_threads, label, threading.get_ident()))

    pool.run(work, "a")
    assert sorted(item[:3] for item in seen) == [(0, 3, "a"), (1, 3, "a"), (2, 3, "a")]
    assert len({item[3] for item in seen}) == 3


def test_what_a_thread_raises_comes_out_and_the_pool_lives_on():
    pool, seen = ThreadPool(2), []

    def fail(thread, num_threads):
        if thread == 1:
            raise ValueError("in a thread")

    for _ in range(3):
        with pytest.raises(ValueError, match="in a thread"):
            pool.run(fail)
    pool.run(lambda thread, num_threads: seen.append(thread))
    assert sorted(seen) == [0, 1]


def test_a_pool_of_one_uses_the_calling_thread():
    seen = []
    ThreadPool(1).run(lambda thread, num_threads: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()]


def test_callers_on_several_threads_do_not_mix():
    pool, results = ThreadPool(2), {}

    def caller(name):
        for _ in range(50):
            seen = []
            pool.run(lambda thread, num_threads, seen=seen: seen.append(thread))
            results.setdefault(name, []).append(sorted(seen))

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [[0, 1]] * 50 for i in range(4)}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_makes_its_own_pool():
    parent = get_pool()
    pid = os.fork()
    if pid == 0:
        seen = []
        get_pool().run(lambda thread, num_threads: seen.append(thread))
        os._exit(0 if get_pool() is not parent and 0 in seen else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def run_python(code, **env):
    rest = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    return subprocess.run([sys.executable, "-c", code], text=True, env=rest | env,
                          capture_output=True, check=True)


@pytest.mark.parametrize(("code", "env", "expected"), [
    ("import minivllm", {}, 1),
    ("import minivllm", {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2",
                         "BLIS_NUM_THREADS": "2", "VECLIB_MAXIMUM_THREADS": "2"}, 2),
    ("import numpy; from minivllm.threads import limit_blas_threads; limit_blas_threads()", {},
     1)])
def test_blas_is_kept_to_one_thread_unless_told_otherwise(code, env, expected):
    pytest.importorskip("threadpoolctl")
    result = run_python(f"{code}; {PRINT_BLAS_THREADS}", **env)
    assert int(result.stdout) == expected


def test_one_line_says_that_blas_cannot_be_told():
    result = run_python("import sys, numpy; sys.modules['threadpoolctl'] = None; "
                        "from minivllm.threads import limit_blas_threads; "
                        "limit_blas_threads(); limit_blas_threads()")
    assert result.stderr.count("BLAS keeps its own threads") == 1
