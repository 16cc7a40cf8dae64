"""Confidences of GPU descriptions: how well values are known, as a file says it."""

import dataclasses

import pytest

from warpstack import InputError
from warpstack.hardware.description import gpu


def described(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(f"based_on: pascal-mdm\n{text}\n", encoding="utf-8")
    return path


def test_is_read_beside_value_and_source(tmp_path):
    text = "num_sms: {value: 56, source: counted, confidence: measured}\nl1_mshrs: 64"
    one = gpu(described(tmp_path, text))
    assert one.confidences == {"num_sms": "measured"}
    assert (one.num_sms, one.sources["num_sms"]) == (56, "counted")


def test_needs_no_source(tmp_path):
    one = gpu(described(tmp_path, "num_sms: {value: 56, confidence: guessed}"))
    assert one.confidences == {"num_sms": "guessed"}


@pytest.mark.parametrize("word", ["sure", "''", "[measured]", "1"])
def test_another_word_is_an_error(tmp_path, word):
    path = described(tmp_path, f"num_sms: {{value: 56, confidence: {word}}}")
    message = r"mine.yaml:\d+: GPU .*: num_sms: confidence = .* is not one of measured, documented"
    with pytest.raises(InputError, match=message):
        gpu(path)


def test_another_key_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"num_sms: expected \{value"):
        gpu(described(tmp_path, "num_sms: {value: 56, certainty: measured}"))


def test_is_lost_by_a_changed_value(tmp_path):
    text = "num_sms: {value: 56, confidence: measured}\nl1_mshrs: {value: 64, confidence: guessed}"
    described(tmp_path, text)
    path = tmp_path / "other.yaml"
    path.write_text("based_on: mine.yaml\nnum_sms: 28\n", encoding="utf-8")
    assert gpu(path).confidences == {"l1_mshrs": "guessed"}
    assert gpu(tmp_path / "mine.yaml").replace(l1_mshrs=8).confidences == {"num_sms": "measured"}


def test_a_latency_for_another_clock_is_derived():
    one = gpu("gtx1650")
    assert one.confidences["dram_latency"] == "measured"
    assert one.replace(clock_ghz=1.62).confidences["dram_latency"] == "derived"
    guessed = gpu("titan-x-maxwell").replace(clock_ghz=1.2)
    assert guessed.confidences["dram_latency"] == "guessed"


def test_is_not_part_of_the_identity():
    one = gpu("rtx3080")
    bare = dataclasses.replace(one, confidences={})
    assert bare == one
    assert bare.digest == one.digest


def test_of_a_description_made_here():
    with pytest.raises(InputError, match="confidence = 'sure' is not one of"):
        dataclasses.replace(gpu("rtx3080"), confidences={"num_sms": "sure"})
    with pytest.raises(InputError, match="GPU confidences"):
        dataclasses.replace(gpu("rtx3080"), confidences=["measured"])
