"""The hierarchical roofline."""

import json

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from machines import plain_pascal
from warpstack.cli import main

PASCAL = ws.gpu("pascal-mdm")


def test_ceilings_by_hand():
    from warpstack.models.rooflines import ceilings

    # 28 SMs at 1.4 GHz, one instruction and one line of 128 bytes per cycle.
    assert ceilings(PASCAL) == {
        "issue": pytest.approx(39.2),
        "L1": pytest.approx(5017.6),
        "L2": PASCAL.noc_bandwidth_gbs,
        "DRAM": PASCAL.dram_bandwidth_gbs,
    }


def test_copy_by_hand():
    """Each of 448 warps reads and writes 128 bytes once and issues three instructions."""
    k = ws.patterns.KernelBuilder("copy", grid=56, block=256)
    k.emit("LDG.E", dst=4, src=2, address=0x100000 + 4 * k.thread)
    k.emit("STG.E", src=(6, 4), address=0x800000 + 4 * k.thread)
    k.emit("EXIT")
    table = ws.models.roofline(k.build(), plain_pascal(), "mdm").set_index("level")
    assert table.loc["L1", "bytes"] == 448 * 256
    assert table.loc["L2", "bytes"] == 448 * 256
    # L2 fetches what is read and what is written, and keeps it.
    assert table.loc["DRAM", "bytes"] == 448 * 256
    assert table.loc["DRAM", "intensity"] == pytest.approx(3 / 256)
    assert table.loc["L2", "roof_gips"] == pytest.approx(3 / 256 * PASCAL.noc_bandwidth_gbs)
    assert table.loc["DRAM", "roof_gips"] == pytest.approx(3 / 256 * 480)
    assert set(table["limit"]) == {"DRAM"}


def test_kernel_without_traffic():
    k = ws.patterns.KernelBuilder("compute", grid=56, block=256)
    for _ in range(50):
        k.emit("FADD", dst=8, src=8)
    table = ws.models.roofline(k.build(), PASCAL, ["mdm", "mwp_cwp"])
    assert table["intensity"].isna().all()
    assert set(table["limit"]) == {"issue"}
    np.testing.assert_allclose(table["roof_gips"], 39.2)
    ws.plot.roofline(table)


def test_simulation_stays_under_its_roofs():
    """What the simulator moves takes its bandwidths' time at least."""
    for kernel in (
        ws.patterns.strided(gs=32, iterations=8, blocks=112),
        ws.patterns.stream(blocks=112),
    ):
        table = ws.models.roofline(kernel, PASCAL, "mdm", simulate=True)
        simulated = table[table["model"] == "simulation"]
        assert (simulated["roof_fraction"] <= 1.02).all()
        expected = ws.simulate(kernel, PASCAL).ipc * 1.4
        np.testing.assert_allclose(simulated["gips"], expected)
        predicted = ws.predict(kernel, PASCAL, "mdm")["ipc"].item() * 1.4
        np.testing.assert_allclose(table.loc[table["model"] == "mdm", "gips"], predicted)


def test_picture():
    table = ws.models.roofline(
        ws.patterns.strided(gs=4, iterations=2, blocks=28), PASCAL, ["mdm", "gpumech"]
    )
    axes = ws.plot.roofline(table)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    roofs = axes.get_lines()[:3]
    for line, level in zip(roofs, ("L1", "L2", "DRAM"), strict=True):
        bandwidth = table.loc[table["level"] == level, "bandwidth_gbs"].iloc[0]
        expected = np.minimum(39.2, bandwidth * line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), expected)
    with pytest.raises(ws.InputError, match="have no rows"):
        ws.plot.roofline(table.iloc[:0])
    other = ws.models.roofline(ws.patterns.stream(blocks=28), PASCAL.replace(num_sms=15))
    with pytest.raises(ws.InputError, match="several GPUs"):
        ws.plot.roofline(pd.concat([table, other]))


@pytest.mark.slow
def test_commands(strided_path, capsys, tmp_path):
    picture = tmp_path / "roof.png"
    arguments = [str(strided_path), "--kernels", "1", "--models", "mdm"]
    assert main(["roofline", *arguments, "--json", "--plot", str(picture)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["level"] for row in rows] == ["L1", "L2", "DRAM"]
    assert picture.stat().st_size > 5000
    assert main(["dvfs", *arguments, "--clocks", "0.7", "1.0"]) == 0
    text = capsys.readouterr().out
    assert "relative time" in text
    assert text.count("mdm") == 3
    clocks = [line.split()[3] for line in text.splitlines()[1:]]
    assert clocks == ["0.7", "1", "1.4"]  # in their order, the GPU's own among them
    assert main(["dvfs", *arguments, "--clocks", "-1"]) == 2
    assert "-1.0 GHz is not a positive clock" in capsys.readouterr().err


def test_what_is_no_roofline():
    table = ws.models.roofline(ws.patterns.strided(gs=8, iterations=2, blocks=28), PASCAL)
    for column in ("gpu", "gpu_changes", "gpu_digest"):
        with pytest.raises(ws.InputError, match=f"have no column {column};"):
            ws.plot.roofline(table.drop(columns=column))
    with pytest.raises(ws.InputError, match="has no kernels"):
        ws.models.roofline(ws.App([], "empty"), PASCAL)
