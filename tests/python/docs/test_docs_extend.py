"""The worked examples of the how-to pages do what the pages show."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warpstack as ws
from warpstack import _core, io, models

ROOT = Path(__file__).resolve().parents[3]
HOW_TO = ROOT / "docs" / "how-to"


@pytest.fixture
def clean():
    yield
    models.prediction._registered.clear()
    io._registered.clear()


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("add-a-model", 14),
        ("add-a-cache-policy", 10),
        ("add-a-reader", 12),
        ("tracing-on-a-gpu", 4),
    ],
)
def test_page(page, least, tmp_path):
    kernels = [ws.patterns.strided(gs=2, blocks=2, iterations=2, launch_id=k) for k in (1, 2, 3, 4)]
    ws.save(ws.App(kernels, name="traced"), tmp_path / "traces", format="accelsim")
    result = doctest.testfile(
        str(HOW_TO / f"{page}.md"),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.ELLIPSIS,
        globs={"folder": tmp_path, "traces": tmp_path / "traces"},
    )
    assert result.attempted >= least
    assert result.failed == 0


@pytest.mark.parametrize("page", ["add-a-model", "add-a-cache-policy", "add-a-reader"])
def test_places_exist(page):
    places = re.findall(
        r"`((?:cpp|python|tests|docs)/[\w./]+)`", (HOW_TO / f"{page}.md").read_text()
    )
    assert len(places) >= 3
    for place in places:
        assert (ROOT / place).exists(), place
    assert "constexpr Model models[]" in (ROOT / "cpp/model/model.cpp").read_text()
    assert "names_of(Replacement)" in (ROOT / "cpp/gpu/choices.h").read_text()


def issue_and_stalls(intervals, wave, gpu):
    """`naive_interval` again, with its own way to write the stack."""
    issued = intervals["instructions"].sum() / gpu.issue_width
    cycles = max(issued + intervals["stall_cycles"].sum(), wave.warps * issued)
    return {"base": wave.warps * issued, "dep": cycles - wave.warps * issued}


@pytest.mark.usefixtures("clean")
def test_registered_model_equals_the_core():
    """Waves, IPC and CPI are put together as for the core's model with the same cycles."""
    ws.models.register("mine", issue_and_stalls, fields=())
    app = ws.App([ws.patterns.strided(gs=gs, iterations=3, blocks=61) for gs in (1, 8)])
    gpu = ws.gpu("pascal-mdm").replace(num_sms=5)
    table = ws.predict(app, gpu, ["naive_interval", "mine"])
    core, own = (table[table["model"] == name] for name in ("naive_interval", "mine"))
    assert own["cycles"].iloc[0] > 0
    for column in ("instructions", "cycles", "ipc", "cpi", "cpi_base"):
        np.testing.assert_allclose(own[column], core[column], rtol=1e-12)
    points = ws.sweep(app, gpu, {"num_sms": [5, 7]}, ["naive_interval", "mine"], cache=False)
    core, own = (points[points["model"] == name] for name in ("naive_interval", "mine"))
    np.testing.assert_allclose(own["cycles"], core["cycles"], rtol=1e-12)
    assert "mine" in ws.models.names()
    assert set(ws.predict(app, gpu, "all")["model"]) == set(ws.models.names())
    assert "l1_mshrs" not in ws.models.fields_used(["mine"])
    ws.models.unregister("mine")
    with pytest.raises(ws.InputError, match="there is no model 'mine'"):
        ws.predict(app, gpu, ["mine"])


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mdm", issue_and_stalls), "there is a model mdm already"),
        (("all", issue_and_stalls), "is not a name for a model"),
        (("two words", issue_and_stalls), "is not a name for a model"),
        (("mine", 3), "cycles: expected a function, got 3"),
    ],
)
def test_wrong_models(arguments, message):
    with pytest.raises(ws.InputError, match=message):
        ws.models.register(*arguments)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ({"memory": 1.0}, "'memory' is not a component"),
        ({"base": float("nan")}, "base = nan cycles"),
        ({"base": -1.0}, "base = -1.0 cycles"),
        ({}, "takes no cycles"),
    ],
)
def test_wrong_stacks(stack, message):
    ws.models.register("wrong", lambda intervals, wave, gpu: stack)
    with pytest.raises(ws.InputError, match=message):
        ws.predict(ws.patterns.stream(blocks=2), "pascal-mdm", ["wrong"])


@pytest.mark.usefixtures("clean")
def test_wrong_registrations():
    with pytest.raises(ws.InputError, match="there is no field 'l1_mshr'; did you mean l1_mshrs"):
        ws.models.register("mine", issue_and_stalls, fields=["l1_mshr"])
    with pytest.raises(ws.InputError, match="no model 'mdm' was registered"):
        ws.models.unregister("mdm")
    with pytest.raises(ws.InputError, match="there is a format parquet already"):
        ws.io.register("parquet", bool, ws.load)
    with pytest.raises(ws.InputError, match="read: expected a function, got 1"):
        ws.io.register("mine", bool, 1)
    with pytest.raises(ws.InputError, match="no format 'parquet' was registered"):
        ws.io.unregister("parquet")


EXTEND = (HOW_TO / "extend.md").read_text()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the sources to which every diff of the page has been applied."""
    root = tmp_path_factory.mktemp("copy")
    package = Path(ws.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "data", "lib")
    shutil.copytree(package, root / "python/warpstack", ignore=ignored)
    extension = Path(_core.__file__)
    if not (root / "python/warpstack" / extension.name).exists():
        shutil.copy(extension, root / "python/warpstack")
    (root / "python/warpstack/data").symlink_to(package / "data")
    shutil.copytree(ROOT / "cpp", root / "cpp")
    diffs = re.findall(r"```diff\n(.*?)```", EXTEND, re.DOTALL)
    assert len(diffs) == 8
    for diff in diffs:
        apply(diff, root)
    return root


def apply(diff, root):
    """Apply a diff without line numbers: what a hunk takes away must be there once."""
    for file in re.split(r"^--- .*\n\+\+\+ b/", diff, flags=re.MULTILINE)[1:]:
        name, *hunks = re.split(r"^@@\n", file, flags=re.MULTILINE)
        path = root / name.strip()
        text = path.read_text() if path.exists() else ""
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            assert text.count(before) == 1 or not text, (name, before)
            text = text.replace(before, after) if text else after
        path.write_text(text)


def run_in(copy, code):
    environment = {**os.environ, "PYTHONPATH": str(copy / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_extended_python(copy, tmp_path):
    """The registered model is swept, and the reader reads."""
    (tmp_path / "log.accesslog").write_text("4096\n8192\n")
    (tmp_path / "bad.accesslog").write_text("4096\nhere\n")
    (code,) = re.findall(r"```python\n(.*?)```", EXTEND, re.DOTALL)
    result = run_in(
        copy,
        f"""{code}
assert {str(copy)!r} in ws.__file__
narrow, wide = table["cpi"]
print(narrow / wide)
print(ws.load({str(tmp_path / "log.accesslog")!r}))
try:
    ws.load({str(tmp_path / "bad.accesslog")!r})
except ws.InputError as error:
    print(error)
""",
    )
    assert result.returncode == 0, result.stderr
    ratio, read, refused = result.stdout.splitlines()
    assert float(ratio) == pytest.approx((1 + 1) / (1 + 0.5))
    assert read == "<App log: 1 kernels, 2 warp instructions>"
    assert refused.endswith("bad.accesslog:2: expected an address, got 'here'")


COMPILER = shutil.which(os.environ.get("CXX", "c++"))


def compiler_in(copy):
    return [COMPILER, "-std=c++20", "-I", str(copy / "cpp")]


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on the path (or in CXX)")
def test_extended_gpu(copy, tmp_path):
    """The fields have values and ranges, the caches and the models get theirs, and a model names its own."""
    (tmp_path / "main.cpp").write_text("""
#include <cstdio>
#include <string>
#include "gpu/field.h"
#include "memory/order/memory_config.h"
#include "model/model.h"
using namespace warpstack;
int main() {
  gpu::Gpu gpu;
  set(gpu, gpu::FieldName::l2_fill_cycles, 3.0);
  set(gpu, gpu::FieldName::l1_prefetched_lines, 2u);
  set(gpu, gpu::FieldName::noc_hop_cycles, 5.0);
  for (const gpu::Field& field : gpu::fields()) {
    for (const char* name : {"l2_fill_cycles", "l1_prefetched_lines", "noc_hop_cycles"}) {
      if (field.name == name) std::printf("%s: %s\\n", name, range_text(field).c_str());
    }
  }
  std::printf("%g %u %g\\n", gpu.l2_fill_cycles,
              memory::MemoryConfig::of(gpu).l1_prefetched_lines,
              model::ModelParameters::of(gpu).noc_hop_cycles);
  for (const auto name : fields_of(model::find_model("closed_network"))) {
    if (name == gpu::FieldName::noc_hop_cycles) std::printf("read\\n");
  }
}
""")
    sources = [
        *sorted((copy / "cpp/gpu").glob("*.cpp")),
        *sorted((copy / "cpp/model").glob("*.cpp")),
        copy / "cpp/memory/order/memory_config.cpp",
    ]
    objects = []
    for source in [*sources, tmp_path / "main.cpp"]:
        objects.append(str(tmp_path / f"{source.parent.name}-{source.stem}.o"))
        sections = ["-ffunction-sections", "-fdata-sections"]
        command = [*compiler_in(copy), *sections, "-c", str(source), "-o", objects[-1]]
        subprocess.run(command, check=True)
    program = str(tmp_path / "program")
    # What these files call of others is not called here, and need not be there.
    ignored = ["-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all"]
    subprocess.run([COMPILER, "-pthread", *ignored, *objects, "-o", program], check=True)
    result = subprocess.run([program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == [
        "l1_prefetched_lines: 0 to 16",
        "l2_fill_cycles: 0 to 1000000 cycles",
        "noc_hop_cycles: 0 to 1000000 cycles",
        "3 2 5",
        "read",
    ]


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on the path (or in CXX)")
def test_extended_core(copy, tmp_path):
    """The model's row compiles; the policy hits as often as the page on policies counts by hand."""
    compile_ = compiler_in(copy)
    subprocess.run([*compile_, "-fsyntax-only", str(copy / "cpp/model/model.cpp")], check=True)
    (tmp_path / "main.cpp").write_text("""
#include <cstdio>
#include <string>
#include "memory/cache/set_store.h"
using namespace warpstack;
using namespace warpstack::memory;
int main() {
  for (const Replacement policy : {Replacement::lru, Replacement::mru}) {
    SetStore sets(1, 2, policy);
    int hits = 0;
    for (int i = 0; i < 12; ++i) {
      hits += sets.find(0, i % 3) >= 0;
      sets.access(0, i % 3, [](std::uint32_t) {});
    }
    std::printf("%s %d\\n", std::string(name_of(policy)).c_str(), hits);
  }
}
""")
    cache = ("set_store.cpp", "replacement.cpp", "own_policy.cpp")
    names = [*(f"memory/cache/{name}" for name in cache), "gpu/own_policies.cpp"]
    sources = [str(copy / "cpp" / name) for name in names]
    program = str(tmp_path / "program")
    subprocess.run([*compile_, str(tmp_path / "main.cpp"), *sources, "-o", program], check=True)
    result = subprocess.run([program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["lru", "0", "mru", "5"]


def libraries_of(*names):
    """Return the libraries of some parts of the core, of the latest build without sanitizers."""
    builds = []
    for cache in ROOT.glob("build/*/CMakeCache.txt"):
        found = [cache.parent / f"cpp/{name}/libwarpstack_{name}.a" for name in names]
        if "\nWARPSTACK_SANITIZE:STRING=\n" in cache.read_text() and all(map(Path.exists, found)):
            builds.append((found[0].stat().st_mtime, [str(path) for path in found]))
    return max(builds)[1] if builds else None


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on the path (or in CXX)")
def test_extended_instructions(copy, tmp_path):
    """The instruction runs: the library with what the page changes is compiled, in one piece."""
    libraries = libraries_of("simt", "trace")
    if libraries is None:
        pytest.skip("the core has not been built here: tools/test")
    (tmp_path / "main.cpp").write_text("""
#include <cstdio>
#include <memory>
#include "ptx/loaded_module.h"
using namespace warpstack;
int main() {
  simt::Device device(1 << 20);
  ptx::LoadedModule module(std::make_shared<const ptx::Module>(ptx::parse(R"(
.version 8.5
.target sm_80
.address_size 64
.global .u32 out[4];
.entry k() {
.reg .b32 %r<6>;
mov.b32 %r1, -3;
mov.b32 %r2, 4;
vabsdiff.s32.s32.s32 %r3, %r1, %r2;
st.global.u32 [out], %r3;
vabsdiff.u32.u32.u32 %r3, %r1, %r2;
st.global.u32 [out + 4], %r3;
vabsdiff.s32.s32.s32.add %r3, %r2, %r1, 1000;
st.global.u32 [out + 8], %r3;
ret;
}
.entry mixed() {
.reg .b32 %r<2>;
vabsdiff.s32.s32.u32 %r0, %r1, %r1;
ret;
}
.entry minimum() {
.reg .b32 %r<2>;
vabsdiff.s32.s32.s32.min %r0, %r1, %r1, %r1;
ret;
}
)", "k.ptx")), device);
  simt::LaunchOptions options;
  options.trace = false;
  ptx::launch(module, "k", {}, options);
  std::uint32_t out[3];
  device.memory.read(module.symbol("out").address, out, sizeof out);
  std::printf("%u %u %u\\n", out[0], out[1], out[2]);
  for (const char* kernel : {"mixed", "minimum"}) {
    try {
      module.program(kernel);
    } catch (const InputError& error) {
      std::printf("%s\\n", error.what());
    }
  }
}
""")
    sources = sorted((copy / "cpp/ptx").rglob("*.cpp"))
    (tmp_path / "ptx.cpp").write_text("".join(f'#include "{path}"\n' for path in sources))
    files = [str(tmp_path / name) for name in ("main.cpp", "ptx.cpp")]
    program = str(tmp_path / "program")
    command = [*compiler_in(copy), "-pthread", *files, *libraries]
    subprocess.run([*command, "-o", program], check=True)
    result = subprocess.run([program], capture_output=True, text=True, check=True)
    computed, mixed, minimum = result.stdout.splitlines()
    assert computed == f"7 {2**32 - 7} 1007"  # |-3 - 4|; 2^32 - 3 - 4; 7 + 1000
    assert mixed.endswith("cannot simulate vabsdiff.s32.s32.u32: its sources have two types")
    assert minimum.endswith("the modifier .min is not supported here")
