"""The closed vocabulary covers every text, and pieces join back into the text."""

from collections.abc import Iterator

import pytest

from producers.environments.calls import parse_call
from producers.environments.workbench.domains import Calendar, Contacts, Files, Wallet
from producers.environments.workbench.entities import NAMES
from producers.environments.workbench.generate import generate
from producers.environments.workbench.language import calls_of, join, split
from producers.environments.workbench.source import WorkbenchSource
from producers.environments.workbench.tools import TOOLS, tools_of
from producers.environments.workbench.vocabulary import words
from producers.rollouts.attempt import announcement
from schemas.task import TaskDefinition


def _texts(task: TaskDefinition) -> Iterator[str]:
    environment = WorkbenchSource().reset(task)
    for index, turn in enumerate(task.turns):
        yield announcement(task, index)
        yield from turn.requests
        yield from (tool.name for tool in environment.tools())
        for call in turn.ground_truth:
            yield call
            yield environment.call(call).text
        environment.judge()


def test_every_text_of_2000_tasks_splits_into_the_vocabulary_and_joins_back() -> None:
    vocabulary = set(words())
    for index in range(1000):
        for name in ("train", "heldout"):
            for text in _texts(generate(5, index, name)):
                assert set(split(text)) <= vocabulary, text
                assert join(split(text)) == text


def test_errors_are_in_the_vocabulary_whatever_is_called() -> None:
    vocabulary = set(words())
    values = [
        "'notes'",
        "'archive'",
        "'anna'",
        "'monday'",
        "'party'",
        "'oslo'",
        "7",
        "99",
        "0",
        "-1",
        "'x y z'",
        "True",
    ]
    for index in range(20):
        task = generate(6, index, "train")
        environment = WorkbenchSource().reset(task)
        for spec in TOOLS.values():
            for value in values:
                arguments = ", ".join(f"{parameter.name}={value}" for parameter in spec.parameters)
                for text in (f"{spec.name}({arguments})", f"{spec.name}({value})", f"{spec.name}(wrong={value})"):
                    assert set(split(environment.call(text).text)) <= vocabulary


def test_the_vocabulary_is_small_and_holds_no_white_space() -> None:
    assert len(words()) < 700
    assert all(split(word) == [word] for word in words())


def test_no_name_has_two_kinds() -> None:
    names = [name for group in NAMES.values() for name in group]
    assert len(names) == len(set(names))


def test_a_call_is_a_piece_per_name_key_and_value() -> None:
    assert split("pay(person='anna', amount=40)") == ["pay(", "person=", "'anna'", "amount=", "40", ")"]
    assert join(["balance(", ")"]) == "balance()"


def test_calls_end_at_their_bracket_and_a_rest_is_left_to_the_parser() -> None:
    pieces = split("balance() pay(person='anna', amount=40)")
    assert calls_of(pieces) == ("balance()", "pay(person='anna', amount=40)")
    assert calls_of([]) == ()
    assert calls_of(["balance(", ")", "pay("]) == ("balance()", "pay(")


@pytest.mark.parametrize("pieces", [[")"], ["person="], ["pay(", "pay(", ")"], ["'anna'", "40", ")"]])
def test_any_pieces_join_into_some_text(pieces: list[str]) -> None:
    assert isinstance(join(pieces), str)


def test_every_tool_is_a_method_has_templates_with_all_its_arguments_and_a_domain() -> None:
    classes = {"Files": Files, "Calendar": Calendar, "Wallet": Wallet, "Contacts": Contacts}
    for name, spec in TOOLS.items():
        assert callable(getattr(classes[spec.domain], name))
        assert spec in tools_of(spec.domain)
        for template in spec.say:
            assert all(f"{{{parameter.name}}}" in template for parameter in spec.parameters)


def test_templates_without_their_arguments_differ_between_tools() -> None:
    shapes = [
        " ".join(word if word[0] != "{" else "_" for word in text.split())
        for spec in TOOLS.values()
        for text in spec.say
    ]
    assert len(shapes) >= 2 * len(TOOLS)
    assert len(set(shapes)) == len(shapes)


def test_calls_of_generated_tasks_are_canonical() -> None:
    for index in range(100):
        for turn in generate(3, index, "train").turns:
            assert all(parse_call(text).text() == text for text in turn.ground_truth)
