"""Damaged files: an error of ours, or a whole system of finite numbers; never a crash."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_cases import ALL_JOINTS

import kfdyn.io as kio
from kfdyn.errors import KfdynError

TOKENS = sorted({*ALL_JOINTS.replace("<", " <").replace(">", "> ").replace('"', ' " ').split()})
WORDS = ["nan", "inf", "-inf", "1e308", "1e-320", "1e999", "", "0", "-1", "0 0 0", "1 2", "a", "base", "arm", "&amp;"]
WORDS += ["&x;", "<", ">", "${x}", "<!--", "]]>", "<!DOCTYPE a>", "\0", "é", "fixed", "revolute", "floating", "٣"]


def survives(text, **options):
    try:
        loaded = kio.read(text, **options)
    except KfdynError:
        return
    system = loaded.system
    assert system.n_bodies == len(system.bodies) > 0
    for array in (*system.open_tree.layout, system.neutral(), system.expansion()):
        assert np.isfinite(array).all()
    kio.describe(loaded)
    try:
        again = kio.read(kio.save_urdf(loaded)).system
    except KfdynError:
        return
    assert again.nv == system.nv


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_text(data):
    text = ALL_JOINTS
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        match data.draw(st.sampled_from(["cut", "drop", "swap", "insert", "repeat"])):
            case "cut":
                text = text[:start]
            case "drop":
                text = text[:start] + text[start + data.draw(st.integers(1, 60)) :]
            case "swap":
                text = text.replace(data.draw(st.sampled_from(TOKENS)), data.draw(st.sampled_from(WORDS + TOKENS)), 1)
            case "insert":
                text = text[:start] + data.draw(st.sampled_from(WORDS + TOKENS)) + text[start:]
            case "repeat":
                end = start + data.draw(st.integers(1, 300))
                text = text[:end] + text[start:end] + text[end:]
    survives("<" + text.lstrip("<"), floating_base=data.draw(st.booleans()), merge_fixed=data.draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_other_values(data):
    """Well-formed files whose attribute values are exchanged, so that they get past the XML."""
    parts = ALL_JOINTS.split('"')
    for _ in range(data.draw(st.integers(1, 5))):
        at = 2 * data.draw(st.integers(0, len(parts) // 2 - 1)) + 1
        words = st.sampled_from([w for w in WORDS if "<" not in w and w not in ("\0", "&x;")] + parts[1::2])
        number = st.floats(allow_nan=True).map(repr)
        parts[at] = data.draw(st.one_of(words, number, st.tuples(number, number, number).map(" ".join)))
    survives('"'.join(parts), floating_base=data.draw(st.booleans()), merge_fixed=data.draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: "<" + t)))
def test_any_text(text):
    survives(text)
