"""Former names of arguments: all of them work, with a warning that gives the present name."""

import inspect
import re
import warnings
from pathlib import Path

import public_calls
import pytest

import warpstack as ws

#: Arguments that the calls of `public_calls` leave out.
VALUES = {"sample_sms": 1}
#: What calls end in even so, without the extra and of a program without CUDA.
REFUSED = ("ipywidgets", "libcudart")
#: Names that are nowhere any more; `kernel` is still that of what only one kernel serves for.
GIVEN_UP = {
    "app_or_kernel",
    "app_or_kernels",
    "sampling",
    "rate",
    "sample_cycles",
    "share",
    "num_threads",
}


def renamed():
    """Yield every public function with former names, its name, and those."""
    for name, member in public_calls.public_callables():
        function = member.__init__ if inspect.isclass(member) else member
        names = getattr(function, "former_keywords", None)
        if names:
            yield name, names


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return public_calls.calls(public_calls.Given(tmp_path_factory.mktemp("former")))


@pytest.mark.parametrize(("name", "names"), list(renamed()), ids=lambda one: str(one))
def test_former_keyword_warns_once_and_works(name, names, calls):
    call = calls[name]
    for former, present in names.items():
        given = {**call.arguments}
        value = given.pop(present, VALUES.get(present))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with_former = public_calls.Call(name, call.function, given, call.rest, call.fresh)
                with_former(**{former: value})
            except ws.InputError as error:
                if not any(expected in str(error) for expected in REFUSED):
                    raise
        messages = [str(one.message) for one in caught if one.category is FutureWarning]
        assert len(messages) == 1, messages
        assert re.search(rf": {former} is called {present} now; .* goes in 0\.4", messages[0])
        where = next(one.filename for one in caught if one.category is FutureWarning)
        assert Path(where).name == "public_calls.py"  # who called
        with pytest.raises(TypeError, match=f"got both '{present}' and '{former}'"):
            public_calls.Call(
                name, call.function, {**given, present: value}, call.rest, call.fresh
            )(**{former: value})


def test_nothing_takes_what_was_given_up():
    for name, member in public_calls.public_callables():
        taken = set(inspect.signature(member).parameters)
        assert not taken & GIVEN_UP, name
    assert {former for _, names in renamed() for former in names} == GIVEN_UP | {"kernel"}


def test_the_former_name_of_the_followed_lines():
    profile = ws.memory.ReuseProfile.from_lines([1, 2, 1], sample_lines=1.0)
    with pytest.warns(FutureWarning, match="rate is called sample_lines now"):
        assert profile.rate == profile.sample_lines == 1.0
