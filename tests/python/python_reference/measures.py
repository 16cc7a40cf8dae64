"""Plain definition of the error measures, over lists of pairs without NaN."""

import math


def mae(pairs):
    return sum(abs(p - r) for p, r in pairs) / len(pairs)


def mape(pairs):
    """Return the mean over references that are not 0 (None without one), and how many are 0."""
    terms = [abs(p - r) / abs(r) for p, r in pairs if r != 0]
    return (sum(terms) / len(terms) if terms else None), len(pairs) - len(terms)


def nrmse(pairs, by):
    reference = [r for _, r in pairs]
    size = abs(sum(reference) / len(pairs)) if by == "mean" else max(reference) - min(reference)
    error = math.sqrt(sum((p - r) ** 2 for p, r in pairs) / len(pairs))
    return error / size if size else None


def pearson(pairs):
    n = len(pairs)
    mean_p, mean_r = sum(p for p, _ in pairs) / n, sum(r for _, r in pairs) / n
    both = sum((p - mean_p) * (r - mean_r) for p, r in pairs)
    only_p = sum((p - mean_p) ** 2 for p, _ in pairs)
    only_r = sum((r - mean_r) ** 2 for _, r in pairs)
    return both / math.sqrt(only_p * only_r)
