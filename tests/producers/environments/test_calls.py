"""Calls are read, never run; whatever else the text is, it is a CallError of one sentence."""

import inspect
import threading

import pytest

from producers.environments.calls import Call, CallLimits, Value, parse_call, render
from producers.environments.errors import CallError

HOSTILE = [
    "",
    " ",
    "cd",
    "1",
    "import os",
    "__import__('os').system('true')",
    "__import__('os')",
    "os.system('true')",
    "a.b.c()",
    "().__class__.__bases__[0].__subclasses__()",
    "f(a=().__class__)",
    "f(os.environ)",
    "_load_scenario(scenario={})",
    "__init__()",
    "f(_private=1)",
    "f([x for x in [1]])",
    "f({x: 1 for x in [1]})",
    "f(x for x in [1])",
    "f(lambda: 1)",
    "f(f'{1}')",
    "f(f'{__import__(\"os\")}')",
    "f(*[1])",
    "f(**{'a': 1})",
    "f({**{}})",
    "f(g())",
    "f(a=g(1))",
    "f(name)",
    "f(a[0])",
    "f(a:=1)",
    "f(1 if 1 else 2)",
    "f(1 and 2)",
    "f(not 1)",
    "f('a' * 10**9)",
    "f(10**9)",
    "f(1 + 1)",
    "f(--1)",
    "f(-True)",
    "f(~1)",
    "f({1})",
    "f(b'a')",
    "f(1j)",
    "f(...)",
    "f({[]: 1})",
    "f(a=1, a=2)",
    "f(a=1); g()",
    "f()\ng()",
    "f()()",
    "f()[0]",
    "await f()",
    "f('a'",
    "f(\x00)",
    "\x00",
    "f('\ud800')",
    "f('\\ud800')",
    f"f({'9' * 5000})",
    f"f(0x{'f' * 9000})",
    f"f(a='{'a' * 1_000_000}')",
    "a" * 1_000_000,
    "(" * 1_000_000,
    "(" * 19_000,
    "f(" + "[" * 9_000 + "]" * 9_000 + ")",
    "f(" + "[" * 150 + "]" * 150 + ")",
    "f(" + "-" * 19_000 + "1)",
    "f(" + "not " * 4_500 + "1)",
    "f(" + "1+" * 9_000 + "1)",
    "f(" * 6_000,
    "a" + ".b" * 9_000 + "()",
    "f" + "()" * 9_000,
    "lambda:" * 2_800 + "1",
    "f(" + "1 if 1 else " * 1_500 + "1)",
    "f([" + "1," * 5_000 + "])",
]


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:24]) + f"-{number}" for number, text in enumerate(HOSTILE)])
def test_hostile_text_is_a_call_error_of_one_sentence(text: str) -> None:
    with pytest.raises(CallError) as caught:
        parse_call(text)
    assert 0 < len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


def test_hostile_text_does_no_harm_in_a_thread_with_its_smaller_stack() -> None:
    outcomes: list[str] = []

    def read() -> None:
        for text in HOSTILE:
            try:
                parse_call(text)
            except CallError:
                outcomes.append("refused")

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert len(outcomes) == len(HOSTILE)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("cd(folder='a')", Call("cd", (), (("folder", "a"),))),
        ("  cd ( 'a' )  # there", Call("cd", ("a",))),
        ("ls()", Call("ls")),
        (
            "f(1, -2.5, True, None, x=[1, ('a',)], y={'k': -1})",
            Call("f", (1, -2.5, True, None), (("x", [1, ("a",)]), ("y", {"k": -1}))),
        ),
        ("f('it''s')", Call("f", ("its",))),
        ("f(1e999)", Call("f", (float("inf"),))),
        ("f('\\u00e9 \u00e9')", Call("f", ("é é",))),
    ],
)
def test_literal_arguments_pass(text: str, call: Call) -> None:
    assert parse_call(text) == call


@pytest.mark.parametrize(
    "value",
    [
        0,
        -7,
        1.5,
        -1e300,
        float("inf"),
        float("-inf"),
        True,
        None,
        "a'b\"c\n",
        [1, [2]],
        (1,),
        (),
        {"a": (1, 2)},
        {1: None},
    ],
)
def test_a_call_rendered_and_read_again_is_equal(value: Value) -> None:
    call = Call("f", (value,), (("k", value),))
    assert parse_call(call.text()) == call
    assert parse_call(call.text()).text() == call.text()
    assert render(value) in call.text()


def test_each_limit_bites() -> None:
    limits = CallLimits(text=60, depth=2, nodes=4, string=5, int_bits=8)
    for text in ["f('123456')", "f(256)", "f([[[1]]])", "f(1, 2, 3, 4, 5)", "f(" + " " * 60 + ")"]:
        with pytest.raises(CallError):
            parse_call(text, limits)
    assert parse_call("f([[255]], '12345')", limits).args == ([[255]], "12345")


def test_positional_and_keyword_arguments_bind_to_the_same_names() -> None:
    def move(source: str, destination: str, force: bool = False) -> None: ...

    signature = inspect.signature(move)
    bound = parse_call("move('a', destination='b')").bound(signature)
    assert (
        bound == parse_call("move(source='a', destination='b')").bound(signature) == {"source": "a", "destination": "b"}
    )
    for text in ["move('a')", "move('a', 'b', source='c')", "move('a', 'b', where=1)", "move(1, 2, 3, 4)"]:
        with pytest.raises(CallError):
            parse_call(text).bound(signature)


def test_values_are_fresh_with_every_reading() -> None:
    first, second = parse_call("f([1])"), parse_call("f([1])")
    assert first.args[0] is not second.args[0]
