"""Every function of the simulators can be asked for in words that give no name away."""

import re

import pytest

from producers.environments.bfcl.documents import tools_of
from producers.synthesis.bfcl.toolboxes import OWNERS, TOOLBOXES
from producers.synthesis.bfcl.words import PHRASES
from producers.synthesis.judging import leaked

ALWAYS_FAILS = {"get_outside_temperature_from_weather_com"}


@pytest.mark.parametrize("owner", sorted(TOOLBOXES))
def test_a_class_has_templates_for_all_its_functions(owner: str) -> None:
    assert {tool.name for tool in tools_of(owner)} - ALWAYS_FAILS == set(TOOLBOXES[owner].functions)


@pytest.mark.parametrize("owner", sorted(TOOLBOXES))
def test_templates_speak_of_documented_parameters_only_and_name_no_function(owner: str) -> None:
    parameters = {tool.name: set(tool.parameters["properties"]) for tool in tools_of(owner)}
    for name, function in TOOLBOXES[owner].functions.items():
        table = function.table
        assert set(table.arguments) | table.implied | set(table.vague) | set(table.words) <= parameters[name], name
        for clause in (*table.say, *(clause for case in table.cases for clause in case.say)):
            assert set(re.findall(r"[{<](\w+)[}>]", clause)) <= parameters[name], name
            assert not leaked(re.sub(r"[{<]\w+[}>]", "it", clause), set(OWNERS)), clause


@pytest.mark.parametrize("owner", sorted(TOOLBOXES))
def test_chains_are_of_one_class(owner: str) -> None:
    assert {name for chain in TOOLBOXES[owner].chains for name in chain} <= set(TOOLBOXES[owner].functions)


def test_what_can_stay_open_can_be_supplied() -> None:
    assert all(bool(phrase.vague) == bool(phrase.supply) for phrase in PHRASES.values())
    assert all("{}" in phrase.supply for phrase in PHRASES.values() if phrase.supply)


def test_quoted_content_is_no_leak_but_a_bare_name_or_an_identifier_is() -> None:
    names = {"sort", "cat"}
    assert leaked("Please read 'sort me.txt' out.", names) == []
    assert leaked("Please sort it.", names) == ["sort"]
    assert leaked("Use fuelAmount here.", names) == ["fuelAmount"]
    assert leaked("Use file_name here.", names) == ["file_name"]
    assert leaked("Use pay(40) here.") == ["pay"]
