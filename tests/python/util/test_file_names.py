"""Names of test files: pytest imports them by their base name, so that two alike stop one of them."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_every_test_file_has_a_name_of_its_own():
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.name != "__init__.py")
    assert len(names) > 200
    assert [name for name, times in names.items() if times > 1] == []
