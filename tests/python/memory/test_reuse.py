"""Reuse distances against their plain definition, the paper's example, limits and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from configurations import memory_config
from effort import rounds
from python_reference import reuse as plain
from strategies import gpus, kernels

# Few lines meet often, many rarely; high numbers must survive hashing.
line_numbers = st.one_of(st.integers(0, 6), st.integers(0, 300), st.integers(2**64 - 40, 2**64 - 2))
streams = st.lists(line_numbers, max_size=150)


def as_lines(values):
    return np.array(values, dtype=np.uint64)


def test_example_of_the_paper():
    # Cache paper, Table 1: addresses 2 4 6 2 3 6, lines of 2 bytes: lines 1 2 3 1 1 3 have the
    # distances inf inf inf 2 0 1.
    lines = np.array([2, 4, 6, 2, 3, 6]) // 2
    assert ws.memory.stack_distances(lines).tolist() == [-1, -1, -1, 2, 0, 1]
    profile = ws.memory.ReuseProfile.from_lines(lines)
    assert profile.cold == 3
    assert profile.distances.tolist() == [0, 1, 2]
    assert profile.counts.tolist() == [1, 1, 1]
    # One line holds the access at distance 0, two hold those at 0 and 1, ...
    assert profile.hit_rate([0, 1, 2, 3, 4]).tolist() == [0, 1 / 6, 2 / 6, 3 / 6, 3 / 6]


def test_sdcm_by_hand():
    # A stream with one access at distance 2: 1 2 3 1. With A = 2 ways of B = 4 lines, Eq. 1 gives
    # C(2,0) (1/2)^0 (1/2)^2 + C(2,1) (1/2)^1 (1/2)^1 = 1/4 + 1/2 = 3/4; over four accesses 3/16.
    profile = ws.memory.ReuseProfile.from_lines([1, 2, 3, 1])
    assert profile.sdcm(2, 4) == pytest.approx(3 / 16)
    # One way of four lines: C(2,0) (3/4)^2 = 9/16, over four accesses 9/64.
    assert profile.sdcm(1, 4) == pytest.approx(9 / 64)


@settings(max_examples=rounds(200))
@given(streams)
def test_distances_equal_plain_definition(values):
    expected = [-1 if d is None else d for d in plain.distances(values)]
    assert ws.memory.stack_distances(as_lines(values)).tolist() == expected


@pytest.mark.slow
def test_distances_of_a_long_stream():
    """The times of last accesses move together many times, and the table grows."""
    rng = np.random.default_rng(5)
    lines = np.concatenate([rng.integers(0, 100_000, 700_000), np.arange(50_000)])
    found = ws.memory.stack_distances(lines)
    # The distance counts the different lines in between.
    previous = {}
    for i, line in enumerate(lines.tolist()):
        if i % 10_007 == 0 and line in previous:
            assert found[i] == len(np.unique(lines[previous[line] + 1 : i]))
        assert (found[i] == -1) == (line not in previous)
        previous[line] = i


@settings(max_examples=rounds(100))
@given(streams.filter(len), st.integers(1, 12), st.integers(0, 40))
def test_hit_rates_equal_plain_definition(values, ways, more):
    profile = ws.memory.ReuseProfile.from_lines(as_lines(values))
    lru = plain.PlainLruCache(1, ways)
    hits = sum(lru.access(line) for line in values)
    assert profile.hit_rate(ways) == pytest.approx(hits / len(values))
    assert profile.sdcm(ways, ways) == pytest.approx(hits / len(values))
    assert profile.sdcm(ways, ways + more) == pytest.approx(
        plain.sdcm(values, ways, ways + more), abs=1e-12
    )


def test_sdcm_is_safe_at_extremes():
    # Direct-mapped, distance D: (1 - 1/B)^D; with D = B = 10^6 that is 1/e up to 2e-7.
    n = 10**6
    once_more = np.concatenate([np.arange(n + 1), [0]])
    profile = ws.memory.ReuseProfile.from_lines(once_more)
    assert profile.sdcm(1, n) * len(once_more) == pytest.approx(np.exp(-1), rel=1e-5)
    # More ways at a fixed size never go below the mean of a coin: both ends are exact.
    assert profile.sdcm(n, n) == profile.hit_rate(n) == 0
    assert profile.sdcm(n + 1, n + 1) * len(once_more) == pytest.approx(1)


def test_sdcm_broadcasts():
    profile = ws.memory.ReuseProfile.from_lines(np.random.default_rng(0).integers(0, 99, 500))
    grid = profile.sdcm(np.array([[1], [4]]), np.array([16, 64, 128]))
    assert grid.shape == (2, 3)
    assert grid[1, 2] == profile.sdcm(4, 128)
    assert (np.diff(grid, axis=1) > 0).all()


def test_sdcm_predicts_a_random_stream():
    """Uniform random lines are what the model assumes: simulation must agree."""
    lines = np.random.default_rng(1).integers(0, 4000, 60_000)
    profile = ws.memory.ReuseProfile.from_lines(lines)
    family = ws.memory.cache_family(lines, sets=[64, 256], max_ways=8)
    for sets, ways, hit_rate in family[["sets", "ways", "hit_rate"]].itertuples(index=False):
        assert profile.sdcm(ways, ways * sets) == pytest.approx(hit_rate, abs=0.01)


def test_cumulative_ends_at_the_warm_share():
    lines = np.random.default_rng(2).integers(0, 50, 1000)
    profile = ws.memory.ReuseProfile.from_lines(lines)
    table = profile.cumulative()
    assert table["distance"].is_monotonic_increasing
    assert table["accesses"].sum() + profile.cold == 1000
    assert table["fraction"].tolist() == (table["accesses"].cumsum() / 1000).round(12).tolist()
    assert table["fraction"].iloc[-1] == 1 - 50 / 1000


def test_empty_stream():
    profile = ws.memory.ReuseProfile.from_lines([])
    assert (profile.accesses, profile.cold, len(profile.cumulative())) == (0, 0, 0)
    assert np.isnan(profile.hit_rate([0, 1])).all()
    assert np.isnan(profile.sdcm(1, 1))
    assert ws.memory.stack_distances([]).tolist() == []


# Streams of kernels


@settings(max_examples=rounds(60))
@given(kernels(), gpus(), st.sampled_from([32, 64, 128, 256]))
def test_streams_of_kernels_equal_plain_definition(kernel, gpu, line_bytes):
    limits = memory_config(gpu)["sm"]
    for level in ("l1", "l2"):
        expected = plain.kernel_streams(kernel, gpu, limits, level, line_bytes)
        found = ws.memory.line_stream(kernel, gpu, level=level, line_bytes=line_bytes)
        assert [list(s.itertuples(index=False, name=None)) for s in found] == expected
        profile = ws.memory.reuse_profile(kernel, gpu, level=level, line_bytes=line_bytes)
        assert profile.accesses == sum(map(len, expected))
        for kind in ("load", "store", "atomic"):
            distances = [
                d
                for stream in expected
                for d, (_, k) in zip(
                    plain.distances([line for line, _ in stream]), stream, strict=True
                )
                if k == kind
            ]
            part = profile.by_kind[kind]
            assert part.accesses == len(distances)
            assert part.cold == distances.count(None)
            warm = sorted(d for d in distances if d is not None)
            assert np.repeat(part.distances, part.counts.astype(int)).tolist() == warm


@settings(max_examples=rounds(60))
@given(kernels(), gpus(), st.sampled_from([32, 64]))
def test_filtered_stream_equals_plain_definition(kernel, gpu, line_bytes):
    sets = int(gpu.l1_size_kib * 1024) // line_bytes // gpu.l1_ways
    expected = plain.kernel_streams(
        kernel,
        gpu,
        memory_config(gpu)["sm"],
        "l2",
        line_bytes,
        l1=lambda: plain.PlainLruCache(sets, gpu.l1_ways),
        allocate_stores=gpu.l1_write_miss != "no_allocate",
    )
    found = ws.memory.line_stream(kernel, gpu, level="l2", line_bytes=line_bytes, filtered=True)
    assert [list(s.itertuples(index=False, name=None)) for s in found] == expected


@pytest.mark.parametrize("ways", [1, 8, 64])
def test_profile_equals_simulation_of_fully_associative_caches(ways):
    """Two ways to the same number, through different code."""
    rng = np.random.default_rng(8)
    k = ws.patterns.KernelBuilder("mixed", grid=12, block=96)
    for opcode in ("LDG.E", "STG.E", "LDG.E.64", "LDG.E"):
        address = 0x7000_0000 + 8 * rng.integers(0, 400, k.thread.shape)
        k.emit(opcode, dst=4 if opcode[0] == "L" else (), src=2, address=address)
    gpu = ws.gpu("titan-v").replace(
        num_sms=3,
        l1_line_bytes=32,
        l1_sector_bytes=32,
        l1_ways=ways,
        l1_size_kib=ways / 32,
        unified_l1_kib=0,
        shared_memory_carve_outs_kib=(),
        l1_write_miss="fetch_on_write",
    )
    kernel = k.build()
    totals = ws.simulate_caches(kernel, gpu, access_order="round_robin").totals
    profile = ws.memory.reuse_profile(kernel, gpu, level="l1")
    for kind, name in (("load", "l1_read"), ("store", "l1_write")):
        part = profile.by_kind[kind]
        assert part.accesses == totals[f"{name}_sectors"] > 0
        hits = part.hit_rate(ways) * part.accesses
        assert hits == pytest.approx(totals[f"{name}_sector_hits"])
        assert (0 if ways == 1 else 1) <= hits < part.accesses


# Samples


@settings(max_examples=rounds(60))
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=120),
    st.sampled_from([0.3, 0.5, 0.9]),
    st.integers(2, 5),
    st.integers(0, 3),
    st.integers(1, 80),
)
def test_sample_equals_plain_definition(values, rate, batches, seed, size):
    whole, parts = plain.sampled_misses(values, rate, batches, seed, size)
    if all(plain.sampling_hash(v, seed) >= int(rate * 2**64) for v in values):
        with pytest.raises(ws.InputError, match="falls into the sample"):
            ws.memory.ReuseProfile.from_lines(values, sample_lines=rate, batches=batches, seed=seed)
        return
    profile = ws.memory.ReuseProfile.from_lines(
        values, sample_lines=rate, batches=batches, seed=seed
    )
    n = len(values)
    assert profile.hit_rate(size) == pytest.approx(max(1 - whole / n, 0), abs=1e-12)
    rates = [1 - misses / n for misses in parts]
    expected = np.std(rates, ddof=1) / np.sqrt(batches)
    assert profile.hit_rate_error(size) == pytest.approx(expected, abs=1e-12)


def skewed(rng, lines, count):
    """Return a stream in which few lines have most of the accesses."""
    return (lines * rng.random(count) ** 3).astype(np.int64)


def windows(rng, lines, count):
    """Return a stream that stays near a place that moves on."""
    return (np.arange(count) * lines // count + rng.integers(0, lines // 20, count)) % lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "stream", [lambda rng, lines, count: rng.integers(0, lines, count), skewed, windows]
)
def test_truth_lies_within_the_stated_error(stream):
    lines = stream(np.random.default_rng(3), 50_000, 400_000)
    exact = ws.memory.ReuseProfile.from_lines(lines)
    sizes = np.array([2000, 5000, 10_000, 20_000, 40_000])
    truth = exact.hit_rate(sizes)
    assert exact.is_exact
    assert (exact.hit_rate_error(sizes) == 0).all()
    scores = []
    for seed in range(20):
        sample = ws.memory.ReuseProfile.from_lines(lines, sample_lines=0.1, seed=seed)
        assert not sample.is_exact
        errors = sample.hit_rate_error(sizes)
        # Where everything hits that can, only the share of first accesses is left to estimate.
        assert (errors > 0).all()
        assert (errors < 0.05).all()
        scores.append((sample.hit_rate(sizes) - truth) / errors)
        close = np.abs(sample.sdcm(8, 8192) - exact.sdcm(8, 8192))
        assert close < 5 * sample.sdcm_error(8, 8192)
    scores = np.array(scores)
    assert (np.abs(scores) < 5).all()
    # 95 % of a normal distribution lie within two standard deviations.
    assert (np.abs(scores) < 2).mean() > 0.8
    assert np.abs(scores.mean(axis=0)).max() < 1


def test_error_shrinks_with_the_rate():
    lines = np.random.default_rng(4).integers(0, 100_000, 500_000)
    errors = [
        float(
            ws.memory.ReuseProfile.from_lines(lines, sample_lines=rate, batches=64).hit_rate_error(
                30_000
            )
        )
        for rate in (0.02, 0.32)
    ]
    # Sixteen times the lines, a quarter of the error.
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.5)


def test_sample_of_a_kernel():
    kernel = ws.patterns.gather(loads=4, blocks=200)
    gpu = ws.gpu("titan-v")
    exact = ws.memory.reuse_profile(kernel, gpu, level="l2", line_bytes=32)
    sample = ws.memory.reuse_profile(kernel, gpu, level="l2", line_bytes=32, sample_lines=0.2)
    assert sample.accesses == exact.accesses
    assert sample.by_kind["load"].accesses == exact.by_kind["load"].accesses
    size = int(exact.cold) // 2
    for part in (lambda p: p, lambda p: p.by_kind["load"]):
        error = part(sample).hit_rate_error(size)
        assert 0 < error < 0.1
        assert abs(part(sample).hit_rate(size) - part(exact).hit_rate(size)) < 4 * error


# Families of caches


@settings(max_examples=rounds(150))
@given(
    st.lists(st.one_of(st.integers(0, 9), st.integers(0, 200)), max_size=120),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    st.integers(1, 6),
)
def test_family_equals_plain_caches(values, sets, max_ways):
    table = ws.memory.cache_family(as_lines(values), sets=sets, max_ways=max_ways)
    assert list(zip(table["sets"], table["ways"], strict=True)) == [
        (s, w) for s in sorted(set(sets)) for w in range(1, max_ways + 1)
    ]
    for number, ways, hits in table[["sets", "ways", "hits"]].itertuples(index=False):
        lru = plain.PlainLruCache(number, ways)
        assert hits == sum(lru.access(line) for line in values)


def test_family_of_powers_of_two_in_pieces():
    """A stream that is longer than the pieces in which it goes through the caches."""
    lines = np.random.default_rng(6).integers(0, 3000, 20_000)
    table = ws.memory.cache_family(lines, sets=[1, 4, 6, 64, 128], max_ways=5)
    for number in (1, 4, 6, 64, 128):
        for ways in (1, 5):
            lru = plain.PlainLruCache(number, ways)
            hits = sum(lru.access(line) for line in lines.tolist())
            row = table[(table["sets"] == number) & (table["ways"] == ways)]
            assert row["hits"].item() == hits


def test_family_of_one_set_equals_the_profile():
    lines = np.random.default_rng(7).integers(0, 60, 5000)
    table = ws.memory.cache_family(lines, sets=[1], max_ways=70)
    profile = ws.memory.ReuseProfile.from_lines(lines)
    assert table["hit_rate"].tolist() == profile.hit_rate(table["ways"]).tolist()


def test_family_of_an_empty_stream():
    assert ws.memory.cache_family([], sets=[2], max_ways=1)["hit_rate"].isna().all()


# PPT-GPU-Mem


@settings(max_examples=rounds(60))
@given(kernels(), gpus())
def test_ppt_gpu_mem_obeys_its_equations(kernel, gpu):
    estimate = ws.memory.ppt_gpu_mem(kernel, gpu)
    t = estimate.totals
    streams = plain.kernel_streams(kernel, gpu, memory_config(gpu)["sm"], "l1", 32)
    (merged,) = plain.kernel_streams(kernel, gpu, memory_config(gpu)["sm"], "l2", 32)
    count = {k: sum(kind == k for _, kind in merged) for k in ("load", "store", "atomic")}
    assert (t["l1_read_sectors"], t["l1_write_sectors"], t["l2_atomic_sectors"]) == tuple(
        count.values()
    )
    lines = int(gpu.l1_size_kib * 1024) // 32

    def hits(stream, kinds, ways, size):
        found = zip(plain.distances([line for line, _ in stream]), stream, strict=True)
        return float(
            sum(
                plain.hit_probability(d, ways, size)
                for d, (_, kind) in found
                if kind in kinds and d is not None
            )
        )

    reads = sum(hits(s, ["load"], gpu.l1_ways, lines) for s in streams)
    assert t["l1_read_sector_hits"] == pytest.approx(reads, abs=1e-6)
    writes = sum(hits(s, ["store"], gpu.l1_ways, lines) for s in streams)
    assert t["l1_write_sector_hits"] == pytest.approx(writes, abs=1e-6)
    assert t["l2_read_sectors"] == pytest.approx(count["load"] - reads, abs=1e-6)
    assert t["l2_write_sectors"] == count["store"]
    if count["load"] + count["store"]:
        l2_lines = int(gpu.l2_size_kib * 1024) // 32
        share = hits(merged, ["load", "store"], gpu.l2_ways, l2_lines)
        assert estimate.l2_hit_rate == pytest.approx(
            share / (count["load"] + count["store"]), abs=1e-9
        )
        for kind in ("read", "write"):
            assert t[f"dram_{kind}_sectors"] == pytest.approx(
                t[f"l2_{kind}_sectors"] * (1 - estimate.l2_hit_rate), abs=1e-6
            )
    else:
        assert np.isnan(estimate.l2_hit_rate)
        assert t["dram_read_sectors"] == t["dram_write_sectors"] == 0


def test_ppt_gpu_mem_overestimates_l2_of_a_real_kernel(bfs):
    """Cache paper, Section 3.2: L1 hits that are not filtered raise the L2 hit rate."""
    gpu = ws.gpu("titan-v")
    kernel = bfs.select([9]).kernels[0]
    estimate, simulated = ws.memory.ppt_gpu_mem(kernel, gpu), ws.simulate_caches(kernel, gpu).totals
    assert estimate.totals["l1_read_sectors"] == simulated["l1_read_sectors"] == 31003
    hit_rate = simulated["l2_read_sector_hits"] / simulated["l2_read_sectors"]
    assert estimate.l2_hit_rate > 0.85
    assert hit_rate < 0.3


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ws.memory.stack_distances([[1]]),
            r"lines has the shape \(1, 1\); give line numbers in one",
        ),
        (lambda: ws.memory.stack_distances([1.5]), "lines has the type float64.*//"),
        (lambda: ws.memory.stack_distances([3, -2]), "lines has the negative number -2"),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines=0),
            "sample_lines = 0 is not a share",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines=1.5),
            "sample_lines = 1.5 is not a share",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines=float("nan")),
            "sample_lines = .*nan.* is not a share",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines="all"),
            "sample_lines = 'all' is not a number",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines=0.5, batches=1),
            "batches = 1;.* 2 to 1024",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], batches=2.5),
            "batches = 2.5 is not a whole",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], seed=-1),
            "seed = -1 is not a whole number",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1], sample_lines=1e-9),
            "sample_lines = 1e-09: none of the 1 accesses",
        ),
        (lambda: ws.memory.ReuseProfile.from_lines([1]).hit_rate(-1), "size_lines = -1 is not"),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1]).hit_rate([2, 1.5]),
            "size_lines = 1.5 is not",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1]).hit_rate(np.nan),
            "size_lines = nan is not",
        ),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1]).sdcm(0, 4),
            "ways = 0 is not a whole number",
        ),
        (lambda: ws.memory.ReuseProfile.from_lines([1]).sdcm(8, 4), "ways = 8 of lines = 4"),
        (
            lambda: ws.memory.ReuseProfile.from_lines([1]).sdcm([1, 2], [4, 5, 6]),
            r"shapes \(2,\) and \(3,\)",
        ),
        (lambda: ws.memory.cache_family([1], sets=[0], max_ways=1), "sets = 0 is not"),
        (lambda: ws.memory.cache_family([1], sets=[], max_ways=1), r"sets = \[\] is not"),
        (lambda: ws.memory.cache_family([1], sets=[1], max_ways=0), "max_ways = 0 is not"),
        (
            lambda: ws.memory.cache_family([1], sets=[1], max_ways=2**40),
            "max_ways = 1099511627776; a fam",
        ),
        (lambda: ws.memory.cache_family([1], sets=[2**28], max_ways=16), r"above 2\^31 lines"),
        (
            lambda: ws.memory.cache_family(
                np.array([2**64 - 1], dtype=np.uint64), sets=[1], max_ways=1
            ),
            r"2\^64 - 1 marks free ways",
        ),
        (lambda: ws.memory.reuse_profile([1], ws.gpu("titan-v")), "say which accesses of a kernel"),
        (lambda: ws.memory.reuse_profile(ws.patterns.stream(blocks=1)), "give gpu="),
        (
            lambda: ws.memory.reuse_profile(
                ws.App([ws.patterns.stream(blocks=1)]), ws.gpu("titan-v")
            ),
            "app is an application; give one of its kernels",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ws.InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "l3"}, "level = 'l3' is not one of l1, l2"),
        ({"filtered": True}, "nothing is in front of L1"),
        ({"line_bytes": 48}, "line_bytes = 48 is not a positive multiple of 32"),
        ({"line_bytes": 0}, "line_bytes = 0 is not"),
        ({"level": "l2", "filtered": True, "line_bytes": 2**20}, "no line of 1048576 bytes"),
    ],
)
def test_bad_streams(options, message):
    kernel, gpu = ws.patterns.stream(blocks=1), ws.gpu("titan-v")
    for function in (ws.memory.line_stream, ws.memory.reuse_profile):
        with pytest.raises(ws.InputError, match=message):
            function(kernel, gpu, **options)


def test_a_gpu_may_be_given_by_its_name():
    kernel, gpu = ws.patterns.stream(blocks=4), ws.gpu("titan-v")
    by_name, given = (ws.memory.reuse_profile(kernel, g, level="l2") for g in ("titan-v", gpu))
    assert by_name.counts.tolist() == given.counts.tolist()
    assert (
        ws.memory.ppt_gpu_mem(kernel, "titan-v").totals == ws.memory.ppt_gpu_mem(kernel, gpu).totals
    )
