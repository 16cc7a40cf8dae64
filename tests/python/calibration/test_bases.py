"""Which description a card gets what is not measured from, and its caches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from card_output import output
from warpstack.calibration.bases import default_base, products
from warpstack.calibration.caches import fit_l2
from warpstack.calibration.measurements import Measurements, read_measurements
from warpstack.hardware.architectures import PAPERS, architecture

PRODUCTS = [
    one for one in map(ws.gpu, ws.gpus()) if architecture(one) != PAPERS
]  # whatever is described


def card(capability, sms=20, l2_kib=5120.0, name="Plain_Card_7"):
    texts = {"device.name": name, "device.capability": str(capability)}
    properties = {"device.sms": sms, "device.l2_size": int(l2_kib * 1024)}
    return Measurements("run.txt", texts, properties, lines={"device.capability": 3})


def test_papers_are_no_products():
    assert list(products()) == PRODUCTS
    assert len(PRODUCTS) > 40


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_a_described_card_gets_its_own_description(product):
    name = f"NVIDIA_{product.name.upper().replace('-', '_')}"
    run = card(product.compute_capability, product.num_sms, product.l2_size_kib, name)
    assert default_base(run) == (product, ())
    # Without the name it is one that is as large.
    run = card(product.compute_capability, product.num_sms, product.l2_size_kib)
    base, notes = default_base(run)
    assert (base.compute_capability, notes) == (product.compute_capability, ())
    assert (base.num_sms, base.l2_size_kib) == (product.num_sms, product.l2_size_kib)


@pytest.mark.parametrize("capability", ["5.3", "7.2", "10.1", "11.0", "12.1", "99.9"])
def test_an_unknown_capability_has_the_nearest_lower_one_and_says_so(capability):
    base, (note,) = default_base(card(capability))
    known = {one.compute_capability for one in PRODUCTS}
    assert base.compute_capability == max(one for one in known if one < float(capability))
    assert f"has compute capability {capability}" in note or capability == "11.0"
    assert base.name in note
    assert f"{base.compute_capability:g}; give --base" in note


@pytest.mark.parametrize(
    ("name", "capability", "base"),
    [
        ("NVIDIA_RTX_A4000", "8.6", "rtx-a4000"),
        ("NVIDIA_A40", "8.6", "a40"),
        ("NVIDIA_L40S", "8.9", "l40s"),
        ("NVIDIA_GH200_480GB", "9.0", "gh200"),
        ("NVIDIA_H200", "9.0", "h200"),
        ("NVIDIA_GeForce_RTX_3060_Laptop_GPU", "8.6", "rtx3060-laptop"),
    ],
)
def test_the_longest_name_in_the_cards(name, capability, base):
    assert default_base(card(capability, name=name))[0].name == base


@pytest.mark.parametrize("capability", ["8", "8.x", "eight", "8.6.1"])
def test_what_is_no_capability(tmp_path, capability):
    (tmp_path / "run.txt").write_text(
        output().replace("device.capability 8.6", f"device.capability {capability}")
    )
    with pytest.raises(ws.InputError, match=r"run\.txt:3: device\.capability = .* such as 8\.6"):
        read_measurements(tmp_path / "run.txt")


def test_the_cards_capability_is_the_descriptions(tmp_path):
    (tmp_path / "run.txt").write_text(output(compute_capability=8.7))
    found = ws.calibration.calibrate(tmp_path / "run.txt", base="rtx3080")
    assert found.gpu.compute_capability == 8.7


# --- sizes of L2 --------------------------------------------------------------------------------

SIZES = [2, 3, 4, 4.5, 5, 5.5, 6, 24, 32, 36, 40, 48, 50, 60, 64, 72, 96, 126.5, 128]


def check(base, size_kib):
    found = fit_l2(size_kib, base)
    gpu = base.replace(**{field: estimate.value for field, estimate in found.items()})
    assert gpu.l2_size_kib == pytest.approx(size_kib, rel=0.01)
    assert base.l2_ways / 2 <= gpu.l2_ways <= 2 * base.l2_ways
    assert base.l2_slices / 2 <= gpu.l2_slices <= 2 * base.l2_slices
    if base.dram_channels:
        assert gpu.l2_slices / gpu.dram_channels == base.l2_slices / base.dram_channels
    return gpu


@pytest.mark.parametrize("base", PRODUCTS, ids=lambda product: product.name)
def test_an_l2_of_any_card_is_like_that_of_any_base(base):
    for mib in SIZES:
        gpu = check(base, 1024 * mib)
        assert gpu.l2_size_kib == 1024 * mib
    same = check(base, base.l2_size_kib)
    assert same == base


@given(st.sampled_from(PRODUCTS), st.integers(1024, 256 * 1024))
def test_an_l2_of_any_size(base, size_kib):
    check(base, float(size_kib))


@given(st.sampled_from(PRODUCTS), st.integers(1, 1023))
def test_a_small_l2_is_as_near_as_its_lines_allow(base, size_kib):
    found = fit_l2(float(size_kib), base)
    gpu = base.replace(**{field: estimate.value for field, estimate in found.items()})
    least = base.l2_slices // (base.dram_channels or base.l2_slices)
    assert abs(gpu.l2_size_kib - size_kib) <= max(0.01 * size_kib, least / 16)


def test_a_tree_has_a_power_of_two_of_ways():
    base = ws.gpu("rtx3090").replace(l2_replacement="plru")
    assert check(base, 5000.0).l2_ways in (8, 16, 32)


def test_slices_follow_the_size_as_in_the_cards_family():
    """The 3080 and the 3090 have slices of 128 KiB, two for each channel of DRAM."""
    gpu = check(ws.gpu("rtx3090"), 5120.0)
    assert (gpu.l2_slices, gpu.dram_channels, gpu.l2_ways) == (40, 20, 16)


def test_turns_are_counted_in_the_slices_of_the_description(tmp_path):
    (tmp_path / "run.txt").write_text(output(l2_slices=40))
    found = ws.calibration.calibrate(tmp_path / "run.txt", base="rtx3090")
    assert found.gpu.l2_slices == 40
    assert found.gpu.l2_atomic_lane_turns == pytest.approx(0.5, rel=2e-3)
    assert found.gpu.l2_partial_write_turns == pytest.approx(1.5, rel=2e-3)
    assert (
        "l2 of rtx3090 does not have the measured size: l2_slices 40 in place of 48, "
        "dram_channels 20 in place of 24, for 5120 KiB"
    ) in found.notes
