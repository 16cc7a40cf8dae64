"""Fuzz the readers that are written in Python: files as they come, then random changes of them.

    python tests/fuzz/readers.py [TARGET ...] [--seconds N] [--inputs N] [--seed N] [--keep FOLDER]

Each input must be read or refused by one `InputError` of one line. Another exception, a message of
several lines, or more than 20 seconds are failures: the input is kept, its path and the seed are
printed, and the exit status is 1. Without --seed each run takes another one, which it prints.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import warpstack as ws
from card_output import output
from time_limit import time_limit
from warpstack import cli
from warpstack._util.files import file_digest, sealed
from warpstack.cli.common.sweep_design import SweepDesign
from warpstack.exploration.stage_cache import StageCache
from warpstack.exploration.store import SweepStore
from warpstack.traces import operations
from warpstack.traces.io import parquet
from warpstack.validation import reference

REPOSITORY = Path(__file__).resolve().parents[2]
HANG_SECONDS = 20

#: What turns a reader's thoughts: limits of types, words that mean something, and odd text.
_TOKENS = [
    *(
        b"0",
        b"-1",
        b"1e308",
        b"1e-308",
        b"-0.0",
        b"nan",
        b"inf",
        b"9" * 40,
        b"18446744073709551616",
    ),
    *(b"true", b"null", b"~", b"[]", b"{}", b"&a", b"*a", b"<<: *a", b"!!python/object:os.system"),
    *(
        b'"',
        b"'",
        b",",
        b",,",
        b":",
        b"\n",
        b"\r\n",
        b"\t",
        b"#",
        b"%",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *("é".encode(), "\u2028".encode(), "\U0001f600".encode()),
]


@dataclass(frozen=True)
class Target:
    """A reader: files to begin with, and what reads a changed one."""

    seeds: Callable[[Path], list[bytes]]
    read: Callable[[Path, bytes], object]
    ending: str


def changed(seeds: list[bytes], chance: random.Random) -> bytes:
    """Return one of the seeds with a few random changes."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + int(chance.expovariate(1 / 12)))
        kind = chance.randrange(8)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:end] = data[start:end] * chance.choice((2, 3, 50))
        elif kind == 2 and start < len(data):
            data[start] ^= 1 << chance.randrange(8)
        elif kind == 3:
            data[start:end] = chance.choice(_TOKENS)
        elif kind == 4:
            other = chance.choice(seeds)
            place = chance.randrange(len(other) + 1)
            data[start:end] = other[place : place + int(chance.expovariate(1 / 40))]
        elif kind == 5:  # one number becomes another
            numbers = list(re.finditer(rb"\d+(\.\d+)?", data))
            if numbers:
                found = chance.choice(numbers)
                data[found.start() : found.end()] = chance.choice(_TOKENS[:9])
        elif kind == 6:  # lines change places
            lines = bytes(data).split(b"\n")
            chance.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        else:
            del data[start:]
    return bytes(data[: 1 << 16])


def _files(*patterns: str) -> Callable[[Path], list[bytes]]:
    return lambda _: [
        file.read_bytes() for pattern in patterns for file in sorted(REPOSITORY.glob(pattern))
    ]


_REFERENCES = [
    b"source,kernel,name,cycles,time_s\nhw,1,bfs,1000,0.001\nhw,2,bfs,2000,0.002\n",
    b"app,gpu,kernel,name,cycles,ipc\na,b,1,k,10,1.5\na,b,2,l,20,2.5\n",
    b"==1== NVPROF is profiling process 1\n==1== Profiling result:\n"
    b'"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Name"\n'
    b'ms,us,,,,,,,\n1.5,2.5,1,1,1,32,1,1,"k(int*)"\n',
    b"==1== Metric result:\n"
    b'"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
    b'"GPU (0)","k(int*)",2,"gld_transactions","Loads",1,3,2\n',
    b'"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    b'"0","1","k(int *)","gpu__time_duration.sum","nsecond","1,234"\n',
    b'"ID","Kernel Name","Block Size","Grid Size","sm__cycles_elapsed.max","dram__bytes_read.sum"\n'
    b'"","","","","cycle","Kbyte"\n"0","k(int *)","(32, 1, 1)","(8, 2, 1)","1,234","6.4"\n',
    b"Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Name\n"
    b'900,1500,117,,,,,,,gpu,[CUDA memset]\n9,2,1,8,2,1,256,1,1,gpu,"k(int *)"\n',
    b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n75.0,9000,3,3000.0,k(int *)\n",
    b'{"traceEvents": [{"cat": "kernel", "name": "k", "ts": 1, "dur": 2.5,'
    b' "args": {"grid": [8, 1, 1], "block": [128, 1, 1]}}]}',
    b"==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no\n",
]


def _prediction_seeds(folder: Path) -> list[bytes]:
    table = ws.predict(ws.patterns.stream(), "pascal-mdm", models=["mdm", "gpumech"])
    return [table.to_csv(index=False).encode(), *_REFERENCES[:2]]


def _read_predictions(folder: Path, data: bytes) -> None:
    """Hold predictions against a reference, as the command does."""
    predictions, known = folder / "predictions.csv", folder / "reference.csv"
    predictions.write_bytes(data)
    known.write_bytes(b"source,kernel,name,cycles\nhw,1,stream,1000\n")
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = cli.main(["validate", str(predictions), str(known)])
    if status not in (0, 2):
        raise AssertionError(f"exit status {status}: {said.getvalue()}")
    if status == 2:
        raise ws.InputError(said.getvalue().removesuffix("\n"))


_DESIGNS = [
    b"kernels:\n  a: {workload: bfs, size: small}\ngpu: pascal-mdm\naxes:\n  num_sms: [15, 28]\n"
    b"  dram_bandwidth_gbs: {from: 240, to: 960, points: 3}\nmodels: [mdm, gpumech]\nworkers: 2\n",
    b"kernels:\n  b: {pattern: stream}\naxes:\n  l1_size_kib: [16, 32]\nsample: {number: 4, seed: 1}\n"
    b"store: here\noutput: table.csv\noptions: {clusters: 2}\nplots: []\n",
]


def _read_design(folder: Path, data: bytes) -> None:
    (folder / "design.yaml").write_bytes(data)
    SweepDesign.read(folder / "design.yaml")


def _read_gpu(folder: Path, data: bytes) -> None:
    (folder / "gpu.yaml").write_bytes(data)
    ws.gpu(folder / "gpu.yaml")


def _read_config(folder: Path, data: bytes) -> None:
    """Read a configuration, and again with a changed trace.config of the same text."""
    (folder / "gpgpusim.config").write_bytes(data)
    alone = ws.Gpu.from_gpgpusim(folder / "gpgpusim.config")
    (folder / "mine.config").write_bytes(data)
    again = ws.Gpu.from_gpgpusim(folder / "gpgpusim.config", trace_config=folder / "mine.config")
    assert again.values() == alone.values(), "the same options again mean something else"


def _read_reference(folder: Path, data: bytes) -> None:
    (folder / "reference.csv").write_bytes(data)
    reference.read(folder / "reference.csv")


_SWEEP = {"a": 1, "axes": {"num_sms": [1, 2]}}
_SIZES = (1, 2)


def _store_seeds(folder: Path) -> list[bytes]:
    """Return the files of a store, each behind its name."""
    store = SweepStore(folder / "made", _SWEEP, resume=False)
    for task, rows in enumerate(_SIZES):
        store.add(task, pd.DataFrame({"ipc": [1.5] * rows, "model": ["mdm"] * rows}))
    store.close()
    files = sorted((folder / "made").iterdir())
    return [f"{file.name}\n".encode() + file.read_bytes() for file in files]


def _read_store(folder: Path, data: bytes) -> None:
    """Resume a sweep of whose store one file was changed; what is found must be what was stored."""
    place = folder / "store"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "made", place)
    name, _, content = data.partition(b"\n")
    known = {file.name for file in place.iterdir()}
    if (text := name.decode("utf-8", "replace")) in known:
        (place / text).write_bytes(content)
    else:  # the change is in the name: a part under another one
        part = next(file for file in place.iterdir() if file.suffix == ".parquet")
        part.write_bytes(data)
    store = SweepStore(place, _SWEEP, resume=True)
    try:
        for task, table in store.read(_SIZES).items():
            expected = pd.DataFrame({"ipc": [1.5] * _SIZES[task], "model": "mdm"})
            pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    finally:
        store.close()


def _cache_seeds(folder: Path) -> list[bytes]:
    import numpy as np

    cache = StageCache(folder / "cache")
    cache.put(
        "caches", "0" * 8, {"x": np.arange(5), "y": np.array(["a", "bc"]), "z": np.ones((2, 3))}
    )
    return [
        file.read_bytes() for file in (folder / "cache").iterdir() if file.name.endswith(".stage")
    ]


def _read_cache(folder: Path, data: bytes) -> None:
    """Look up a changed entry: it is what was put there or counts as missing."""
    (folder / "cache" / f"caches-{'0' * 8}.stage").write_bytes(data)
    arrays = StageCache(folder / "cache").get("caches", "0" * 8)
    if arrays is not None:
        assert arrays["x"].tolist() == [0, 1, 2, 3, 4]
        assert arrays["y"].tolist() == ["a", "bc"]
        assert arrays["z"].tolist() == [[1.0] * 3] * 2


def _read_calibration(folder: Path, data: bytes) -> None:
    (folder / "run.txt").write_bytes(data)
    ws.calibration.calibrate(folder / "run.txt", base="rtx3080").to_frame()


_OPERATIONS = [
    {"operation": "stream_create", "stream": 1, "priority": -1},
    {"operation": "copy", "stream": 1, "direction": "HtoD", "bytes": 4096, "pinned": True},
    {"operation": "kernel", "name": "work", "stream": 1, "kernel": 0, "host_ns": 125},
    {"operation": "event_record", "stream": 1, "event": 0, "graph": 0, "after": (2,)},
    {"operation": "kernel", "name": "inner", "stream": 0, "parent": 2, "thread": 1},
]


def _operation_seeds(folder: Path) -> list[bytes]:
    """Return a saved table as a file, and as JSON, whose changes reach the checks of its values."""
    app = ws.App([ws.patterns.stream(blocks=2)], "app")
    app._operations = operations.columns_of(_OPERATIONS)
    ws.save(app, folder / "saved")
    table = pq.read_table(folder / "saved" / "operations.parquet")
    return [
        (folder / "saved" / "operations.parquet").read_bytes(),
        *(json.dumps(table.to_pydict()).encode() for _ in range(3)),
    ]


def _read_operations(folder: Path, data: bytes) -> None:
    place, manifest = folder / "saved" / "operations.parquet", folder / "saved" / parquet.MANIFEST
    place.write_bytes(data)
    columns = None
    with contextlib.suppress(ValueError, RecursionError):
        columns = json.loads(data)
    if isinstance(columns, dict):
        schema = {name: parquet._type(kind) for name, kind in parquet._OPERATIONS.items()}
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays = {name: pa.array(values, schema.get(name)) for name, values in columns.items()}
            pq.write_table(pa.table(arrays), place)
            about = json.loads(manifest.read_text())
            del about["digest"]
            manifest.write_text(sealed({**about, "operations": file_digest(place)}))
    for row in ws.load(folder / "saved").operations.to_dict("records"):
        assert row["operation"] in operations.OPERATIONS
        assert row["kernel"] in (-1, 0)


TARGETS = {
    "calibration": Target(lambda _: [output().encode()], _read_calibration, ".txt"),
    "gpu": Target(_files("data/gpus/*.yaml"), _read_gpu, ".yaml"),
    "gpgpusim": Target(_files("tests/fuzz/corpus-gpgpusim/*.config"), _read_config, ".config"),
    "reference": Target(lambda _: _REFERENCES, _read_reference, ".csv"),
    "predictions": Target(_prediction_seeds, _read_predictions, ".csv"),
    "design": Target(lambda _: _DESIGNS, _read_design, ".yaml"),
    "store": Target(_store_seeds, _read_store, ".bin"),
    "cache": Target(_cache_seeds, _read_cache, ".stage"),
    "operations": Target(_operation_seeds, _read_operations, ".parquet"),
}


def failure(target: Target, folder: Path, data: bytes) -> str:
    """Return what is wrong with how an input is taken; nothing where all is well."""
    try:
        with time_limit(HANG_SECONDS):
            target.read(folder, data)
    except ws.InputError as error:
        text = str(error)
        return "" if text and "\n" not in text else f"a message of several lines: {text!r}"
    except KeyboardInterrupt:
        raise
    except BaseException:
        return traceback.format_exc()
    return ""


def run(name: str, *, seconds: float, inputs: int, seed: int, keep: Path) -> tuple[int, int]:
    """Fuzz a target and return how many inputs there were and how many failed."""
    target = TARGETS[name]
    chance = random.Random(f"{name} {seed}")
    tried = failed = 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        folder = Path(place)
        seeds = target.seeds(folder)
        if not seeds:
            raise SystemExit(f"{name}: there are no files to begin with")
        end = time.monotonic() + seconds
        while tried < inputs and (tried < len(seeds) or time.monotonic() < end):
            data = seeds[tried] if tried < len(seeds) else changed(seeds, chance)
            tried += 1
            if problem := failure(target, folder, data):
                failed += 1
                keep.mkdir(parents=True, exist_ok=True)
                kept = keep / f"{name}-{seed}-{tried}{target.ending}"
                kept.write_bytes(data)
                print(f"{name}: {kept}\n{problem}", file=sys.stderr)
                if failed >= 10:
                    break
    return tried, failed


def main() -> int:
    """Fuzz some targets, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=10, help="for each target (default: 10)")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="for each, at most")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="for failing inputs")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(TARGETS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the targets are {', '.join(TARGETS)}")
    os.environ["WARPSTACK_CACHE"] = "off"
    warnings.simplefilter("ignore", UserWarning)  # options without a meaning, damaged parts
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    failures = 0
    for name in arguments.targets or TARGETS:
        tried, failed = run(
            name,
            seconds=arguments.seconds,
            inputs=arguments.inputs,
            seed=seed,
            keep=arguments.keep,
        )
        failures += failed
        print(f"{name}: {tried} inputs, {failed} failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
