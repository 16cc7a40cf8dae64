"""The figures of the papers: what there is, that each computes, and the arithmetic of its claims."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import warpstack as ws
from effort import rounds
from warpstack import figures
from warpstack.cli import main
from warpstack.figures import drawing, errors, report, stages, study
from warpstack.figures.base import PaperFigure
from warpstack.figures.cache import table4 as cache_table4
from warpstack.figures.drawing import new_figure
from warpstack.figures.gpumech import common as gpumech
from warpstack.figures.mdm import fig5 as mdm_fig5
from warpstack.figures.mdm import latency

REPOSITORY = Path(__file__).resolve().parents[3]
#: What must be there; MDM's Figure 10 needs a GPU.
WANTED = [
    *("mdm-table1", "mdm-table2"),
    *(f"mdm-fig{n}" for n in (3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15)),
    *("cal-fig1", "cal-fig3"),
    *(f"gpumech-fig{n}" for n in (4, 7, 11, 12, 13, 14, 15, 16)),
    "mwp-table2",
    *(f"mwp-fig{n}" for n in (14, 21, 22, 23, 25, 31)),
    *("cache-table4", "cache-table5", "cache-fig7", "cache-fig8", "cache-fig10"),
]
#: One of each class; small enough for every figure to take a second or two. Figures of certain
#: applications take theirs.
TINY = {
    "hotspot": {"width": 64, "height": 64},
    "k-means": {"points": 1024},
    "bfs": {"nodes": 2048},
    "b+tree": {"records": 2048, "queries": 60, "ranges": 60},
    "cfd": {"points": 512},
    "srad": {"width": 64, "height": 64},
}


class TinyStudy(figures.Study):
    def app(self, name):
        if name not in self._apps:
            self._apps[name] = ws.workloads.load(name, TINY[name])
        return self._apps[name]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures-cache")
    return TinyStudy(only=["hotspot", "k-means"], cache=folder)


def test_every_figure_of_the_issue_is_there():
    assert figures.names() == WANTED
    for name in WANTED:
        figure = figures.get(name)
        assert figure.name == name
        assert figure.reference
        assert re.search(r"(Figure|Table) (\w+)$", figure.paper), figure.paper
    with pytest.raises(ws.InputError, match="did you mean mdm-fig5"):
        figures.get("mdm-fig55")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in WANTED if n != "mdm-table2"])
def test_a_figure_computes_draws_and_judges(tiny, tmp_path, monkeypatch, name):
    # A thread of its own would trace a workload twice: the fixture has no locks.
    monkeypatch.setattr(tiny, "workers", 1)
    written = figures.write_report(figures.get(name), tiny, tmp_path)
    assert written.claims
    for claim in written.claims:
        assert claim.paper, claim
        assert claim.ours, claim
        assert isinstance(claim.holds, bool)
        assert "nan" not in claim.ours
    table = pd.read_csv(written.data)
    assert len(table)
    with Image.open(written.picture) as picture:
        assert picture.format == "PNG"
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10  # something is drawn
    assert written.picture.stat().st_size < 60_000


@pytest.mark.slow
def test_sizes_of_design_spaces_multiply_what_was_measured(tmp_path):
    one = figures.Study(only=["hotspot"], cache=tmp_path)
    table = figures.get("mdm-table2").compute(one).set_index("configurations")
    assert (table > 0).all(axis=None)
    assert table.loc[1000, "simulation_s"] == pytest.approx(1000 * table.loc[1, "simulation_s"])
    assert table.loc[1000, "mdm_recurrent_s"] == pytest.approx(
        1000 * table.loc[1, "mdm_recurrent_s"]
    )
    assert table["mdm_one_time_s"].std() == 0


@pytest.mark.slow
def test_stages_have_the_columns_that_they_declare():
    app = ws.App([ws.patterns.stream(blocks=1)])
    settings = {
        "performance": {"gpu": "pascal-mdm", "changes": {}, "models": ["mdm"]},
        "predictions": {"gpu": ws.gpu("pascal-mdm"), "models": ["mdm"]},
        "selections": {"gpu": "pascal-mdm", "changes": {}, "model": "mdm", "ways": ["max"]},
        "divergence": {},
        "frequencies": {
            **{"gpu": "pascal-mdm", "nominal_ghz": 1.4},
            **{"clocks_ghz": [1.0], "models": ["mdm"]},
        },
        "costs": {
            **{"gpu": "pascal-mdm", "points": [{"num_sms": 14}], "models": ["mdm"]},
            **{"workload": "hotspot", "size": "small"},
        },
        "caches": {"gpu": "pascal-mdm"},
        "ablations": {"gpu": "pascal-mdm"},
        "locality": {"gpu": "pascal-mdm", "distances": [8]},
    }
    assert settings.keys() == stages.COLUMNS.keys()
    for name, columns in stages.COLUMNS.items():
        table = getattr(stages, name)(app, **settings[name])
        assert set(columns) <= set(table), name
        texts = {column for column in columns if study._array(table[column]).dtype.kind == "U"}
        assert texts == set(columns) & set(stages.TEXTS), name


@pytest.mark.parametrize(
    "forge",
    [
        lambda arrays: {},
        lambda arrays: {f"x{name}": array for name, array in arrays.items()},
        lambda arrays: {name: array.astype(str) for name, array in arrays.items()},
        lambda arrays: {name: array[..., None] for name, array in arrays.items()},
        lambda arrays: {name: array[0] for name, array in arrays.items()},
        lambda arrays: {**arrays, "dpki": np.zeros(7)},
    ],
)
def test_forged_entries_of_figures_count_as_missing(tmp_path, forge):
    one = figures.Study(only=["hotspot"], cache=tmp_path)
    one._apps["hotspot"] = ws.App([ws.patterns.stream(blocks=1)])
    expected = one.run(stages.divergence, [{}])
    (path,) = tmp_path.glob("figure-*")
    key = path.stem.partition("-")[2]
    forged = forge(one.cache.get("figure", key))
    one.cache.put("figure", key, {name: np.asarray(array) for name, array in forged.items()})
    pd.testing.assert_frame_equal(one.run(stages.divergence, [{}]), expected)


def rows_of(values):
    """Rows of the stage `performance`: (setting, app, class, kernel, model, instructions, cycles)."""
    columns = ["setting", "app", "class", "name", "model", "instructions", "cycles"]
    table = pd.DataFrame(values, columns=columns)
    return table.assign(label=table["app"].str.upper())


def test_errors_by_hand():
    table = rows_of(
        [
            # Two launches of an application: simulated 300 instructions in 300 cycles, IPC 1.
            (0, "a", "MD", "k", "simulation", 100, 50),
            (0, "a", "MD", "l", "simulation", 200, 250),
            # Predicted in 150 cycles: IPC 2, error +100 %.
            (0, "a", "MD", "k", "mdm", 100, 100),
            (0, "a", "MD", "l", "mdm", 200, 50),
            # Simulated IPC 2, predicted 1: error -50 %.
            (0, "b", "NMD", "m", "simulation", 100, 50),
            (0, "b", "NMD", "m", "mdm", 100, 100),
        ]
    )
    by_app = errors.application_errors(table)
    assert by_app["error"].tolist() == pytest.approx([1.0, -0.5])
    assert errors.mean_error(by_app, "mdm", "MD") == pytest.approx(100)
    assert errors.mean_error(by_app, "mdm") == pytest.approx(75)  # (100 + 50) / 2
    # CPIs of the kernels: 1 against 0.5, 0.25 against 1.25, 1 against 0.5.
    by_kernel = errors.kernel_errors(table)
    assert by_kernel["error"].tolist() == pytest.approx([1.0, -0.8, 1.0])
    assert gpumech.share_below(by_kernel, "mdm", 90) == pytest.approx(100 / 3)
    rows, gaps = errors.per_application(by_app, ["mdm"])
    assert rows["mdm"].to_dict() == pytest.approx(
        {"A": 100, "B": 50, "NMD mean": 50, "MD mean": 100, "mean": 75}
    )
    assert gaps == [1, 2]


@pytest.mark.parametrize(
    ("mdm_error", "factor", "holds"), [(0.1, "20.00", True), (1.5, "1.33", False)]
)
def test_claims_of_figure_5_by_hand(mdm_error, factor, holds):
    """GPUMech errs by 200 % on the MD application, MDM by 10 %: a factor of 20."""
    md = {"gpumech": 2.0, "gpumech_plus": 1.0, "mdm_queue": 0.5, "mdm_mshr": 0.05}
    md |= {"mdm": mdm_error, "closed_network": 0.2}
    table = pd.DataFrame(
        [
            {"app": app, "label": app, "class": kind, "model": model, "error": error * scale}
            for app, kind, scale in (("a", "MD", 1), ("b", "NMD", 0.01))
            for model, error in md.items()
        ]
    )
    claims = mdm_fig5.figure.check(table)
    assert claims[0].ours.startswith(factor)
    assert claims[0].holds is holds
    assert claims[1].ours == "100.0 % against 200.0 %"
    assert claims[1].holds
    assert claims[2].holds is holds  # mdm_queue errs by 50 %
    assert not claims[3].holds  # mdm_mshr by 5 %
    # NMD: 2 % and 0.1 or 1.5 %.
    assert claims[4].holds


def test_claims_of_the_miss_latency_by_hand():
    parts = {"l2": 120.0, "dram": 40.0}
    table = pd.DataFrame(
        [
            {
                "class": "NMD",
                "label": "A",
                **parts,
                "l1": 0.0,
                "mshr": 4.0,
                "noc": 1.0,
                "queue": 1.0,
            },
            {
                "class": "MD",
                "label": "B",
                **parts,
                "l1": 90.0,
                "mshr": 30.0,
                "noc": 0.5,
                "queue": 1.0,
            },
        ]
    )
    claims = latency.check(table)
    # 4 of 166 cycles; 90 + 30; queues of 1.5 below 2; 281.5 above 166.
    assert [claim.holds for claim in claims] == [True, True, False, True]
    assert claims[0].ours == "2.4 %, 4 cycles"
    assert claims[1].ours == "120 cycles"


def test_errors_of_cache_metrics_by_hand(monkeypatch):
    """Rates differ by points, also from a reference of 0; counts differ relatively."""
    metrics = dict.fromkeys(cache_table4.PRINTED, 0.0)
    rows = [
        ("a", "simulation", 0.5),
        ("a", "warpstack", 0.6),  # + 10 points, + 20 %
        ("a", "ppt_gpu_mem", 0.25),  # - 25 points, - 50 %
        ("b", "simulation", 0.8),
        ("b", "warpstack", 0.8),  # exact
        ("b", "ppt_gpu_mem", 1.0),  # + 20 points, + 25 %
        ("c", "simulation", 0.0),  # a relative error would be infinite
        ("c", "warpstack", 0.3),
        ("c", "ppt_gpu_mem", 0.3),
    ]
    table = pd.DataFrame(
        [
            {"app": app, "label": app, "class": "MD", "kernel": 1, "name": "k", "source": source}
            | metrics
            | {"l2_hit_rate": rate, "dram_reads": rate}
            for app, source, rate in rows
        ]
    )
    monkeypatch.setattr(cache_table4.cache_paper, "by_kernel", lambda _: table)
    rows = cache_table4.figure.compute(None).set_index("metric")
    rate, count = rows.loc["l2_hit_rate"], rows.loc["dram_reads"]
    assert (rate["unit"], rate["applications"]) == ("points", 3)
    assert rate["warpstack_error"] == pytest.approx(40 / 3)
    assert rate["ppt_gpu_mem_error"] == pytest.approx(25)
    assert (count["unit"], count["applications"]) == ("%", 2)
    assert count["warpstack_error"] == pytest.approx(10)
    assert count["ppt_gpu_mem_error"] == pytest.approx(37.5)


def test_a_study_computes_once_and_keeps(tmp_path):
    calls = []

    def stage(app, *, factor):
        calls.append(factor)
        return pd.DataFrame({"name": ["x", "ü"], "value": [factor, np.nan], "flag": [True, False]})

    def run(size="small"):
        one = figures.Study(size, only=["hotspot"], cache=tmp_path)
        one._apps["hotspot"] = ws.App([ws.patterns.strided(gs=1, iterations=1, blocks=1)])
        return one.run(stage, [{"factor": 2.0}, {"factor": 3.0}])

    first, again = run(), run()
    assert sorted(calls) == [2.0, 3.0]
    pd.testing.assert_frame_equal(first, again)
    assert first["value"].tolist()[0::2] == [2.0, 3.0]
    assert first["flag"].tolist() == [True, False] * 2
    assert first["setting"].tolist() == [0, 0, 1, 1]
    run("paper")
    assert len(calls) == 4


def test_a_study_says_what_is_wrong():
    for arguments, message in (
        ({"size": "large"}, "size = 'large' is not one of small, paper"),
        ({"only": ["hotpot"]}, "did you mean hotspot"),
        ({"only": []}, "none given"),
        ({"workers": 0}, "workers = 0 is not at least 1"),
    ):
        with pytest.raises(ws.InputError, match=message):
            figures.Study(**arguments)
    assert set(study.ORDER) == set(ws.workloads.names())
    classes = [study.class_of(name) for name in study.ORDER]
    assert classes == sorted(classes, reverse=True)  # NMD before MD


def fake(holds):
    def draw(table):
        figure = new_figure(3, 2)
        figure.subplots().plot(table["x"])
        return figure

    return PaperFigure(
        name="a-fig1",
        title="A line",
        paper="A paper, Figure 1",
        reference="nothing",
        compute=lambda _: pd.DataFrame({"x": [1.0, 2.0]}),
        draw=draw,
        check=lambda _: [figures.Claim("it rises", "1", "2", holds)],
        needs_all=False,
    )


def test_the_index_says_what_holds_and_what_does_not(tmp_path):
    one = figures.Study(only=["hotspot"], cache=False)
    reports = [figures.write_report(fake(holds), one, tmp_path) for holds in (True, False)]
    text = figures.write_index(reports, one, tmp_path, {"Figure 9": "no GPU"}).read_text()
    assert "**1 of 2 claims hold.**" in text
    assert text.count("\n## A paper\n") == 1
    assert "A line (Figure 1). Agrees: 1 of 1 claims hold." in text
    assert "A line (Figure 1). Does not agree: 0 of 1 claims hold." in text
    assert text.count("- **Does not hold**: it rises. The paper: 1; here: 2.\n\n![a-fig1]") == 1
    claims = pd.read_csv(tmp_path / "claims.csv")
    assert claims[["claim", "paper", "ours", "holds"]].to_numpy().tolist() == [
        ["it rises", 1, 2, True],
        ["it rises", 1, 2, False],
    ]
    assert "| Figure 9 | no GPU |" in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (tmp_path / target).is_file()
    assert not list(tmp_path.glob(".*"))


def test_only_an_index_of_figures_is_replaced(tmp_path):
    one = figures.Study(only=["hotspot"], cache=False)
    reports = [figures.write_report(fake(True), one, tmp_path)]
    for _ in range(2):
        figures.write_index(reports, one, tmp_path, {})
    (tmp_path / "claims.csv").write_text("my own\n")
    (tmp_path / "index.md").unlink()
    with pytest.raises(ws.InputError, match=r"claims\.csv"):
        figures.check_index(tmp_path, overwrite=False)
    with pytest.raises(ws.InputError, match=r"claims\.csv"):
        figures.write_index(reports, one, tmp_path, {})
    assert not (tmp_path / "index.md").exists()
    figures.write_index(reports, one, tmp_path, {}, overwrite=True)
    assert (tmp_path / "claims.csv").read_text().startswith("figure,claim")


def test_a_smaller_png_is_the_same_picture():
    figure = new_figure(3, 2)
    figure.subplots().plot([1, 2])
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=80)
    small = Image.open(io.BytesIO(report._smaller(image, {"about": "x"}))).convert("L")
    large = Image.open(image).convert("L")
    assert np.abs(np.asarray(small, float) - np.asarray(large, float)).max() < 32


PUBLISHED = REPOSITORY / "docs" / "figures"


class TestPublished:
    """The pictures and claims in the documentation are those of the data and the code beside them."""

    @pytest.mark.parametrize("name", WANTED)
    def test_a_picture_shows_its_data_as_the_code_draws_it(self, name):
        stale = figures.staleness(figures.get(name), PUBLISHED)
        assert not stale, f"{stale} changed: warpstack figure {name} --redraw -o docs/figures"

    @pytest.mark.parametrize("name", WANTED)
    def test_the_index_has_the_claims_that_the_data_gives(self, name):
        figure = figures.get(name)
        claims = figure.check(report._table((PUBLISHED / f"{name}.csv").read_bytes()))
        listed = pd.read_csv(PUBLISHED / "claims.csv", dtype=str, keep_default_na=False)
        listed = listed[listed["figure"] == name][["claim", "paper", "ours", "holds"]]
        assert listed.to_numpy().tolist() == [
            [claim.text, claim.paper, claim.ours, str(claim.holds)] for claim in claims
        ]
        section = (PUBLISHED / "index.md").read_text().split(f"\n### {name}\n")[1].split("\n##")[0]
        assert f"{sum(c.holds for c in claims)} of {len(claims)} claims hold" in section
        for claim in claims:
            assert (
                f"- **Does not hold**: {claim.text}. The paper: {claim.paper};" in section
            ) != claim.holds

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [name for name in WANTED if name.startswith("mwp-")])
    def test_the_data_is_what_the_models_give_now(self, name, tmp_path):
        """Only figures that no simulation takes part in: the others cost minutes."""
        one = figures.Study(only=["hotspot"], cache=False)
        again = figures.write_report(figures.get(name), one, tmp_path).data
        new, old = pd.read_csv(again), pd.read_csv(PUBLISHED / again.name)
        pd.testing.assert_frame_equal(new, old, rtol=1e-4)

    @pytest.mark.slow
    def test_staleness_is_found(self, tmp_path):
        one = figures.Study(only=["hotspot"], cache=False)
        figure = figures.get("mwp-table2")
        written = figures.write_report(figure, one, tmp_path)
        assert figures.staleness(figure, tmp_path) == ""
        picture = written.picture.read_bytes()
        content = written.data.read_text()
        written.data.write_text(content.replace("1", "2", 1))
        assert figures.staleness(figure, tmp_path) == "data"
        with pytest.raises(ws.InputError, match=r"was changed or damaged since mwp-table2\.png"):
            figures.redraw(figure, tmp_path)
        written.data.write_text(content)
        figures.redraw(figure, tmp_path)
        written.picture.write_bytes(picture)
        assert figures.staleness(figure, tmp_path) == ""

    def test_other_code_is_found(self, tmp_path, monkeypatch):
        figure = figures.get("mwp-table2")
        figures.write_report(figure, figures.Study(only=["hotspot"], cache=False), tmp_path)
        read = report.Path.read_text
        monkeypatch.setattr(
            report.Path,
            "read_text",
            lambda path, **options: read(path, **options).replace("drawn.scale(1, 1.25)", "pass"),
        )
        assert figures.staleness(figure, tmp_path) == "code"

    def test_comments_are_not_code(self, tmp_path, monkeypatch):
        figure = figures.get("mwp-table2")
        figures.write_report(figure, figures.Study(only=["hotspot"], cache=False), tmp_path)
        read = report.Path.read_text
        monkeypatch.setattr(
            report.Path, "read_text", lambda path, **options: read(path, **options) + "# end\n"
        )
        assert figures.staleness(figure, tmp_path) == ""


class TestCuts:
    def test_nothing_is_cut_without_a_word(self):
        values = pd.DataFrame({"a": [1.0, 300.0], "b": [2.0, -250.0]}, index=[1, 2])
        for draw in (drawing.lines, drawing.grouped_bars):
            extra = {"xlabel": "x"} if draw is drawing.lines else {}
            ax = draw(values, ylabel="error (%)", limit=200, **extra).axes[0]
            assert ax.get_ylabel() == "error (%), cut at 200"
            assert "300" in [text.get_text() for text in ax.texts]
            ax = draw(values, ylabel="error (%)", limit=400, **extra).axes[0]
            assert ax.get_ylabel() == "error (%)"
            assert not ax.texts

    def test_only_the_shared_drawings_cut(self):
        folder = Path(figures.__file__).parent
        for path in folder.glob("*.py"):
            if path.name != "drawing.py":
                found = re.findall(r"\.clip\(|np\.clip|set_ylim\((?!0, 100\))", path.read_text())
                assert not found, (
                    f"{path.name} cuts by itself: use limit= of warpstack.figures.drawing"
                )


class TestHardware:
    def write(self, folder, text):
        path = folder / "cycles.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def test_figure_10_by_hand(self, tiny, tmp_path, monkeypatch):
        """Measured: as many cycles as MDM says; errors of 0, and of what GPUMech is off from it."""
        totals = {}
        for model in ("mdm", "gpumech"):
            table = ws.predict(tiny.app("hotspot"), "gtx1080", [model])
            totals[model] = float(table["cycles"].sum())
        text = f"\ufeffapp,note,cycles\nhotspot,x,{totals['mdm']!r}\n\n"
        measured = figures.read_hardware(self.write(tmp_path, text), "gtx1080")
        monkeypatch.setattr(tiny, "hardware", measured)
        errors_of = figures.get("mdm-fig10").compute(tiny).set_index("model")["error"]
        assert errors_of["mdm"] == pytest.approx(0)
        assert errors_of["gpumech"] == pytest.approx(totals["mdm"] / totals["gpumech"] - 1)
        assert figures.write_report(figures.get("mdm-fig10"), tiny, tmp_path).picture.exists()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "expected one column app; the first line has none"),
            ("app,ipc\n", "expected one column cycles; the first line has app, ipc"),
            ("app,cycles\n", "has no workloads"),
            ("app,cycles\nhotspot,1\nhotpot,2\n", "row 3: app = 'hotpot' is not one of"),
            ("app,cycles\nhotspot,1\nhotspot,2\n", "row 3: hotspot comes twice"),
            ("app,cycles\nhotspot\n", "row 2: expected 2 values, got 1"),
            ("app,cycles\nhotspot,-1\n", "row 2: cycles '-1' is not a positive number"),
            ("app,cycles\nhotspot,inf\n", "row 2: cycles 'inf'"),
            ("app,cycles\nhotspot,many\n", "row 2: cycles 'many'"),
            ('app,cycles\n"hotspot', "is not a CSV file"),
            (b"\xff\xfe\x00", "is not a CSV file"),
        ],
    )
    def test_bad_tables(self, capsys, tmp_path, text, message):
        path = self.write(tmp_path, text)
        arguments = ["figure", "mdm-fig10", "--hardware", str(path), "-o", str(tmp_path / "out")]
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert message in said
        assert "cycles.csv" in said
        assert not (tmp_path / "out").exists()

    @pytest.mark.slow
    @given(st.binary(max_size=80) | st.text('app,cycles\nhotspot1.e"\r', max_size=80))
    @settings(max_examples=rounds(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_table_is_read_or_refused(self, tmp_path, content):
        path = self.write(tmp_path, content)
        said = ""
        try:
            cycles = figures.read_hardware(path, "gtx1080").cycles
        except ws.InputError as error:
            said, cycles = str(error), {}
        assert cycles or "cycles.csv" in said

    def test_without_measurements(self, capsys, tmp_path):
        assert main(["figure", "mdm-fig10", "-o", str(tmp_path)]) == 2
        assert "give --hardware FILE" in capsys.readouterr().err


class TestCommand:
    def test_list(self, capsys):
        assert main(["figure", "--list", "--json"]) == 0
        listed = [row["name"] for row in json.loads(capsys.readouterr().out)]
        assert [name for name in listed if name not in figures.MEASURED] == WANTED
        assert "mdm-fig10" in listed

    @pytest.mark.slow
    def test_one(self, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["figure", "mwp-table2", "--csv"]) == 0
        table = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert table["holds"].all()
        assert table["ours"][0].startswith("15 of 15")
        assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == [
            "mwp-table2.csv",
            "mwp-table2.png",
        ]

    @pytest.mark.slow
    def test_all(self, capsys, tmp_path, monkeypatch):
        monkeypatch.setattr(figures, "names", lambda measured: ["mwp-table2", "mwp-fig22"])
        assert main(["figure", "--all", "-o", str(tmp_path)]) == 0
        assert "mwp-fig22" in capsys.readouterr().out
        assert "3 of 3 claims hold" in (tmp_path / "index.md").read_text()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "give names of figures"),
            (["mdm-fig5", "--all"], "give names of figures"),
            (["mdm-fig4"], "there is no figure 'mdm-fig4'"),
            (["mdm-fig5", "--size", "huge"], "is not one of small, paper"),
            (["mdm-fig5", "--workloads", "hotspot"], "give workloads of both classes"),
            (["mdm-fig5", "--workers", "0"], "workers = 0"),
        ],
    )
    def test_bad_input(self, capsys, tmp_path, arguments, message):
        assert main(["figure", *arguments, "-o", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.splitlines()) == 1
        assert not (tmp_path / "out").exists()

    @pytest.mark.slow
    def test_redraw(self, capsys, tmp_path):
        assert main(["figure", "mwp-table2", "--redraw", "-o", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert "mwp-table2.csv: cannot be read" in said
        assert len(said.splitlines()) == 1
        assert main(["figure", "mwp-table2", "--csv", "-o", str(tmp_path)]) == 0
        first = capsys.readouterr().out
        assert main(["figure", "mwp-table2", "--csv", "--redraw", "-o", str(tmp_path)]) == 0
        assert capsys.readouterr().out == first

    def test_output_is_a_file(self, capsys, tmp_path):
        (tmp_path / "out").write_text("mine")
        assert main(["figure", "mwp-table2", "-o", str(tmp_path / "out")]) == 2
        assert "is not a folder" in capsys.readouterr().err
        assert (tmp_path / "out").read_text() == "mine"
