"""How many random inputs a test tries: all, a third of them, or a tenth."""

import math

#: What share of its rounds a test makes: of `pytest --thorough`, of `pytest`, and of `pytest --quick`.
SHARES = {"thorough": 1.0, "usual": 1 / 3, "quick": 1 / 10}
tier = "thorough"  # until pytest's options are known; programs outside of pytest try all


def rounds(all_of_them: int, costly: bool = False) -> int:
    """Return how many of so many rounds to make, at least two unless there are fewer.

    Those that take a second each are `costly`: a tenth of them are made without an option, too.
    """
    share = SHARES["quick"] if costly and tier == "usual" else SHARES[tier]
    return min(all_of_them, max(2, math.ceil(share * all_of_them)))
