"""What pages show as printed is what is printed; `tools/page-outputs` prints it anew."""

import re

import outputs as module
import pytest
from outputs import SHOWING, cut_as, matches, name_of, outputs, printed_by, refreshed

WITH_OUTPUT = [page for page in SHOWING if any(not o.not_run for o in outputs(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_OUTPUT, ids=name_of)
def test_page_shows_what_is_printed(page, tmp_path):
    try:
        for output, printed in printed_by(page, tmp_path):
            shown = output.shown.text
            assert matches(shown, printed), f"{output.shown}: tools/page-outputs\n{printed}"
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not here (an extra of warpstack brings it)")


def test_some_pages_show_output():
    assert "tutorial/first-prediction.md" in map(name_of, WITH_OUTPUT)


@pytest.mark.parametrize("page", module.PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    """A block without a language could show an output that nothing compares."""
    text = re.sub(r"^(`{3,})(?:\w|\{).*?^\1 *$", "", page.read_text(), flags=re.DOTALL | re.M)
    assert "```" not in text, "after a command: ```output, else ```text"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 1\nb 2\n", "\na 1  \nb 2\n\n", True),
        ("a 1\nb 2\n", "a 1\nb 3\n", False),
        ("a 1\n", "a 1\nb 2\n", False),
        ("a 1\n...\nd\n", "a 1\nb\nc\nd\n", True),
        ("a 1\n...\nd\n", "a 1\nd\n", True),
        ("a 1\n...\n", "a 2\nd\n", False),
        ("took ... s\n", "took 1.5 s\n", True),
        ("took ... s\n", "took\n s\n", False),
        ("a.b\n", "acb\n", False),
    ],
)
def test_matches(shown, printed, same):
    assert matches(shown, printed) is same


def test_a_changed_output_is_cut_where_the_old_one_was():
    assert cut_as("old\n...\nend\n", "1\n2\n3\n4\n") == "1\n...\n4\n"
    assert cut_as("old\n", "1\n2\n") == "1\n2\n"
    longer = "title\n\nhead\nrow\nrow\n\nwords\n"
    assert cut_as("title\n\nold\n\n...\n", longer) == "title\n\nhead\nrow\nrow\n\n...\n"
    assert cut_as("title\n\nold\n\n...\n", "title\n\nrow\n") == "title\n\nrow\n...\n"
    with pytest.raises(ValueError, match="by hand"):
        cut_as("a\n...\nb\n...\n", "1\n2\n")


PAGE = """# A page

```sh
warpstack convert TRACE other > words.txt
warpstack info other --csv
```

```output
kernel,stale
...
```

```python
numbers = [1, 2]
print("two")
sum(numbers)
```

```output
stale
```

```sh
nvprof ./program
```

<!-- not run: takes nvprof -->
```output
stays
```

    >>> 6 * 7
    41
"""


def test_a_stale_page_is_written_anew(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    text = refreshed(page, tmp_path / "first")
    assert "\nkernel,name,code,grid" in text
    assert text.count("...") == 1
    assert "```output\ntwo\n3\n```" in text
    assert "```output\nstays\n```" in text
    assert "    >>> 6 * 7\n    42\n" in text
    page.write_text(text)
    assert refreshed(page, tmp_path / "second") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```output\n1\n```\n", "without a block of commands"),
        ("```sh\nwarpstack gpus\n```\n\nIt prints\n\n```output\n1\n```\n", "right before it"),
        ("```yaml\na: 1\n```\n\n```output\n1\n```\n", "output of a block of yaml"),
        ("```sh\nwarpstack gpus\n```\n\n```output\n...\n```\n", "that any output matches"),
        ("```sh\nnvprof ./p\n```\n\n```output\n1\n```\n", "nvprof is not run here"),
        ("```sh\nwarpstack info none\n```\n\n```output\n1\n```\n", "none"),
        ("```text\n", "does not end"),
    ],
)
def test_what_a_page_may_not_have(text, message, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises((ValueError, AssertionError), match=message):
        refreshed(page, tmp_path / "folder")


def test_an_error_is_shown_as_it_is_printed(tmp_path):
    page = tmp_path / "page.md"
    command = "```sh\nwarpstack predict TRACE --gpu pascal\n```\n\n```output\n"
    page.write_text(command + "warpstack: stale\n```\n")
    (line,) = re.findall(r"^warpstack: .*$", refreshed(page, tmp_path / "folder"), re.MULTILINE)
    assert "pascal-mdm" in line
