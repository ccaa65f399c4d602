//! Times and rates from curves: a robust least-squares fit in logarithms.
//!
//! The time of a point is linear in the times of the card's steps and in the reciprocals of
//! its rates, `T = k + Σ θ·c`, but for one figure that multiplies steps. The fit minimises
//! `Σ ρ(ln T - ln measured) + Σ ((ln θ - prior) / σ)² / 2` by Levenberg–Marquardt with
//! reweighting; ρ is quadratic for small errors and linear for large ones, since logs have
//! outliers. What no point determines stays at its prior.

/// Errors above this (6 %) count linearly: about the spread of repeated runs in the logs.
pub(crate) const SCALE: f64 = 0.06;
/// Points of a curve are not independent of each other: what their number counts for.
const WEIGHT: f64 = 0.5;
const ITERATIONS: usize = 60;

/// A prior on `ln θ`: its centre may follow the first figure (the time per byte).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// Centre of `ln θ`, or of `ln (θ / θ₀)`.
    pub centre: f64,
    /// Whether it is relative to figure 0.
    pub relative: bool,
    /// Standard deviation of `ln θ`.
    pub sigma: f64,
}

/// Time of one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub constant: f64,
    /// Nanoseconds for each unit of each figure.
    pub linear: Vec<f64>,
    /// The same for each unit of the factor above one, if there is a factor (the last figure).
    pub factored: Vec<f64>,
    pub measured_ns: f64,
}

/// What the fit found.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    pub theta: Vec<f64>,
    /// Standard deviation of each `ln θ`.
    pub spread: Vec<f64>,
    /// Share of what is known of each `ln θ` that is from the points, 0 to 1.
    pub informed: Vec<f64>,
    /// What was minimised.
    pub cost: f64,
    /// Median |ln(model / measured)| over the rows.
    pub typical_error: f64,
}

impl Row {
    /// Time with figures `theta`.
    pub fn time_at(&self, theta: &[f64]) -> f64 {
        self.time(theta, &mut vec![0.0; theta.len()])
    }

    /// Time with figures `theta`; fills in its derivatives by each `ln θ`.
    fn time(&self, theta: &[f64], slopes: &mut [f64]) -> f64 {
        let figures = self.linear.len();
        let factor = theta.get(figures).map_or(0.0, |factor| factor - 1.0);
        let mut time = self.constant;
        let mut by_factor = 0.0;
        for j in 0..figures {
            let extra = self.factored.get(j).copied().unwrap_or(0.0);
            let part = theta[j] * (self.linear[j] + factor * extra);
            slopes[j] = part;
            time += part;
            by_factor += theta[j] * extra;
        }
        if let Some(last) = theta.get(figures) {
            slopes[figures] = by_factor * last;
        }
        time.max(1.0)
    }
}

/// Fits `rows`, from the centres of `priors`.
pub(crate) fn solve(rows: &[Row], priors: &[Prior], limits: &[(f64, f64)]) -> Solution {
    let mut x: Vec<f64> = Vec::with_capacity(priors.len());
    for prior in priors {
        let base = if prior.relative { x[0] } else { 0.0 };
        x.push(base + prior.centre);
    }
    clamp(&mut x, limits);
    let mut damping = 1e-2;
    let mut cost = cost_of(rows, priors, &x);
    for _ in 0..ITERATIONS {
        let (normal, gradient) = equations(rows, priors, &x);
        let mut damped = normal.clone();
        for (j, line) in damped.iter_mut().enumerate() {
            line[j] *= 1.0 + damping;
        }
        let Some(step) = cholesky(&damped).map(|lower| substitute(&lower, &gradient)) else {
            damping *= 10.0;
            continue;
        };
        let mut next: Vec<f64> = x
            .iter()
            .zip(&step)
            .map(|(at, by)| at - by.clamp(-2.0, 2.0))
            .collect();
        clamp(&mut next, limits);
        let reached = cost_of(rows, priors, &next);
        if reached < cost {
            let gain = cost - reached;
            let promised: f64 = gradient.iter().zip(&step).map(|(g, s)| g * s).sum::<f64>() / 2.0;
            (x, cost) = (next, reached);
            damping = match gain / promised.max(1e-12) {
                ..0.3 => damping * 3.0,
                0.3..0.7 => damping,
                _ => (damping / 5.0).max(1e-9),
            };
            if gain < 1e-7 * (1.0 + cost) {
                break;
            }
        } else {
            damping *= 5.0;
            if damping > 1e9 {
                break;
            }
        }
    }
    finish(rows, priors, x, cost)
}

fn finish(rows: &[Row], priors: &[Prior], x: Vec<f64>, cost: f64) -> Solution {
    let (normal, _) = equations(rows, priors, &x);
    let lower = cholesky(&normal);
    let mut spread = Vec::new();
    let mut informed = Vec::new();
    for (j, prior) in priors.iter().enumerate() {
        let variance = lower.as_ref().map_or(prior.sigma * prior.sigma, |lower| {
            let mut unit = vec![0.0; x.len()];
            unit[j] = 1.0;
            substitute(lower, &unit)[j]
        });
        spread.push(variance.sqrt());
        informed.push((1.0 - variance / (prior.sigma * prior.sigma)).clamp(0.0, 1.0));
    }
    let theta: Vec<f64> = x.iter().map(|x| x.exp()).collect();
    let mut slopes = vec![0.0; x.len()];
    let errors = rows
        .iter()
        .map(|row| (row.time(&theta, &mut slopes) / row.measured_ns).ln());
    let typical_error = median(errors.map(f64::abs).collect()).unwrap_or(0.0);
    Solution {
        theta,
        spread,
        informed,
        cost,
        typical_error,
    }
}

fn clamp(x: &mut [f64], limits: &[(f64, f64)]) {
    for (x, (low, high)) in x.iter_mut().zip(limits) {
        *x = x.clamp(*low, *high);
    }
}

fn prior_residual(prior: &Prior, x: &[f64], j: usize) -> f64 {
    let base = if prior.relative { x[0] } else { 0.0 };
    (x[j] - base - prior.centre) / prior.sigma
}

/// What is minimised.
pub(crate) fn cost_of(rows: &[Row], priors: &[Prior], x: &[f64]) -> f64 {
    let theta: Vec<f64> = x.iter().map(|x| x.exp()).collect();
    let mut slopes = vec![0.0; x.len()];
    let of_rows: f64 = rows
        .iter()
        .map(|row| misfit(row.time(&theta, &mut slopes), row.measured_ns))
        .sum();
    let of_priors: f64 = priors
        .iter()
        .enumerate()
        .map(|(j, prior)| prior_residual(prior, x, j).powi(2) / 2.0)
        .sum();
    of_rows + of_priors
}

/// What one point adds to what is minimised.
pub(crate) fn misfit(modelled_ns: f64, measured_ns: f64) -> f64 {
    let error = (modelled_ns / measured_ns).ln() / SCALE;
    WEIGHT * ((1.0 + error * error).sqrt() - 1.0)
}

/// Normal matrix and gradient at `x`.
fn equations(rows: &[Row], priors: &[Prior], x: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let n = x.len();
    let theta: Vec<f64> = x.iter().map(|x| x.exp()).collect();
    let mut normal = vec![vec![0.0; n]; n];
    let mut gradient = vec![0.0; n];
    let mut slopes = vec![0.0; n];
    for row in rows {
        let time = row.time(&theta, &mut slopes);
        let error = (time / row.measured_ns).ln();
        let scaled = error / SCALE;
        let weight = WEIGHT / (SCALE * SCALE) / (1.0 + scaled * scaled).sqrt();
        for slope in &mut slopes {
            *slope /= time;
        }
        for j in 0..n {
            gradient[j] += weight * error * slopes[j];
            for k in 0..=j {
                normal[j][k] += weight * slopes[j] * slopes[k];
            }
        }
    }
    for (j, prior) in priors.iter().enumerate() {
        let precision = 1.0 / (prior.sigma * prior.sigma);
        let pull = prior_residual(prior, x, j) * prior.sigma * precision;
        gradient[j] += pull;
        normal[j][j] += precision;
        if prior.relative {
            gradient[0] -= pull;
            normal[0][0] += precision;
            normal[j][0] -= precision;
        }
    }
    mirror(&mut normal);
    (normal, gradient)
}

/// Copies the lower half of a square matrix to the upper one.
fn mirror(matrix: &mut [Vec<f64>]) {
    for j in 0..matrix.len() {
        let (above, rest) = matrix.split_at_mut(j);
        for (line, value) in above.iter_mut().zip(&rest[0]) {
            line[j] = *value;
        }
    }
}

/// Lower factor of a positive definite matrix; `None` if it is not.
pub(crate) fn cholesky(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let mut lower = vec![vec![0.0; n]; n];
    for j in 0..n {
        for k in 0..=j {
            let dot: f64 = (0..k).map(|m| lower[j][m] * lower[k][m]).sum();
            let left = matrix[j][k] - dot;
            lower[j][k] = if j == k {
                if left <= 0.0 {
                    return None;
                }
                left.sqrt()
            } else {
                left / lower[k][k]
            };
        }
    }
    Some(lower)
}

/// Solves `L Lᵀ x = right`.
pub(crate) fn substitute(lower: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut x = right.to_vec();
    for j in 0..n {
        let dot: f64 = (0..j).map(|k| lower[j][k] * x[k]).sum();
        x[j] = (x[j] - dot) / lower[j][j];
    }
    for j in (0..n).rev() {
        let dot: f64 = (j + 1..n).map(|k| lower[k][j] * x[k]).sum();
        x[j] = (x[j] - dot) / lower[j][j];
    }
    x
}

/// Median of finite numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.retain(|number| number.is_finite());
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loose(centre: f64) -> Prior {
        Prior {
            centre,
            relative: false,
            sigma: 3.0,
        }
    }

    #[test]
    fn exact_points_give_the_figures_back_and_outliers_do_not_matter() {
        let truth = [100.0, 5000.0, 2.5];
        let mut rows: Vec<Row> = (0..12)
            .map(|i| Row {
                constant: 10.0,
                linear: vec![f64::from(1 << i), 1.0],
                factored: vec![if i % 2 == 0 { f64::from(1 << i) } else { 0.0 }, 0.0],
                measured_ns: 0.0,
            })
            .collect();
        for row in &mut rows {
            row.measured_ns = row.time(&truth, &mut [0.0; 3]);
        }
        rows[5].measured_ns *= 8.0;
        let limits = [(-50.0, 50.0); 3];
        let found = solve(&rows, &[loose(3.0), loose(9.0), loose(0.0)], &limits);
        for (found, truth) in found.theta.iter().zip(truth) {
            assert!((found / truth).ln().abs() < 0.02, "{found} {truth}");
        }
        assert!(found.informed.iter().all(|part| *part > 0.9));
    }

    #[test]
    fn what_no_point_tells_stays_at_its_prior() {
        let row = Row {
            constant: 0.0,
            linear: vec![7.0, 0.0],
            factored: Vec::new(),
            measured_ns: 700.0,
        };
        let relative = Prior {
            centre: 1.5,
            relative: true,
            sigma: 0.5,
        };
        let found = solve(&[row], &[loose(2.0), relative], &[(-50.0, 50.0); 2]);
        assert!(((found.theta[1] / found.theta[0]).ln() - 1.5).abs() < 1e-6);
        // What it is relative to is known, so its spread is about the prior's own.
        assert!(found.spread[1] > 0.45);
    }
}
