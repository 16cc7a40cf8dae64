"""What a program is linked with is said before it starts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cuda.libraries import check_libraries

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="programs are traced on Linux"
)


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """Return a function that makes a program that calls functions of libraries of these names."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("linked")

    def build(name, calls, *options, users=()):
        """`calls`: files of libraries and the function called in each; None: it is only linked."""
        texts, words = [], []
        for file, function in calls.items():
            source = folder / f"{file}.c"
            source.write_text(f"void {function or 'unused'}(void) {{}}\n")
            library = folder / file
            if not library.exists():
                subprocess.run(
                    [
                        compiler,
                        "-shared",
                        "-fPIC",
                        f"-Wl,-soname,{file}",
                        *users,
                        "-o",
                        library,
                        source,
                    ],
                    check=True,
                )
            words.append(library)
            if function:
                texts.append(function)
        body = "".join(f"void {each}(void);" for each in texts)
        body += f"int main(void) {{ {''.join(f'{each}();' for each in texts)} return 0; }}\n"
        source = folder / f"{name}.c"
        source.write_text(body)
        program = folder / name
        subprocess.run(
            [compiler, "-o", program, source, *options, "-Wl,--no-as-needed", *words,
             f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{folder}"],
            check=True,
        )  # fmt: skip
        return str(program)

    return build


def check(program, tmp_path):
    check_libraries(program, tmp_path)


def test_all_that_is_called_is_named(link, tmp_path):
    program = link("both", {"libcudnn.so.9": "cudnnCreate", "libcublasLt.so.12": "cublasLtCreate"})
    with pytest.raises(ws.InputError) as error:
        check(program, tmp_path)
    text = str(error.value)
    assert "both: the program needs cuDNN (libcudnn.so.9) and cuBLASLt (libcublasLt.so.12)" in text
    assert "no stand-in" in text


def test_the_command_refuses_before_the_program_starts(link, tmp_path, capfd):
    program = link("refused", {"libcutensor.so.2": "cutensorCreate"})
    with pytest.raises(ws.InputError, match=r"cuTENSOR \(libcutensor.so.2\)"):
        ws.cuda.host.trace_program([program], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert capfd.readouterr() == ("", "")


def test_a_stand_in_is_enough(link, tmp_path):
    program = link("blas", {"libcublas.so.12": "cublasCreate_v2"})
    with pytest.raises(ws.InputError, match=r"cuBLAS \(libcublas.so.12\)"):
        check(program, tmp_path)
    (tmp_path / "libcublas.so.12").touch()
    check(program, tmp_path)


def test_products_of_cublaslt(link, tmp_path):
    (tmp_path / "libcublasLt.so.12").touch()
    check(link("set-up", {"libcublasLt.so.12": "cublasLtCreate"}), tmp_path)
    (tmp_path / "libcublasLt.so.11").touch()
    program = link("product", {"libcublasLt.so.11": "cublasLtMatmul"})
    with pytest.warns(
        ws.errors.TraceWarning, match="cuBLASLt, of which only handles are supported"
    ):
        check(program, tmp_path)


def test_what_is_linked_but_not_called_may_stay(link, tmp_path):
    check(link("idle", {"libcurand.so.10": None}), tmp_path)


def test_a_library_of_the_program_that_calls(link, tmp_path):
    link("other", {"libcutensor.so.2": "cutensorCreate"})
    folder = Path(link("other2", {"libcutensor.so.2": "cutensorCreate"})).parent
    mine = folder / "libmine.c"
    mine.write_text("void cutensorCreate(void); void mine(void) { cutensorCreate(); }\n")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libmine.so", "-o", folder / "libmine.so", mine,
         folder / "libcutensor.so.2"],
        check=True,
    )  # fmt: skip
    program = link("user", {"libmine.so": "mine"})
    with pytest.raises(ws.InputError, match=r"cuTENSOR \(libcutensor.so.2 for libmine.so\)"):
        check(program, tmp_path)


def test_the_driver_with_a_runtime_that_is_not_called(link, tmp_path):
    """Programs that call the driver contain the runtime all the same when nvcc links them."""
    source = with_section(tmp_path, ".nv_fatbin")
    check(link("driver", {"libcuda.so.1": "cuInit"}, source), tmp_path)


def with_section(folder, name):
    """Return a source that puts device code of a kind into a program."""
    source = folder / f"{name.strip('.')}.s"
    text = f'.section {name},"a"\n.long 0\n.section .note.GNU-stack,"",@progbits\n'
    source.write_text(text)
    return str(source)


@pytest.mark.parametrize("section", [".nv_fatbin", "__nv_relfatbin"])
def test_a_runtime_within_the_program(section, link, tmp_path):
    source = with_section(tmp_path, section)
    with pytest.raises(ws.InputError, match=r"the CUDA runtime is linked into.*-cudart shared"):
        check(link("static", {}, source), tmp_path)
    check(link("shared", {"libcudart.so.12": "cudaMalloc"}, source), tmp_path)


def test_what_is_no_program_or_damaged(link, tmp_path):
    check("no-such-program", tmp_path)
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    check(str(script), tmp_path)
    whole = Path(link("whole", {"libcudnn.so.9": "cudnnCreate"})).read_bytes()
    damaged = tmp_path / "damaged"
    for length in (0, 5, 40, 64, 300, len(whole) // 2, len(whole) - 100):
        damaged.write_bytes(whole[:length])
        damaged.chmod(0o755)
        check(str(damaged), tmp_path)
    for place in range(16, 64):
        data = bytearray(whole)
        data[place] ^= 0xFF
        damaged.write_bytes(data)
        try:
            check(str(damaged), tmp_path)
        except ws.InputError as error:
            assert "cuDNN" in str(error)  # noqa: PT017
