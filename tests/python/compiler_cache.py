"""What compilers have made, kept by content for later runs of the tests.

NVIDIA's compilers take half the time of some test modules, and nearly always get what they got before. An
entry is found by all that it depends on: the tool and its version, the arguments, the names and contents of
the inputs, and the folders of headers. What cannot be known for sure, such as an include outside these
folders, is compiled each time. Failures are not kept. Tests marked `real_compilers` neither use nor fill the
cache.

The folder is `WARPSTACK_TEST_CACHE` (empty: no cache), else `warpstack-tests` of the user's caches.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import types
from pathlib import Path

import platformdirs

#: The cache is made smaller than this at the end of each run: entries that were not used for longest go.
MAX_BYTES = 2 << 30
#: Folders of sources with more in them are not looked through for headers.
MAX_SOURCE_FILES, MAX_SOURCE_BYTES = 300, 32 << 20
#: Part of every key: another number where an entry's form or its key changes.
FORM = 1

_INCLUDE = re.compile(r"#\s*include\b\s*(.*)")
_PLAIN_INCLUDE = re.compile(r'"(?!/)(?!.*\.\.)[^"\n]+"|<(?!/)(?!.*\.\.)[^>\n]+>')

_real_run = subprocess.run
_in_use = True


def folder():
    """Return the folder of the cache, or None without one."""
    named = os.environ.get("WARPSTACK_TEST_CACHE")
    if named is not None:
        return Path(named).resolve() if named else None
    with contextlib.suppress(RuntimeError):  # there is no home
        return platformdirs.user_cache_path("warpstack-tests")
    return None


def use(yes):
    """Have compilers' output taken from the cache and put there, or not."""
    global _in_use
    _in_use = yes


# ---- entries ----


def key_of(*facts):
    """Return the name of an entry that depends on these values, which are text, bytes, numbers or lists."""
    digest = hashlib.sha256()

    def add(fact):
        if isinstance(fact, (list, tuple)):
            digest.update(b"l%d:" % len(fact))
            for one in fact:
                add(one)
        elif isinstance(fact, bytes):
            digest.update(b"b%d:" % len(fact) + fact)
        else:
            add(repr(fact).encode())

    add([FORM, *facts])
    return digest.hexdigest()


def stored(key):
    """Return the parts of an entry, or None: it is not there, or not as it was written."""
    place = folder()
    if place is None:
        return None
    file = place / key[:2] / key
    try:
        data = file.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # the least recently used go first
    if len(data) < 32 or hashlib.sha256(key.encode() + data[32:]).digest() != data[:32]:
        with contextlib.suppress(OSError):
            file.unlink()
        return None
    sizes, _, rest = data[32:].partition(b"\n")
    parts = []
    for size in json.loads(sizes):
        parts.append(rest[:size])
        rest = rest[size:]
    return parts


def store(key, parts):
    """Keep an entry. Others that read it see all of it or nothing."""
    place = folder()
    if place is None:
        return
    data = json.dumps([len(part) for part in parts]).encode() + b"\n" + b"".join(parts)
    data = hashlib.sha256(key.encode() + data).digest() + data
    temporary = None
    try:
        (place / key[:2]).mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place / key[:2], prefix=".new-")
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, place / key[:2] / key)
    except OSError:  # unwritable or full
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def kept(key, make):
    """Return the parts of an entry, made by `make()` if they are not there."""
    if not _in_use or key is None:
        return make()
    parts = stored(key)
    if parts is None:
        parts = make()
        store(key, parts)
    return parts


def make_small(max_bytes=MAX_BYTES):
    """Remove the entries that were not used for longest until `max_bytes` are left."""
    place = folder()
    if place is None or not place.is_dir():
        return
    entries = []
    for file in place.glob("??/*"):
        with contextlib.suppress(OSError):
            status = file.stat()
            entries.append((status.st_mtime_ns, status.st_size, file))
    total = sum(size for _, size, _ in entries)
    for _, size, file in sorted(entries):
        if total <= max_bytes:
            break
        with contextlib.suppress(OSError):
            file.unlink()
            total -= size


# ---- what an output depends on ----


@functools.cache
def _version_at(tool, size, changed):
    done = _real_run([tool, "--version"], capture_output=True, check=False)
    return done.stdout + done.stderr


def version(tool):
    """Return the text by which a program tells its version, with its file or the size of a long one."""
    path = Path(shutil.which(tool) or tool).resolve()
    status = path.stat()
    text = _version_at(str(path), status.st_size, status.st_mtime_ns)
    return [text, path.read_bytes() if status.st_size < 1 << 20 else status.st_size]


@functools.cache
def installed(place):
    """Return what tells one state of an installed folder from another: each file's name, size and time."""
    files = (os.path.join(above, name) for above, _, names in os.walk(place) for name in names)
    known = [
        (path, status.st_size, status.st_mtime_ns)
        for path in files
        if (status := _status(path)) is not None
    ]
    return key_of(sorted(known))


def _status(path):
    try:
        return os.stat(path)
    except OSError:
        return None


@functools.cache
def contents(place):
    """Return a digest of all files of an installed folder: names and contents."""
    digest = hashlib.sha256()
    for file in sorted(Path(place).rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            digest.update(f"{file.relative_to(place)} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def sources_in(place):
    """Return names and contents of all files in a folder of sources, or None: they are too many to know."""
    found, total = [], 0
    for above, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            path = Path(above) / name
            if not path.is_file():
                continue
            total += path.stat().st_size
            if len(found) == MAX_SOURCE_FILES or total > MAX_SOURCE_BYTES:
                return None
            found.append((str(path.relative_to(place)), path.read_bytes()))
    return found


def includes_are_plain(data):
    """Return whether what a source includes is in folders that are searched: no macros, no upward paths."""
    return all(
        _PLAIN_INCLUDE.match(found[1])
        for found in _INCLUDE.finditer(data.decode("utf-8", "replace"))
    )


def headers_beside(data, folders):
    """Return what a source may include of folders of sources, or None: that cannot be known."""
    if b"include" not in data:
        return []
    found = []
    for place in folders:
        files = sources_in(place)
        if files is None or not all(includes_are_plain(text) for _, text in files):
            return None
        found.append(files)
    return found if includes_are_plain(data) else None


# ---- nvcc, called by tests ----


def nvcc(command):
    """Run nvcc with sources and ``-o program``, or give the program that the same call made before.

    Arguments that are paths of files are sources; the headers are in their folders or installed.
    """
    command = [str(word) for word in command]
    target = Path(command[command.index("-o") + 1])

    def make():
        _real_run(command, check=True, timeout=300)
        return [target.read_bytes()]

    program = kept(nvcc_key(command, target) if _in_use else None, make)[0]
    if not target.exists() or target.read_bytes() != program:
        target.write_bytes(program)
        target.chmod(0o755)


def nvcc_key(command, target):
    """Return the key of a call of nvcc, or None where not all that it depends on can be known."""
    toolkit = Path(shutil.which(command[0]) or command[0]).resolve().parents[1]
    words, inputs = [], []
    for word in command[1:]:
        path = Path(word)
        if word == str(target):
            words.append("<target>")
        elif not word.startswith("-") and path.is_file():
            words.append(f"<{path.name}>")
            data = path.read_bytes()
            if (beside := headers_beside(data, [path.resolve().parent])) is None:
                return None
            inputs.append([data, beside])
        elif word.startswith(("-I", "-L", "-isystem", "-include", "-ccbin", "-Xcompiler")):
            return None  # which brings in what is not looked at here
        else:
            words.append(word)
    host = shutil.which("g++")
    if host is None or any(os.environ.get(name) for name in _BRINGS_IN_MORE):
        return None
    environment = [os.environ.get(name) for name in ("LIBRARY_PATH", "CUDA_HOME")]
    headers = [contents(str(folder)) for folder in _folders(toolkit, "include")]
    libraries = [installed(str(toolkit / name)) for name in ("bin", "nvvm")]
    libraries += [installed(str(folder)) for folder in _folders(toolkit, "lib64")]
    libraries += [
        installed(place) for place in os.environ.get("LIBRARY_PATH", "").split(":") if place
    ]
    system = [version(host), installed("/usr/include"), platform.libc_ver()]
    return key_of(
        "nvcc", version(command[0]), words, inputs, environment, headers, libraries, system
    )


#: With these set, a call may read what is not looked at here.
_BRINGS_IN_MORE = (
    *("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"),
)


def _folders(toolkit, name):
    return sorted(
        {path.resolve() for path in [toolkit / name, *toolkit.glob(f"targets/*/{name[:3]}*")]}
    )


# ---- compilers that the package calls ----


def _run_of_one_file(command, **options):
    """Do what `subprocess.run` does; ptxas and nvdisasm, which read one file alone, once a content."""
    words = [str(word) for word in command]
    tool = Path(words[0]).name
    if tool not in ("ptxas", "nvdisasm") or not _in_use or options.get("input") is not None:
        return _real_run(command, **options)
    target = Path(words[words.index("-o") + 1]) if "-o" in words else None
    sources = [word for word in words[1:] if Path(word).is_file() and Path(word) != target]
    if len(sources) != 1 or not options.get("capture_output"):
        return _real_run(command, **options)
    places = {str(target): "<target>", sources[0]: "<source>"}
    key = key_of(
        tool,
        version(words[0]),
        [places.get(word, word) for word in words[1:]],
        Path(sources[0]).name,
        Path(sources[0]).read_bytes(),
        sorted((name, repr(value)) for name, value in options.items() if name != "timeout"),
    )
    parts = stored(key)
    if parts is not None:
        if target is not None:
            target.write_bytes(parts[2])
        out, err = (json.loads(part) for part in parts[:2])
        return subprocess.CompletedProcess(command, 0, out, err)
    done = _real_run(command, **options)
    if done.returncode == 0 and isinstance(done.stdout, str):
        made = b"" if target is None else target.read_bytes()
        store(key, [json.dumps(done.stdout).encode(), json.dumps(done.stderr).encode(), made])
    return done


def _nvrtc(compile_):
    """Return what compiles with NVRTC as `compile_` does, once a content."""

    @functools.wraps(compile_)
    def compiled(library, text, file, arch, options):
        key = nvrtc_key(library, text, file, arch, options) if _in_use else None

        def make():
            ptx, cubin = compile_(library, text, file, arch, options)
            return [ptx.encode("utf-8", "surrogatepass"), cubin]

        ptx, cubin = kept(key, make)
        return ptx.decode("utf-8", "surrogatepass"), cubin

    return compiled


def nvrtc_key(library, text, file, arch, options):
    """Return the key of a call of NVRTC, or None where not all that it depends on can be known."""
    from warpstack.cuda import toolchain

    if any(
        option.startswith(("-I", "--include", "-include", "--pre-include")) for option in options
    ):
        return None
    data = text.encode("utf-8", "surrogatepass")
    named = not file.startswith("<")
    beside = headers_beside(data, [Path(file).resolve().parent] if named else [])
    if beside is None:
        return None
    of_cuda = toolchain._include_folders() if b"include" in data else []
    path = Path(library._name)
    if not path.is_absolute():
        return None
    return key_of(
        *("nvrtc", _library(path.resolve().parent), data, Path(file).name if named else ""),
        *(arch, list(options), beside, [contents(place) for place in of_cuda]),
        sorted(toolchain.HEADERS.items()),
    )


@functools.cache
def _library(place):
    """Return names and digests of the files that are NVRTC."""
    return [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(place.glob("libnvrtc*.so*"))
    ]


def install():
    """Have the package's calls of ptxas, nvdisasm and NVRTC go through the cache."""
    from warpstack.cuda import disassembly, toolchain

    cached = types.SimpleNamespace(
        **{name: getattr(subprocess, name) for name in subprocess.__all__}
    )
    cached.run = _run_of_one_file
    disassembly.subprocess = toolchain.subprocess = cached
    toolchain._compile_with_nvrtc = _nvrtc(toolchain._compile_with_nvrtc)
