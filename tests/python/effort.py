"""How many random inputs a test tries: all, a third of them, or a tenth."""

import math

#: What share of its rounds a test makes: of `pytest --thorough`, of `pytest`, and of `pytest --quick`.
SHARES = {"thorough": 1.0, "usual": 1 / 3, "quick": 1 / 10}
tier = "thorough"  # until pytest's options are known; programs outside of pytest try all


def rounds(all_of_them: int, least: int = 2) -> int:
    """Return how many of so many rounds to make, at least `least` unless there are fewer."""
    return min(all_of_them, max(least, math.ceil(SHARES[tier] * all_of_them)))
