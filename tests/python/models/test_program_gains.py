"""What changes of the program gain, by models and simulator."""

import pytest

import warpstack as ws

CHANGES = ws.models.PROGRAM_CHANGES


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("pascal-mdm").replace(num_sms=4)


@pytest.fixture(scope="module")
def strided():
    return ws.patterns.strided(gs=32, iterations=8, blocks=56)


def test_what_has_something_to_change(gpu):
    coalesced = ws.patterns.strided(gs=1, iterations=1, blocks=32)
    assert ws.models.changes_that_apply(coalesced, gpu) == ["no_dependencies"]
    k = ws.patterns.KernelBuilder("k", grid=100, block=256, registers_per_thread=200)
    k.emit("LDS", dst=4, src=2, address=k.thread_in_block * 8)
    k.emit("FADD", dst=4, src=4, where=k.thread_in_block % 2 == 0)
    k.emit("BAR.SYNC")
    k.emit("RED.E.ADD", src=(2, 4), address=0x7000_0000 + k.thread % 8 * 4)
    k.emit("STG.E", src=(2, 4), address=0x7100_0000 + k.thread_in_block * 4096)
    kernel = k.build()
    # 100 blocks of one at once on each of 4 SMs are whole waves.
    expected = set(CHANGES) - {
        "full_last_wave",
        "kept_in_block",
        "kept_in_registers",
        "cheap_division",
        "register_tiles",
    }
    assert set(ws.models.changes_that_apply(kernel, gpu)) == expected
    assert "full_last_wave" in ws.models.changes_that_apply(kernel, gpu.replace(num_sms=3))
    assert ws.models.changes_that_apply(kernel, gpu, rows=[1]) == [
        "no_divergence",
        "no_dependencies",
    ]
    for change in expected - {"no_dependencies"}:
        changed = kernel.changed(change)
        assert change not in ws.models.changes_that_apply(changed, gpu) or change in (
            "private_atomics",  # one per block and word is left
            "padded_pitch",  # rows of 4224 bytes are a multiple of 128, not of 512
        ), change


def test_gains_are_cycles_before_over_cycles_after(strided, gpu):
    table = ws.models.program_gains(strided, gpu, ["mdm"], simulate=True)
    assert table["model"].unique().tolist() == ["mdm", "simulation"]
    for row in table.itertuples():
        assert row.meaning == CHANGES[row.change]
        if row.change == "full_last_wave":
            continue
        changed = strided.changed(row.change)
        if row.model == "mdm":
            before, after = (
                ws.predict(k, gpu, models=["mdm"])["cycles"][0] for k in (strided, changed)
            )
        else:
            before, after = (ws.simulate(k, gpu).cycles for k in (strided, changed))
        assert row.cycles == pytest.approx(after)
        assert row.speedup == pytest.approx(before / after)
    coalesced = table[table["change"] == "coalesced"]["speedup"]
    assert (coalesced > 2).all()


def test_a_full_last_wave(gpu):
    # Blocks of one warp, 32 at once on each of 4 SMs, which end together: the last one is alone.
    gpu = gpu.replace(scheduler="lrr")
    k = ws.patterns.KernelBuilder("k", grid=129, block=32)
    add = k.instruction("FADD", dst=4, src=4)
    for _ in range(200):
        k.issue(add)
    kernel = k.build()
    table = ws.models.program_gains(kernel, gpu, changes=["full_last_wave"], simulate=True)
    simulated = table.set_index("model")["speedup"]["simulation"]
    whole = ws.patterns.KernelBuilder("k", grid=128, block=32)
    add = whole.instruction("FADD", dst=4, src=4)
    for _ in range(200):
        whole.issue(add)
    expected = ws.simulate(kernel, gpu).cycles / ws.simulate(whole.build(), gpu).cycles * 128 / 129
    assert simulated == pytest.approx(expected)
    assert simulated > 1.1


def test_an_application(strided, gpu):
    app = ws.App([strided, ws.patterns.strided(gs=1, iterations=8, blocks=56, launch_id=2)], "two")
    table = ws.models.program_gains(app, gpu, changes=["coalesced"])
    assert (
        1
        < table["speedup"][0]
        < ws.models.program_gains(strided, gpu, changes=["coalesced"])["speedup"][0]
    )
    with pytest.raises(ws.InputError, match="one kernel"):
        ws.models.program_gains(app, gpu, rows=[0])


def test_errors(strided, gpu):
    with pytest.raises(ws.InputError, match="is not one of coalesced"):
        ws.models.program_gains(strided, gpu, changes=["faster"])
    with pytest.raises(ws.InputError, match="rows"):
        ws.models.program_gains(strided, gpu, rows=[99])
