from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from rods import settings
from rods.errors import UserError
from rods.settings import (
    PRESETS,
    Settings,
    load_settings,
    merged,
    parse_assignment,
    preset_path,
    read_resolved,
    write_resolved,
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("RODS_")]:
        monkeypatch.delenv(name)


def settings_file(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("preset", sorted(path.stem for path in PRESETS.glob("*.toml")))
def test_every_preset_loads(preset: str) -> None:
    assert load_settings(flags={"tasks": preset}).rules.source == preset


@pytest.fixture
def _presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    presets = tmp_path / "presets"
    presets.mkdir()
    (presets / "workbench.toml").write_text("[rules.rollout]\nk = 8\ntasks_per_step = 16\n")
    (presets / "bfcl.toml").write_text("[rules.rollout]\ntasks_per_step = 100\n")
    monkeypatch.setattr(settings, "PRESETS", presets)


@pytest.mark.usefixtures("_presets")
def test_each_layer_lies_over_the_one_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().rules.rollout.k == 16
    assert load_settings().rules.rollout.k == 8
    file = settings_file(tmp_path, "[rules.rollout]\nk = 5\n[rules.select]\nquota = 3\n")
    assert load_settings(file).rules.rollout.k == 5
    monkeypatch.setenv("RODS_RULES__ROLLOUT__K", "6")
    assert load_settings(file).rules.rollout.k == 6
    found = load_settings(file, {"rules": {"rollout": {"k": 7}}})
    assert (found.rules.rollout.k, found.rules.rollout.tasks_per_step, found.rules.select.quota) == (7, 16, 3)


@pytest.mark.usefixtures("_presets")
def test_the_task_source_chooses_the_preset_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = settings_file(tmp_path, 'tasks = "bfcl"\n')
    assert load_settings(file).rules.rollout.tasks_per_step == 100
    monkeypatch.setenv("RODS_TASKS", "workbench")
    assert load_settings(file).rules.rollout.tasks_per_step == 16
    assert load_settings(file, {"tasks": "bfcl"}).rules.source == "bfcl"


def test_a_task_file_or_a_path_into_the_package_has_the_workbenchs_preset() -> None:
    assert preset_path("my/tasks.jsonl") == preset_path("../presets/bfcl") == PRESETS / "workbench.toml"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"rules": {"rollout": {"k": 1}}}, r"the setting rules\.rollout\.k must be at least 2, not 1$"),
        ({"rules": {"rollout": {"k": "1.5"}}}, r"the setting rules\.rollout\.k must be a whole number, not '1\.5'$"),
        ({"rules": {"rollout": "many"}}, r"the setting rules\.rollout must be a group of settings, not 'many'$"),
        ({"rules": {"measure": {"alpha_low": "low"}}}, r"the setting rules\.measure\.alpha_low must be a number, not"),
        (
            {"rules": {"measure": {"alpha_low": "0.9"}}},
            r"the setting rules\.measure: alpha_low must not exceed",
        ),
        ({"rules": {"select": {"rank_by": "x"}}}, r"the setting rules.select.rank_by must be 'phi' or 'variance', not"),
        ({"rules": {"pool": {"retire": "x"}}}, r"the setting rules\.pool\.retire must be true or false, not 'x'$"),
        ({"rules": "3"}, "the setting rules must be a group of settings, not '3'$"),
        ({"partitions": "9" * 5000}, r"the setting partitions must be a whole number, not '9{80}'$"),
        ({"connection": {"username": {"a": 1}}}, "the setting connection.username must be a text, not a group"),
        ({"rules": {"pool": {"p_maxx": 1}}}, r"there is no setting rules\.pool\.p_maxx; there are .*\.p_max,"),
        ({"partitions": "many"}, "the setting partitions must be a whole number, not 'many'"),
        ({"prefix": "a b"}, "the setting prefix must match .*, not 'a b'"),
        ({"prefix": "\x1b[2J"}, "the setting prefix must match"),
    ],
)
def test_a_wrong_setting_is_named_in_one_sentence(flags: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        load_settings(flags=flags)
    assert "\n" not in str(error.value)


def test_a_wrong_environment_variable_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RODS_RULES", "{not json")
    with pytest.raises(UserError, match=r"variable RODS_RULES must hold a JSON object") as error:
        load_settings()
    assert "\n" not in str(error.value)


def test_a_settings_file_that_is_missing_or_no_toml_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.toml")
    with pytest.raises(UserError, match="is not valid TOML"):
        load_settings(settings_file(tmp_path, "= 1"))


def test_resolved_settings_come_back_as_they_were_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = load_settings(flags={"run_id": "r", "rules": {"pool": {"inject_share": "0.30"}}})
    path = tmp_path / "settings.json"
    write_resolved(written, path)
    assert [found.name for found in tmp_path.iterdir()] == ["settings.json"]
    monkeypatch.setenv("RODS_PARTITIONS", "77")
    monkeypatch.setenv("RODS_RULES__SEED", "99")
    found = read_resolved(path)
    assert found == written and found.rules.pool.inject_share == Decimal("0.3")


def test_an_environment_that_would_not_load_does_not_touch_resolved_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = load_settings()
    write_resolved(written, tmp_path / "settings.json")
    monkeypatch.setenv("RODS_RULES__NONSENSE", "1")
    assert read_resolved(tmp_path / "settings.json") == written


@pytest.mark.parametrize("text", ["{", "[]", '{"partitions": 0}', '{"later": 1}'])
def test_resolved_settings_of_another_version_are_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(UserError, match="does not hold the settings of this version of rods"):
        read_resolved(tmp_path / "settings.json")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        setattr(Settings(), "partitions", 3)  # noqa: B010


def test_an_assignment_is_a_nested_mapping_and_others_are_refused() -> None:
    assert parse_assignment("rules.measure.window=2") == {"rules": {"measure": {"window": "2"}}}
    assert parse_assignment("policy=a=b") == {"policy": "a=b"}
    assert load_settings(flags=parse_assignment("rules.measure.window=2")).rules.measure.window == 2
    for text in ("rules.seed", "=1", "a-b=1", "a b=1"):
        with pytest.raises(UserError, match="a setting is given as"):
            parse_assignment(text)


def test_tables_are_merged_and_values_replaced() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}, "d": {"e": 5}}) == {
        "a": {"b": 4, "c": 2},
        "d": {"e": 5},
    }
