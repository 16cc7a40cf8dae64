"""Natural mistakes of a newcomer: each is one line that names the place and the remedy."""

import pytest

import warpstack as ws
from warpstack.cli import main

BASED = "based_on: pascal-mdm\n"
DESIGN = "kernels: {small: {trace: small}}\ngpu: pascal-mdm\n"
FILES = {
    "field.yaml": BASED + "num_sm: 3\n",
    "on.yaml": "base: pascal-mdm\nnum_sms: 3\n",
    "word.yaml": BASED + "num_sms: many\n",
    "list.yaml": BASED + "num_sms: [1, 2]\n",
    "minus.yaml": BASED + "num_sms: -4\n",
    "choice.yaml": BASED + "scheduler: fifo\n",
    "twice.yaml": BASED + "num_sms: 3\nnum_sms: 4\n",
    "tab.yaml": BASED + "\tnum_sms: 3\n",
    "colon.yaml": BASED + "num_sms 4\n",
    "bracket.yaml": "a: [1\n",
    "base.yaml": "based_on: pascal-mdn\n",
    "few.yaml": "num_sms: 28\nclock_ghz: 1\n",
    "empty.yaml": "",
    "sequence.yaml": "- num_sms: 3\n",
    "axis.yaml": DESIGN + "axes: {num_sm: [1, 2]}\n",
    "scalar.yaml": DESIGN + "axes: {num_sms: two}\n",
    "model.yaml": DESIGN + "axes: {num_sms: [1]}\nmodels: [mdn]\n",
    "key.yaml": DESIGN.replace("kernels", "kernel") + "axes: {num_sms: [1]}\n",
    "path.yaml": DESIGN.replace("trace: small", "trace: lost") + "axes: {num_sms: [1]}\n",
    "r.csv": "kernel,cycles\n1,x\n",
    "notes.txt": "hello\n",
    "program": "\x7fELF",
    "kernel.cu": "__global__ void scale(float *x, int n) {}\n// int main() {}\n",
    "double.cu": "int main() {}\n",
}
#: What is typed, and what the one line must say.
MISTAKES = {
    # the command and its options
    "": ["the following arguments are required: COMMAND"],
    "predit small": ["did you mean predict?"],
    "predict small --modles mdm": ["did you mean --models?", "warpstack predict --help"],
    "predict small --gpu": ["--gpu: expected one argument"],
    "predict": ["nothing to work on; give a trace, a CUDA source (kernel.cu), --workload NAME or"],
    "predict small --sampling half": ["'half' is neither a share such as 0.25 nor auto"],
    "predict small --sample-launches often": [
        "often: is neither an error such as 0.05 nor a trace"
    ],
    "predict --sample-launches lost": ["lost: no such file or folder"],
    "predict small --sample-launches 1.5": [
        "sample_launches = 1.5 is not True, False or a relative"
    ],
    "predict small --sample-launches --simulate": ["leave one of them out"],
    "predict --workload bfs --workload spmv": ["--workload: is given twice; give one"],
    "predict small --set num_sms=3 --set num_sms=4": ["num_sms is already set to 3; give one"],
    "predict small --set l2_size_kib=2MB": ["'2MB' is not a number; the range is", "KiB"],
    "predict small -O acces_order=greedy": ["no option 'acces_order'; did you mean access_order?"],
    "caches small -O selection=max": ["no option 'selection'", "there are access_order, flush_l2"],
    "predict small -O flush_l2": ["-O flush_l2: expected option=value"],
    "predict small -O flush_l2=maybe": ["-O flush_l2=maybe: flush_l2: expected true or false, got"],
    "predict small -O misses=all": ["misses = 'all' is not one of per_pc, representative"],
    "predict small -O merge_threshold=x": ["merge_threshold: expected a number, got 'x'"],
    "predict small -O merge_threshold=-1": ["merge_threshold = -1"],
    "predict small -O sample_sms=half": ["'half' is neither a share such as 0.25 nor auto"],
    "predict small -O sample_launches=often": ["expected a number, true or false, got 'often'"],
    "predict small -O misses=per_pc -O misses=per_pc": [
        "misses is already set to per_pc; give one"
    ],
    "predict small --flush-l2 -O flush_l2=false": [
        "--flush-l2 is given, too; leave one of them out"
    ],
    "report small -o absent/r.html": ["absent/r.html: there is no folder", "make it first"],
    "predict small --sort cycles": ["invalid choice: 'cycles' (choose from"],
    "predict small --top 0": ["--top 0: expected a number above 0"],
    "caches small --access-order greed": ["did you mean greedy?"],
    "dvfs small --clocks fast": ["--clocks: invalid float value: 'fast'"],
    "predict small --json --csv": ["--csv: not allowed with argument --json"],
    # names
    "predict small -m mdn": ["there is no model 'mdn'; did you mean mdm?"],
    "predict small -m MDM": ["did you mean mdm?"],
    "predict small --gpu NVIDIA-A100-40GB": [
        "there is no GPU 'NVIDIA-A100-40GB'; did you mean a100? warpstack gpus"
    ],
    "predict small --gpu a100 --set clock_ghz=1410": ["clocks are in GHz; 1410 MHz are 1.41"],
    "dvfs small --clocks 900": ["clocks are in GHz; 900 MHz are 0.9"],
    "predict kernel.cu small.txt 2": [
        "small.txt is neither a trace nor a source; arguments of a program stand after --: "
        "kernel.cu -- small.txt 2"
    ],
    "predict small --gpu h100": ["there is no GPU 'h100'; did you mean h100-pcie, h100-sxm"],
    "predict small --gpu a100 --gpu a100": ["--gpu a100 is given twice"],
    "simulate small --gpu a100 --gpu a40": ["--gpu is given 2 times", "predict and compare take"],
    "predict --workload bsf": ["there is no workload 'bsf'; did you mean bfs?"],
    "predict --workload bfs --size big": ["there is no size 'big'; there are small, paper"],
    "predict small --size paper": ["--size is of a workload; give --workload NAME, too"],
    "figure mdm-fig55": ["did you mean mdm-fig5?"],
    "predict small --set num_sm=3": ["there is no field 'num_sm'; did you mean num_sms?"],
    "predict small --set num_sms": ["--set num_sms: expected field=value"],
    "predict small --set num_sms=0": ["num_sms = 0 is less than 1; the range is 1 to 65536"],
    # paths
    "predict lost": ["lost: no such file or folder"],
    "predict small --kernels 7": ["small has no kernel 7; its kernels are 1, 2"],
    "predict notes.txt": ["notes.txt: not a trace that warpstack knows; expected a kernelslist.g"],
    "predict small --gpu on.yaml": ["on.yaml:1: there is no field 'base'; did you mean based_on?"],
    "predict -- kernel.cu": ["it is a source: build it with nvcc -cudart shared"],
    "predict field.yaml": ["is not a trace; a description of a GPU goes to --gpu"],
    "predict program": ["is a program, not a trace; run it: -- ./program ARGUMENT..."],
    "predict small --workload bfs": ["the trace small and --workload bfs are given; leave one"],
    "simulate small small": ["2 traces are given", "predict takes several"],
    "convert small small": ["small: exists already; choose another name or"],
    "predict -- ./absent": ["./absent: cannot be started: No such file or directory"],
    "predict -- /bin/true": ["does not load libcudart", "nvcc -cudart shared"],
    "predict small --": ["after -- there is no program"],
    # sources and launches
    "predict absent.cu": ["absent.cu: No such file or directory"],
    "predict kernel.cu": [
        "kernel.cu has no main; its kernels are scale; launch one: --launch "
        "'scale<<<4096, 256>>>(float[1048576], 1048576)'"
    ],
    "predict small --launch a<<<1,1>>>()": ["--launch: there is no source to compile"],
    "predict kernel.cu --launch scale<<<1,1>>>() --launch scale<<<2>>>()": [
        "--launch scale: <<<2>>> has 1 parts; expected the grid, the block"
    ],
    "compare kernel.cu --launch scale<<<1,1>>>() --launch scale<<<1,1>>>()": [
        "--launch scale<<<1,1>>>(): is given twice; give another one to compare it with"
    ],
    "trace kernel.cu -o traced --launch scale<<<1,1>>>(lost.npy,1)": [
        "--launch scale: argument 1: lost.npy: No such file or directory"
    ],
    "predict kernel.cu --launch scale<int><<<1,1>>>()": ["template arguments are not read"],
    "predict kernel.cu --launch scale(1)": ["expected a launch such as 'add<<<4096, 256>>>("],
    "predict kernel.cu --launch scale<<<4>>>(1)": ["expected the grid, the block"],
    "predict kernel.cu --launch scale<<<4,0>>>(1)": ["block = '0': expected a whole number of at"],
    "predict kernel.cu --launch scale<<<4,1>>>(float*,1)": ["give the array that it points to"],
    "predict kernel.cu --launch scale<<<4,1>>>(flt[8],1)": ["did you mean float?"],
    # descriptions of GPUs
    "predict small --gpu absent.yaml": ["absent.yaml: cannot read"],
    "predict small --gpu field.yaml": ["field.yaml:2: there is no field 'num_sm'; did you mean"],
    "predict small --gpu word.yaml": ["word.yaml:2: ", "num_sms = 'many' is not a number"],
    "predict small --gpu list.yaml": ["list.yaml:2: ", "is not a number"],
    "predict small --gpu minus.yaml": ["minus.yaml:2: ", "the range is 1 to 65536"],
    "predict small --gpu choice.yaml": ["choice.yaml:2: ", "is not one of gto, lrr"],
    "predict small --gpu twice.yaml": ["twice.yaml:3: not valid YAML: num_sms is given twice"],
    "predict small --gpu tab.yaml": ["tab.yaml:2: not valid YAML: found character '\\t'"],
    "predict small --gpu colon.yaml": ["colon.yaml:3: not valid YAML: could not find expected ':'"],
    "predict small --gpu bracket.yaml": ["bracket.yaml:2: not valid YAML"],
    "predict small --gpu base.yaml": ["base.yaml:1: based_on: ", "did you mean pascal-mdm?"],
    "predict small --gpu few.yaml": [
        "missing fields: issue_width, ",
        "add them or a line based_on:",
    ],
    "predict small --gpu empty.yaml": ["expected lines `field: value`"],
    "predict small --gpu sequence.yaml": ["expected lines `field: value`"],
    # designs of sweeps, tables
    "sweep axis.yaml": ["axis.yaml:3: axes: there is no field 'num_sm'; did you mean num_sms?"],
    "sweep scalar.yaml": ["scalar.yaml:3: axes: num_sms = 'two' is not a list of values, [1, 2"],
    "sweep model.yaml": ["model.yaml:4: models: there is no model 'mdn'; did you mean mdm?"],
    "sweep key.yaml": ["key.yaml:1: there is no key 'kernel'; did you mean kernels?"],
    "sweep path.yaml": ["path.yaml: kernels: small: lost: no such file or folder"],
    "validate r.csv": ["the following arguments are required: reference"],
    "compare small": [
        "give two traces or sources, or one of them with two --gpu, two --models, --set FIELD=VALUE"
    ],
    "compare a100 h100-pcie --gpu a40": ["compared by their fields, without --gpu"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    kernels = [ws.patterns.strided(gs, blocks=2, launch_id=i) for i, gs in ((1, 1), (2, 8))]
    ws.save(ws.App(kernels, "small"), folder / "small")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("typed", MISTAKES)
def test_one_line_with_the_place_and_the_remedy(folder, monkeypatch, capsys, typed):
    monkeypatch.chdir(folder)
    try:
        status = main(typed.split())
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("warpstack: error: ")
    assert err.count("\n") == 1
    for text in MISTAKES[typed]:
        assert text in err
