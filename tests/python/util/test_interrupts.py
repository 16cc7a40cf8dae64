"""Ctrl-C ends every long call within about a second, and leaves no bar and no half of a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warpstack as ws

#: Seconds from Ctrl-C until the call has ended: about one, and what a busy machine takes.
MOST_SECONDS = 2.0
#: Seconds that may pass meanwhile on a machine that does other things; a call that waits would take longer.
MOST_WAITING = 20.0

#: One call of the core, which takes seconds, is interrupted half a second after it began. What a call
#: imports is imported before, or Ctrl-C would find it there.
PROGRAM = """
import json, os, signal, sys, threading, time
import warpstack as ws
from warpstack._util import progress
from warpstack.memory import caches
from warpstack.timing import simulation

sys.stderr.isatty = lambda: True  # bars are drawn, into a pipe
gpu, folder = "pascal-mdm", sys.argv[1]
began = threading.Event()


def call(app, store):
    CALL


def watched(function):
    def run(*arguments, **options):
        began.set()
        return function(*arguments, **options)

    return run


def interrupt():
    began.wait(60)
    time.sleep(0.5)
    sent.append((time.monotonic(), time.process_time()))
    os.kill(os.getpid(), signal.SIGINT)


def launches(gs, iterations, blocks):
    made = [ws.patterns.strided(gs, iterations, blocks=blocks, launch_id=i) for i in (1, 2, 3)]
    return ws.App(made)


call(launches(4, 1, 2), folder + "/small")
long = launches(32, 64, 2000)
long.digest
caches.MemorySystem.run = watched(caches.MemorySystem.run)
simulation.Simulator.run = watched(simulation.Simulator.run)
STARTED
signal.signal(signal.SIGINT, signal.default_int_handler)
sent = []
threading.Thread(target=interrupt, daemon=True).start()
try:
    call(long, folder + "/long")
except KeyboardInterrupt:
    waited = time.monotonic() - sent[0][0]
    # On a busy machine little of the time is the program's own.
    told = {"waited": waited, "seconds": min(waited, time.process_time() - sent[0][1])}
    told |= {"bar": progress.is_bar_shown()}
    told["work"] = progress.under_way()
else:
    told = {"ended": True}
print(json.dumps(told), flush=True)
os._exit(0)  # a thread may be in the core until its kernel ends
"""

MANY = "{'num_sms': range(30, 60)}"
CALLS = {
    "predict": "ws.predict(app, gpu, progress=True)",
    "predict in turns": "ws.predict(app, gpu, progress=True, access_order='round_robin')",
    "simulate": "ws.simulate(app, gpu, progress=True)",
    "simulate at once": "ws.simulate(app, gpu, flush_l2=True, workers=2, progress=True)",
    "simulate_caches": "ws.simulate_caches(app, gpu, progress=True)",
    "sweep": f"ws.sweep(app, gpu, {MANY}, workers=1, store=store, progress=True)",
    "sweep on threads": f"ws.sweep(app, gpu, {MANY}, workers=2, store=store, progress=True)",
    "sweep_to_store": f"ws.exploration.sweep_to_store(app, gpu, {MANY}, workers=2, store=store)",
    "sweep of recorded caches": "ws.sweep(app, gpu, {'l2_size_kib': [768, 6144]}, workers=2, "
    "caches='recorded', progress=True)",
    "search": "ws.search(app, gpu, {'num_sms': list(range(30, 60))}, workers=2)",
    # Blocks that are alike would be saved once.
    "save": "if not store.endswith('small'):\n"
    "        app = ws.App([ws.patterns.gather(loads=16, blocks=2000)] * 3)\n"
    "    began.set()\n"
    "    ws.save(app, store, progress=True)",
    "validate": "table = ws.predict(app.select(1), gpu) if store.endswith('small') else None\n"
    "    while table is None: ws.validate(*tables)\n"
    "    tables.extend([table, table[['kernel', 'cycles']]])",
}
#: What is said of calls in which the caches are not simulated.
STARTED = dict.fromkeys(("validate", "sweep of recorded caches"), "began.set()")


def interrupted(name: str, folder: Path) -> dict[str, object]:
    """Return what a program tells whose call was interrupted."""
    code = PROGRAM.replace("CALL", CALLS[name]).replace("STARTED", STARTED.get(name, ""))
    done = subprocess.run(
        [sys.executable, "-c", code.replace("began =", "tables = []\nbegan ="), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "WARPSTACK_CACHE": "off"},
        # A job in the background of a shell script, as tests may be, inherits that SIGINT is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_call(name: str, tmp_path: Path) -> None:
    told = interrupted(name, tmp_path)
    assert "ended" not in told, "the call was not long enough"
    assert isinstance(told["seconds"], float)
    assert told["seconds"] < MOST_SECONDS
    assert isinstance(told["waited"], float)
    assert told["waited"] < MOST_WAITING
    assert told["bar"] is False
    assert told["work"] is None
    left = [path.name for path in (tmp_path / "long").rglob("*")]
    assert not [name for name in left if name.startswith(".partial")], left
    if name == "save":
        assert not (tmp_path / "long").exists()


COMMAND = """
import os, signal, sys, threading, time
from warpstack.memory import caches

run = caches.MemorySystem.run


def watched(*arguments, **options):
    os.write(1, b"in the core\\n")
    return run(*arguments, **options)


caches.MemorySystem.run = watched
from warpstack.__main__ import main
sys.argv = ["warpstack", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_command_whose_threads_are_in_the_core(tmp_path: Path) -> None:
    ws.save(ws.patterns.strided(32, 64, blocks=2000), tmp_path / "trace")
    design = tmp_path / "design.yaml"
    design.write_text(
        f"kernels: {{own: {{trace: {tmp_path}/trace}}}}\ngpu: pascal-mdm\n"
        "axes: {num_sms: [30, 40, 50, 60]}\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "sweep", str(design), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WARPSTACK_CACHE": "off"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(2):
            assert process.stdout.readline() == "in the core\n"
        time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert time.monotonic() - start < MOST_SECONDS
        assert "warpstack: error: interrupted" in process.stderr.read()
    assert process.returncode == 130
