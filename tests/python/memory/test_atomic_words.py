"""What lanes of an atomic cost a slice of L2 that meet in a word, and those that do not."""

import pytest

import warpstack as ws

WARPS = 8  # of a block
#: Lanes of a request and the most that meet in a word, by word of each lane.
WORDS = {
    "all different": (lambda lane: lane, 32, 1),
    "all one": (lambda lane: 0 * lane, 32, 32),
    "one of 24 lanes": (lambda lane: lane * (lane >= 24), 32, 24),
    "pairs": (lambda lane: lane // 2, 32, 2),
}


def adding(word, blocks=40, adds=8):
    """Return a kernel whose warps add to one line, each lane to the word that `word` says."""
    builder = ws.patterns.KernelBuilder("adds", grid=blocks, block=32 * WARPS)
    for _ in range(adds):
        builder.emit("RED.E.ADD", src=(4, 5), address=(1 << 30) + 4 * word(builder.thread % 32))
    builder.emit("EXIT")
    return builder.build()


def on(words_at_once, **changes):
    gpu = ws.gpu("a100").replace(num_sms=4, l2_slices=2, dram_channels=1, dram_bandwidth_gbs=1e6)
    return gpu.replace(l2_atomic_words_at_once=words_at_once, **changes)


@pytest.mark.parametrize("lane_turns", [1, 0.5])
@pytest.mark.parametrize("words_at_once", [1, 2, 4])
@pytest.mark.parametrize("words", WORDS)
def test_words_share_turns_and_lanes_of_one_word_do_not(words, words_at_once, lane_turns):
    """Requests of one line keep one slice busy: each block more adds their turns to the cycles."""
    word, lanes, in_word = WORDS[words]
    gpu = on(words_at_once, l2_atomic_lane_turns=lane_turns)
    turns = max(1, lane_turns * max(lanes / words_at_once, in_word))
    few, many = adding(word), adding(word, blocks=80)
    assert sum(ws.simulate_caches(few, gpu)._core.slice_turns) == 40 * WARPS * 8 * turns
    more = 40 * WARPS * 8 * turns
    assert ws.simulate(many, gpu).cycles - ws.simulate(few, gpu).cycles == pytest.approx(more, 0.02)
    for model in ("interval_simulation", "closed_network"):
        before, after = (ws.predict(kernel, gpu, [model])["cycles"][0] for kernel in (few, many))
        assert after - before == pytest.approx(more, 0.02), model


def test_requests_of_lanes_of_one_word_have_words_of_their_own():
    """With a request for each lane of a word, only different words share turns."""
    gpu = on(2, atomic_requests="per_lane", l2_atomic_lane_turns=1)
    kernel = adding(lambda lane: lane * (lane >= 24), blocks=1, adds=1)
    # 24 requests for the sector of word 0, which has 24 lanes; one for the sector of lanes 24 to 31.
    assert sum(ws.simulate_caches(kernel, gpu)._core.slice_turns) == WARPS * (24 + 8 / 2)
    # All 32 words: a request for each sector, of which each has 8 lanes.
    kernel = adding(lambda lane: lane, blocks=1, adds=1)
    assert sum(ws.simulate_caches(kernel, gpu)._core.slice_turns) == WARPS * 4 * 8 / 2


def test_sweeps_answer_as_each_point_alone():
    kernel = adding(lambda lane: lane, blocks=8)
    models = ["interval_simulation", "closed_network"]
    for field, values in (("l2_atomic_words_at_once", [1, 1.6, 8]), ("l2_size_kib", [256, 1024])):
        swept = ws.sweep(kernel, on(2), {field: values}, models=models)
        for value in values:
            alone = ws.predict(kernel, on(2).replace(**{field: value}), models)
            rows = swept[swept[field] == value].set_index("model")["cycles"]
            for model, cycles in zip(alone["model"], alone["cycles"], strict=True):
                assert rows[model] == pytest.approx(cycles, rel=1e-9), (field, value, model)
