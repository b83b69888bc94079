"""The annual component against plain Python, month for month."""

import math

import numpy as np
import pytest
from oracle.yule_walker import Oracle, earlier, stationary_shares
from test_par_estimation import as_history, history_case

from cobre.stochastic.par import inflow_model


class AnnualOracle(Oracle):
    """Adds the mean of the twelve months before a month, filed under the month before it."""

    def __init__(self, series: dict[tuple[int, int], float]) -> None:
        super().__init__(series)
        self.year = {}
        for year, month in series:
            back = [earlier(year, month, n) for n in range(12)]
            # A year that no month follows explains nothing.
            if all(key in series for key in (*back, earlier(year, month, -1))):
                self.year[year, month] = sum(series[key] for key in back) / 12
        of_month = {m: [value for (_, n), value in self.year.items() if n == m] for m in range(12)}
        self.year_count = {m: len(v) for m, v in of_month.items()}
        self.year_mean = {m: sum(v) / len(v) for m, v in of_month.items()}
        self.year_std = {m: float(np.std(v)) for m, v in of_month.items()}

    def with_year(self, month: int, lag: int) -> float:
        """Correlation of the value ``lag`` months before a month with the year that ends right before it."""
        other, last = (month - lag) % 12, (month - 1) % 12
        total = 0.0
        for year in sorted({key[0] for key in self.series}):
            value, mean = earlier(year, month, lag), earlier(year, month, 1)
            if (year, month) in self.series and value in self.series and mean in self.year:
                total += (self.series[value] - self.mean[other]) * (self.year[mean] - self.year_mean[last])
        count = max(len(self.values[other]), self.year_count[last])
        return total / count / (self.std[other] * self.year_std[last])

    def system(self, month: int, order: int) -> np.ndarray:
        """Correlations of the value itself, its lags, and the year."""
        matrix = np.eye(order + 2)
        for i in range(order + 1):
            for j in range(i + 1, order + 1):
                matrix[i, j] = matrix[j, i] = self.rho((month - i) % 12, j - i)
            matrix[i, order + 1] = matrix[order + 1, i] = self.with_year(month, i)
        return matrix

    def annual_order(self, month: int, ceiling: int) -> int:
        limit = 1.96 / math.sqrt(len(self.values[month]))
        found = 1
        for order in range(1, ceiling + 1):
            precision = np.linalg.inv(self.system(month, order))
            partial = -precision[0, order] / math.sqrt(precision[0, 0] * precision[order, order])
            found = order if abs(partial) > limit else found
        return found


@pytest.mark.parametrize("seed", range(4))
def test_annual_models_equal_the_plain_implementation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = 12 * 60
    series = np.zeros(length + 24)
    for month in range(12, length + 24):
        past = 0.3 * series[month - 1] + 0.15 * series[month - 2]
        series[month] = past + 0.35 * series[month - 12 : month].mean() + rng.normal()
    at = np.arange(length) % 12
    values = (200.0 + 10.0 * at + (5.0 + at) * series[24:])[np.newaxis]
    oracle = AnnualOracle({(1950 + n // 12, n % 12): float(value) for n, value in enumerate(values[0])})
    model = inflow_model(history_case(as_history(values, 1950), order_selection="pacf_annual", max_order=4))
    fit = model.fit
    assert fit is not None
    in_effect: dict[int, list[float]] = {}
    lowered = {item.season_id for item in fit.reductions}
    for month in range(12):
        order = int(fit.order[month, 0])
        assert fit.selected_order[month, 0] == oracle.annual_order(month, 4)
        assert month in lowered or order == fit.selected_order[month, 0]
        matrix = oracle.system(month, order)
        solution = np.linalg.solve(matrix[1:, 1:], matrix[0, 1:])
        np.testing.assert_allclose(fit.coefficients[month, 0, :order], solution[:-1], rtol=1e-8, atol=1e-12)
        assert fit.annual_coefficient[month, 0] == pytest.approx(solution[-1], rel=1e-8)
        left = 1.0 - float(solution @ matrix[0, 1:])
        assert fit.residual_ratio[month, 0] == pytest.approx(math.sqrt(left), rel=1e-9)
        assert fit.annual_std_m3s[month, 0] == pytest.approx(oracle.year_std[(month - 1) % 12], rel=1e-12)
        # In original units every one of the twelve lags has its share of the year.
        share = solution[-1] * oracle.std[month] / oracle.year_std[(month - 1) % 12] / 12
        assert model.psi[month, 0, 11] == pytest.approx(share, rel=1e-8)
        phi = [*solution[:-1].tolist(), *[0.0] * 12][:12]
        year = solution[-1] / oracle.year_std[(month - 1) % 12] / 12
        in_effect[month] = [c + year * oracle.std[(month - n) % 12] for n, c in enumerate(phi, start=1)]
    noise = np.array(list(oracle.std.values())) * stationary_shares(in_effect)
    np.testing.assert_allclose(model.sigma_m3s[:, 0], noise, rtol=1e-8)
