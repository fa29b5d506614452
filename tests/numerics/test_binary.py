import numpy as np
import pytest

from labelsieve._numerics.binary import is_binary


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [],
        [0, 1],
        [0.0, 1.0],
        [True],
        [2],
        [-1, 1],
        [0.5],
        [np.nan],
        [np.inf],
        [1j],
        ["1"],
        [b"1"],
        [None],
        [2**63],
    ],
)
def test_only_the_numbers_zero_and_one_are_binary(values, signed):
    array = np.array(values)
    is_number = array.dtype.kind in "biuf"
    allowed = {-1, 0, 1} if signed else {0, 1}
    assert is_binary(array, signed=signed) == (is_number and all(value in allowed for value in values))
    assert is_binary(array.reshape(1, -1), signed=signed) == is_binary(array, signed=signed)
