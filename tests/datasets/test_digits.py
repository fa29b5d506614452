import numpy as np
import pytest
from scipy.ndimage import label as connected_regions
from sklearn.datasets import load_digits

from labelsieve.datasets.digits import load_digits_attributes

# Computed instead of listed, to check the table in the module independently.
ARITHMETIC = {
    "even": lambda digit: digit % 2 == 0,
    "prime": lambda digit: digit > 1 and all(digit % k for k in range(2, digit)),
    "multiple of three": lambda digit: digit % 3 == 0,
    "greater than four": lambda digit: digit > 4,
    "perfect square": lambda digit: round(digit**0.5) ** 2 == digit,
    "power of two": lambda digit: digit in [2**k for k in range(4)],
}


def test_features_are_pixels_of_the_scanned_digits():
    digits = load_digits_attributes()
    images = load_digits().images
    assert digits.X.shape == (1797, 64)
    for row, column in [(0, 0), (3, 5), (7, 7)]:
        place = digits.feature_names.index(f"pixel_{row}_{column}")
        np.testing.assert_array_equal(digits.X[:, place], images[:, row, column])


@pytest.mark.parametrize("attribute", ARITHMETIC)
def test_true_labels_satisfy_their_definition(attribute):
    digits = load_digits_attributes()
    label = digits.Y[:, digits.label_names.index(attribute)]
    expected = [ARITHMETIC[attribute](int(digit)) for digit in load_digits().target]
    np.testing.assert_array_equal(label, np.array(expected, dtype=int))


def test_only_digits_with_a_closed_loop_enclose_paper_in_most_images():
    digits = load_digits_attributes()
    closed = digits.Y[:, digits.label_names.index("closed loop")]
    # Enclosed paper (less than half ink) is a second connected region.
    paper = np.pad(digits.X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1))) < 8
    encloses = np.array([connected_regions(image)[1] > 1 for image in paper])
    target = load_digits().target
    for digit in range(10):
        assert (encloses[target == digit].mean() > 0.5) == closed[target == digit][0]


def test_every_digit_has_a_unique_nonempty_label_set():
    digits = load_digits_attributes()
    target = load_digits().target
    rows = [digits.Y[target == digit] for digit in range(10)]
    assert all(np.all(row == row[0]) for row in rows)
    assert len({tuple(row[0]) for row in rows}) == 10
    assert digits.Y.sum(axis=1).min() >= 1


def test_candidates_include_true_labels_and_noise_at_the_given_rate():
    digits = load_digits_attributes(noise=0.3, random_state=5)
    irrelevant = digits.Y == 0
    assert np.all(digits.Y_candidates >= digits.Y)
    assert abs(digits.Y_candidates[irrelevant].mean() - 0.3) < 5 * np.sqrt(0.21 / irrelevant.sum())


def test_default_seed_is_fixed():
    first = load_digits_attributes().Y_candidates
    np.testing.assert_array_equal(first, load_digits_attributes().Y_candidates)
    assert np.any(first != load_digits_attributes(random_state=1).Y_candidates)
    np.testing.assert_array_equal(load_digits_attributes(noise=0.0).Y_candidates, load_digits_attributes().Y)


def test_invalid_noise_raises():
    with pytest.raises(ValueError, match=r"rate .*\[0, 1\].* 2\.0"):
        load_digits_attributes(noise=2.0)
