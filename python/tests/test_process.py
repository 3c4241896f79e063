"""Threads, forks, interrupts, memory, and the time that a call takes."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tamis as tm


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_several_threads_compile_and_run_at_once() -> None:
    a = tm.gallery.random((60, 60), 0.1)
    dense = a.to_numpy()
    failures: list[BaseException] = []
    program = tm.program("def f(A):\n    y = tensor('dense')\n    for i, j in _:\n        y[i] += A[i,j]\n    return y\n")

    def work(k: int) -> None:
        try:
            for iteration in range(30):
                x = np.full(60, float(k))
                np.testing.assert_allclose(tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x).to_numpy(), dense @ x)
                np.testing.assert_allclose(program(a).to_numpy(), dense.sum(axis=1))
                text = f"y[i] = A[i,j] * x[j] + {k + 8 * (iteration % 3)}"
                np.testing.assert_allclose(tm.einsum(text, A=a, x=x).to_numpy(), dense @ x + k + 8 * (iteration % 3))
                with tm.config(strict=k % 2 == 0):
                    assert tm.settings().strict == (k % 2 == 0)
                    tm.einsum("y[j] = A[i,j]", A=a)
                with pytest.raises(tm.Error):
                    tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x[:-1])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_others_run_meanwhile() -> None:
    a = tm.gallery.random((1500, 1500), 1.0, format="dense")
    done = threading.Event()

    def work() -> None:
        tm.einsum("C[i,k] = A[i,j] * B[j,k]", A=a, B=a)
        done.set()

    thread = threading.Thread(target=work)
    iterations = 0
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        iterations += 1
    thread.join()
    assert iterations > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_processes_have_threads() -> None:
    code = """
import os, signal, tamis as tm, numpy as np
a = tm.gallery.rmat(14, 16)                       # large enough for several threads
b = a.convert("csc")
def child():
    signal.alarm(60)
    assert a.convert("csc").same_values(b)
    assert np.isclose(tm.einsum("s = A[i,j]", A=a).item(), tm.einsum("s = A[j,i]", A=b).item())
    tm.gallery.rmat(13, 16).convert("csc").convert("csr")
    pid = os.fork()                               # and so have theirs
    if pid == 0:
        assert a.convert("csc").same_values(b)
        os._exit(0)
    os._exit(os.waitpid(pid, 0)[1])
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        child()
    pids.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
assert a.convert("csc").same_values(b)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_processes_do_not_wait_for_threads_of_their_parents() -> None:
    code = """
import os, signal, tamis as tm, numpy as np
tm.config(threads=2)
a = tm.gallery.rmat(16, 32)                       # large enough for several threads
x = tm.tensor(np.ones(a.shape[1]))
y = np.asarray(a @ x)
for _ in range(20):
    a @ x                                         # the other thread still waits for more
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        assert np.allclose(np.asarray(a @ x), y)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_interrupts_are_heard() -> None:
    code = """
import signal, tamis as tm
signal.signal(signal.SIGINT, signal.default_int_handler)  # A background process may ignore it.
a = tm.gallery.random((3000, 3000), 1.0, format="dense")
try:
    print("go", flush=True)
    while True:
        tm.einsum("s = A[i,j] * B[j,k] * A[k,i]", A=a, B=a, order="i,j,k")
except KeyboardInterrupt:
    print("heard", flush=True)
assert tm.einsum("s = x[i]", x=[1.0, 2.0]).item() == 3.0
import os
os._exit(0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "heard\n"
        assert process.wait(60) == 0


def test_nothing_leaks() -> None:
    a, x = tm.gallery.random((200, 200), 0.1), np.ones(200)
    scipy_matrix = a.to_scipy()
    program = tm.program("def f(A):\n    s = scalar(0.0)\n    for i, j in _:\n        s += A[i,j]\n    return s\n")

    def iteration() -> None:
        y = tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x)
        y.to_numpy()
        program(tm.asarray(scipy_matrix))
        tm.einsum("C[i,k] = A[i,j] * A[j,k]", A=a).to_coo()
        try:
            tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x[1:])
        except tm.Error:
            pass

    for _ in range(500):
        iteration()
    gc.collect()
    before = resident()
    for _ in range(2500):  # Four calls each.
        iteration()
    gc.collect()
    assert resident() - before < 8 << 20


def test_importing_imports_little() -> None:
    code = "import sys, tamis; print(any(m.split('.')[0] in ('numpy', 'scipy', 'torch', 'matplotlib', 'pandas') for m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "False"


def test_calls_are_cached() -> None:
    a, x = tm.gallery.random((100, 100), 0.05), tm.tensor(np.ones(100))
    for _ in range(200):
        tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x)
        times.append((time.perf_counter() - start) / 100)
    # How short is measured by `./dev bench python`. Compiling takes milliseconds: this catches a lost cache.
    assert min(times) < 2e-3


def test_an_invalid_number_of_threads_is_reported() -> None:
    for setting, reported in [("foo", True), ("0", True), ("-1", True), ("2", False), ("", False)]:
        done = subprocess.run(
            [sys.executable, "-c", "import tamis as tm; print(tm.einsum('s = x[i]', x=[1.0, 2.0]).item())"],
            env={**os.environ, "TAMIS_NUM_THREADS": setting},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "3.0\n"
        assert ("RuntimeWarning: E0901: TAMIS_NUM_THREADS" in done.stderr) == reported, done.stderr
