from itertools import combinations

import numpy as np
import pytest

from labelsieve.report.cd_diagram import draw_cd_diagram, groups_not_different
from labelsieve.report.statistics import bonferroni_dunn_cd

# Demsar 2006, Table 6: C4.5 with and without tuning of two parameters, 14 datasets.
DEMSAR = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}


def labelled(picture, label):
    return [line for line in picture.figure.axes[0].lines if line.get_label() == label]


def slow_groups(ranks, cd):
    """Find groups by definition: maximal sets of ranks that do not differ."""
    sets = [
        set(members)
        for size in range(2, len(ranks) + 1)
        for members in combinations(range(len(ranks)), size)
        if all(abs(ranks[i] - ranks[j]) < cd for i, j in combinations(members, 2))
    ]
    return [group for group in sets if not any(group < other for other in sets)]


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_the_largest_sets_without_a_difference(seed):
    rng = np.random.default_rng(seed)
    # Quarters make ties, and differences of exactly the critical difference.
    ranks = (rng.integers(4, 33, size=rng.integers(1, 9)) / 4).tolist()
    cd = float(rng.integers(1, 20)) / 4
    found = groups_not_different(ranks, cd)
    assert sorted(sorted(group) for group in found) == sorted(
        sorted(group) for group in slow_groups(ranks, cd)
    )
    assert all(
        [ranks[place] for place in group] == sorted(ranks[place] for place in group) for group in found
    )


def test_the_best_rank_is_at_the_right_and_lengths_are_to_scale():
    picture = draw_cd_diagram({"worst": 4.0, "best": 1.0, "third": 2.5, "fourth": 2.5}, cd=1.5)
    starts = {round(line.get_xdata()[0], 9) for line in labelled(picture, "leader")}
    left, middle, right = sorted(starts)
    assert middle == pytest.approx((left + right) / 2)
    (length,) = labelled(picture, "cd")
    assert np.ptp(length.get_xdata()) == pytest.approx((right - left) / 2)
    # 1.0 and 2.5 differ by the critical difference itself, hence significantly.
    (bar,) = labelled(picture, "group")
    assert bar.get_xdata().mean() == pytest.approx(middle)


def test_leaders_do_not_cross():
    rng = np.random.default_rng(5)
    picture = draw_cd_diagram({f"m{i}": rank for i, rank in enumerate(rng.uniform(1, 16, 16))}, cd=2.0)
    leaders = [line.get_xydata() for line in labelled(picture, "leader")]
    assert len(leaders) == 16
    for one, other in combinations(leaders, 2):
        for (start, bend, end), (top, corner, _) in ((one, other), (other, one)):
            low, high = sorted((bend[0], end[0]))
            # The horizontal part of one against the vertical part of the other.
            assert not (low < top[0] < high and top[1] < bend[1] < corner[1]), (start, top)


def test_tied_methods_are_one_group_but_a_single_method_is_not():
    assert len(labelled(draw_cd_diagram({"a": 2.0, "b": 2.0, "c": 2.0}, cd=1.0), "group")) == 1
    assert labelled(draw_cd_diagram({"a": 1.0}, cd=1.0), "group") == []


def test_the_band_around_the_control_contains_methods_that_do_not_differ():
    # Demsar, section 3.2.2: at 0.10 the difference must be 1.04, so that C4.5 differs from C4.5+m+cf and
    # C4.5+m (1.179 and 1.143), but not from C4.5+cf.
    cd = bonferroni_dunn_cd(4, 14, alpha=0.1)
    picture = draw_cd_diagram(DEMSAR, cd, control="C4.5", around_control=True)
    axes = picture.figure.axes[0]
    (band,) = labelled(picture, "band")
    left, right = band.get_xdata()
    dots = {line.get_xdata()[0]: line for line in axes.lines if line.get_marker() == "o"}
    assert len(dots) == 4
    inside = [x for x in dots if left < x < right]
    assert len(inside) == 2
    open_dots = [x for x, dot in dots.items() if dot.get_markerfacecolor() == "none"]
    assert len(open_dots) == 1
    assert open_dots[0] in inside


def test_the_control_must_have_a_rank():
    with pytest.raises(ValueError, match="'b'"):
        draw_cd_diagram({"a": 1.0, "b": float("nan")}, 1.0, control="b", around_control=True)
