"""PML-FSMIR: worked example, invariances and options."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from graph_examples import fill, label_confidence, symbol_mutual_information
from labelsieve import PMLFSMIR
from labelsieve._numerics.information import cooccurrence, information_of_pairs
from labelsieve._numerics.norms import row_norms
from labelsieve.datasets import load_digits_attributes, make_pml
from labelsieve.methods._fsmir.factorization import FactorizationProblem, Factors, multiplicative_sweep

# Worked example in double precision, from an independent implementation.
Z_OFF_DIAGONAL = 0.08170416594551039
T_SINGLE = 0.9244671801054835
INFORMATION = (1.4591479170272446, 1 / 3)
HISTORY = {
    "exact": (7.350129894208109, 5.578838293220312, 5.519043492587462, 5.479316619978619),
    "printed": (7.350129894208109, 5.582083030443322, 5.515747420555217, 5.477639985545478),
}
W_SWEEP_1 = {
    "exact": [
        [0.09648979481042254, 0.29998808370641095, 0.09500554701518273],
        [0.18148883512622246, 0.40359698788366205, 0.19492241844452793],
        [0.2620810563741919, 0.11107269521600331, 0.2830037848912102],
        [0.3749020129671778, 0.21646128404085557, 0.36042462554842647],
    ],
    "printed": [
        [0.09435993032329981, 0.2940719245633116, 0.09285482325746687],
        [0.17382355727567447, 0.39015863307506654, 0.1876603572978732],
        [0.2526102345529529, 0.1083060211413952, 0.2743411792348735],
        [0.3582816757135309, 0.20862823466800928, 0.34305511606155237],
    ],
}
SCORES = {
    "exact": {
        1: [0.6317590859441921, 0.9776532493090255, 0.8190612655320515, 1.1764628504502015],
        5: [0.5795732558437634, 0.9090278815195244, 0.7322793179630706, 1.1057908174429805],
        200: [1.760158338825826, 1.7164536977359466, 0.0047448306933517235, 0.0368528036130116],
    },
    "printed": {
        1: [0.6187783312502235, 0.942455457554478, 0.7928050406420484, 1.1245076855216665],
        5: [0.5724141796315431, 0.8500113590174349, 0.7026059935507182, 1.0148876449591713],
        200: [1.548799378113397, 1.4669834385766563, 0.08975378606790081, 0.2831756694467226],
    },
}
F_SWEEP_200 = {"exact": 3.509439364118321, "printed": 3.544341200994832}


def quiet_fit(X, Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PMLFSMIR(**parameters).fit(X, Y)


def test_worked_example_of_the_label_stage(tiny):
    _, Y = tiny
    Z = information_of_pairs(cooccurrence(Y), len(Y))
    np.testing.assert_allclose(
        Z, np.full((3, 3), Z_OFF_DIAGONAL) + (1 - Z_OFF_DIAGONAL) * np.eye(3), atol=1e-10
    )
    T = label_confidence(Y)
    expected = np.array(
        [[T_SINGLE, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, T_SINGLE], [1, 0, 1], [0, T_SINGLE, 0]]
    )
    np.testing.assert_allclose(T, expected, atol=1e-10)
    np.testing.assert_allclose(label_confidence(sp.csr_matrix(Y)).toarray(), expected, atol=1e-10)
    diagonal, off_diagonal = INFORMATION
    expected = np.full((3, 3), off_diagonal) + (diagonal - off_diagonal) * np.eye(3)
    np.testing.assert_allclose(symbol_mutual_information(T), expected, atol=1e-10)


@pytest.mark.parametrize("form", ["exact", "printed"])
def test_worked_example_of_the_factorisation(tiny, form):
    X, Y = tiny
    T = label_confidence(Y)
    information = symbol_mutual_information(T)
    problem = FactorizationProblem.of_arrays(X, T, information, alpha=0.5, beta=0.2, gamma=0.3)
    problem.rows.blocks[0]["U"] = fill(0.2, 1, 2, 4, (6, 2))
    factors = Factors(fill(0.3, 2, 1, 3, (2, 4)), fill(0.1, 1, 2, 4, (4, 3)))
    history = [problem.objective(problem.grams(), factors.V, factors.W, factors.V @ factors.W)]
    for sweep in range(1, 201):
        factors, value = multiplicative_sweep(problem, factors, printed=form == "printed")
        history.append(value)
        if sweep == 1:
            np.testing.assert_allclose(factors.W, W_SWEEP_1[form], atol=1e-10)
        if sweep in SCORES[form]:
            np.testing.assert_allclose(row_norms(factors.W @ information), SCORES[form][sweep], atol=1e-10)
    np.testing.assert_allclose(history[:4], HISTORY[form], atol=1e-10)
    assert history[-1] == pytest.approx(F_SWEEP_200[form], abs=1e-10)


@pytest.mark.parametrize(
    ("name", "solver", "max_iter"),
    [
        ("yeast", "cd", 1000),
        ("yeast", "mu", 1000),
        ("birds", "cd", 1000),
        ("birds", "mu", 1000),
        ("slashdot", "mu", 200),
    ],
)
@pytest.mark.slow
def test_objective_never_increases_on_real_data(real, name, solver, max_iter):
    X, Y = real(name)
    history = quiet_fit(X, Y, solver=solver, max_iter=max_iter, tol=0).objective_history_
    assert np.diff(history).max() <= 1e-10 * history[0]
    assert len(history) == max_iter + 1 or history[-1] == history[-11], (
        "stopped although the objective still changed"
    )


def test_solvers_agree_if_the_minimum_is_unique(real):
    """Check on CHD_49, where all starts and solvers converge to the same value."""
    X, Y = real("chd_49")
    ends = [
        quiet_fit(X, Y, solver=solver, init=init, max_iter=5000, tol=1e-7).objective_history_[-1]
        for solver, init in (("cd", "nndsvda"), ("mu", "nndsvda"), ("cd", "nndsvd"))
    ]
    np.testing.assert_allclose(ends, ends[0], rtol=1e-3)


def test_repeated_rows_double_the_fit_terms():
    """Doubling the rows doubles both fit terms, which is equivalent to halving beta and gamma."""
    X, Y = make_pml(60, 8, n_labels=4, random_state=0)
    once = quiet_fit(X, Y, beta=0.5, gamma=0.5, tol=1e-10)
    twice = quiet_fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), beta=1.0, gamma=1.0, tol=1e-10)
    assert twice.objective_history_[-1] == pytest.approx(2 * once.objective_history_[-1], rel=1e-6)
    np.testing.assert_allclose(twice.scores_, once.scores_, atol=1e-3 * once.scores_.max())


@pytest.mark.slow
def test_ranking_does_not_depend_on_the_number_of_threads():
    digits = load_digits_attributes()
    rankings = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            rankings.append(quiet_fit(digits.X, digits.Y_candidates).ranking_)
    assert (rankings[0] == rankings[1]).all()


def test_objective_never_increases_in_single_precision():
    digits = load_digits_attributes()
    history = quiet_fit(
        digits.X.astype(np.float32), digits.Y_candidates, tol=0, max_iter=150
    ).objective_history_
    assert np.diff(history).max() <= 0


def test_stages_can_be_disabled(tiny):
    X, Y = tiny
    plain = quiet_fit(X, Y, reconstruct_labels=False, reconstruct_weights=False, scale=None)
    assert (plain.label_confidence_ == Y).all()
    np.testing.assert_allclose(plain.label_information_, information_of_pairs(cooccurrence(Y), len(Y)))
    full = quiet_fit(X, Y, reconstruct_labels=False, scale=None)
    np.testing.assert_allclose(full.coef_, plain.label_information_ @ plain.coef_)


def test_constant_labels_keep_the_candidates():
    assert (label_confidence(np.ones((4, 2))) == 1).all()
    assert (label_confidence(sp.csr_matrix(np.ones((4, 2)))).toarray() == 1).all()


def test_binned_information_matches_the_definition(tiny):
    X, Y = tiny
    selector = quiet_fit(X, Y, mi_estimator="binned", n_bins=4)
    np.testing.assert_allclose(selector.label_information_, symbol_mutual_information(label_confidence(Y), 4))


def test_verbose_fit_logs_every_iteration(tiny, caplog):
    quiet_fit(*tiny, max_iter=3)
    assert not caplog.records
    quiet_fit(*tiny, max_iter=3, verbose=1)
    assert [record.iteration for record in caplog.records] == [1, 2, 3]
