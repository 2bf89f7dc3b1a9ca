"""Discrete gamma rates (Yang 1994, J. Mol. Evol. 39:306) inside compiled code."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted


@uncounted
def regularised_gamma(a, x):
    """P(a, x) = γ(a, x) / Γ(a): the series below a + 1, Lentz's continued fraction above (Abramowitz and
    Stegun 6.5.29 and 6.5.31)."""
    if x <= 0.0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        n = a
        while term > total * 1e-17:
            n += 1.0
            term *= x / n
            total += term
        return total * front
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    h = d
    for i in range(1, 10000):
        an = -i * (i - a)
        b += 2.0
        d = 1.0 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return 1.0 - front * h


@uncounted
def gamma_quantile(a, p):
    """x with P(a, x) = p, by Newton steps in log x kept inside a bracket; 0 where x underflows."""
    log_x = (math.log(p) + math.lgamma(a + 1.0)) / a
    if log_x < -700.0:
        return 0.0
    if (
        a > 0.5
    ):  # Wilson and Hilferty 1931, with a normal quantile good to 5e-4 (Abramowitz and Stegun 26.2.23)
        t = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
        poly = 2.515517 + t * (0.802853 + t * 0.010328)
        z = t - poly / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
        z = -z if p < 0.5 else z
        cube = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * math.sqrt(a))
        if cube > 0.1:
            log_x = math.log(a) + 3.0 * math.log(cube)
    low, high = -750.0, 20.0
    for _ in range(200):
        x = math.exp(log_x)
        error = regularised_gamma(a, x) - p
        if error > 0.0:
            high = log_x
        else:
            low = log_x
        slope = math.exp(a * log_x - x - math.lgamma(a))
        step = error / slope if slope > 0.0 else 1e300
        proposal = log_x - step
        if not (low < proposal < high):
            proposal = 0.5 * (low + high)
        if abs(proposal - log_x) < 1e-15 * max(1.0, abs(log_x)):
            return math.exp(proposal)
        log_x = proposal
    return math.exp(log_x)


@uncounted
def discrete_gamma(alpha, median, n, rates):
    """Rates of n equally likely categories with mean 1, into rates[:n]: category means, or medians scaled
    to mean 1."""
    if n == 1:
        rates[0] = 1.0
        return
    if median:
        total = 0.0
        for i in range(n):
            rates[i] = gamma_quantile(alpha, (i + 0.5) / n)
            total += rates[i]
        for i in range(n):
            rates[i] *= n / total
        return
    previous = 0.0
    for i in range(n):
        mass = 1.0 if i == n - 1 else regularised_gamma(alpha + 1.0, gamma_quantile(alpha, (i + 1.0) / n))
        rates[i] = (mass - previous) * n
        previous = mass
