"""The settings of a process: one frozen object, resolved once at the entry and passed down.

Lowest first: the defaults, the preset of the task source, a TOML file, environment variables ``RODS_*`` (nested names
with two underscores, ``RODS_RULES__SEED=2``), flags. What decides is `rules`, and only that is recorded in the log.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_serializer
from pydantic_settings import EnvSettingsSource, SettingsError

from eventlog.connection import Mechanism, Security
from rods.errors import UserError
from rods.wrong_setting import wrong_setting
from schemas.rules import Rules
from schemas.topics import DEFAULT_PREFIX
from streams.archive.durable import replace_durably

PRESETS = Path(__file__).parent / "presets"
WARM_START = Path(__file__).resolve().parents[1] / "examples" / "warm-start"
SCRIPTED = "scripted"
EMBEDDED = "embedded"
KAFKA = "kafka"
PASSWORD_VARIABLE = "RODS_CONNECTION__PASSWORD"  # noqa: S105 - a name, not a password


class ConnectionSettings(BaseModel):
    """How to reach a broker of yours. A password comes by environment or file, and is written nowhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    security_protocol: Security = Security.PLAINTEXT
    sasl_mechanism: Mechanism = Mechanism.SCRAM_SHA_512
    username: str = ""
    password: SecretStr = SecretStr("")
    password_file: str = Field("", description="its first line is the password")
    ca_file: str = Field("", description="certificates (PEM) that sign the broker's; empty: those of the system")

    @field_serializer("password", when_used="json")
    def _written(self, _: SecretStr) -> str:
        return ""


class Settings(BaseModel):
    """Every setting of a run. Only `load_settings` asks the environment, so that a run's record stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str = ""
    folder: str = ""
    tasks: str = Field("workbench", description="workbench, bfcl or a task file")
    policy: str = Field("warm-start", description="warm-start (comes with the project), scripted, or a model folder")
    broker: str = Field(EMBEDDED, description="embedded, kafka (started from KAFKA_HOME), or HOST:PORT with commas")
    broker_port: int = Field(0, ge=0, le=65535, description="of a broker started here; 0: a free one")
    prefix: str = Field(DEFAULT_PREFIX, min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")
    partitions: int = Field(4, ge=1, le=512, description="N, fixed for a run")
    warehouse: str = Field(EMBEDDED, description="embedded, or a DSN for clickhouse-connect")
    dashboard_port: int = Field(0, ge=0, le=65535, description="0: a free one")
    metrics_port: int = Field(0, ge=0, le=65471, description="of the first streams worker; 0: no metrics")
    streams_workers: int = Field(1, ge=1, le=64, description="processes")
    rollout_workers: int = Field(1, ge=1, le=64, description="processes")
    synthesis_workers: int = Field(1, ge=1, le=64, description="processes")
    threads: int = Field(1, ge=1, le=64, description="of a model worker")
    learner_threads: int = Field(2, ge=1, le=64)
    checkpoint_steps: int = Field(0, ge=0, description="steps between places to resume from; 0: epochs alone")
    connection: ConnectionSettings = ConnectionSettings()
    rules: Rules = Rules()

    @property
    def run_folder(self) -> Path:
        return Path(self.folder)

    @property
    def starts_broker(self) -> bool:
        """Whether the broker belongs to the run, rather than being reached by `connection`."""
        return self.broker in (EMBEDDED, KAFKA)

    @property
    def scripted(self) -> bool:
        return self.policy == SCRIPTED

    @property
    def policy_folder(self) -> Path:
        """The model folder that the policy setting names."""
        return WARM_START if self.policy == "warm-start" else Path(self.policy)


def load_settings(file: Path | None = None, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings under a TOML file and flags (nested mappings). Raises UserError in one sentence."""
    given = dict(flags or {})
    chosen = _read_toml(file) if file else {}
    tasks = str(given.get("tasks") or os.environ.get("RODS_TASKS") or chosen.get("tasks") or "workbench")
    if isinstance(given.get("rules", {}), Mapping):
        given = merged(given, {"rules": {"source": tasks}})
    connection = given.get("connection")
    if isinstance(connection, Mapping) and "password" in connection:
        raise UserError(f"a password does not belong on a command line, where all may read it; set {PASSWORD_VARIABLE}")
    environment = EnvSettingsSource(Settings, env_prefix="RODS_", env_nested_delimiter="__")  # type: ignore[arg-type]
    try:
        settings: dict[str, Any] = {}
        for layer in (_read_toml(preset_path(tasks)), chosen, environment(), given):
            settings = merged(settings, layer)
        return Settings.model_validate(settings)
    except ValidationError as error:
        raise UserError(_one_sentence(error)) from error
    except SettingsError as error:
        raise UserError(_no_json(error)) from error


def preset_path(tasks: str) -> Path:
    """The preset of a task source; a task file has that of the workbench."""
    named = PRESETS / f"{tasks}.toml"
    return named if tasks.isalnum() and named.is_file() else PRESETS / "workbench.toml"


def read_resolved(path: Path) -> Settings:
    """The settings a run wrote (JSON), as they are: no preset, and of the environment the password alone.

    Raises UserError.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if password := os.environ.get(PASSWORD_VARIABLE):
            document = merged(document, {"connection": {"password": password}})
        return Settings.model_validate(document)
    except OSError as error:
        raise UserError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (ValueError, ValidationError) as error:
        raise UserError(f"{path} does not hold the settings of this version of rods") from error


def write_resolved(settings: Settings, path: Path) -> None:
    """Writes the settings as JSON; the file appears complete and durable, since no run goes on without it."""
    text = json.dumps(settings.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"
    replace_durably(path, text.encode())


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`, table by table."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def parse_assignment(text: str) -> dict[str, Any]:
    """``rules.measure.window=2`` as a nested mapping. Raises UserError."""
    name, equals, value = text.partition("=")
    if not equals or not name.replace(".", "").replace("_", "").isalnum():
        raise UserError(f"a setting is given as name.name=value, not {text[:80]!r}")
    nested: Any = value
    for part in reversed(name.split(".")):
        nested = {part: nested}
    result: dict[str, Any] = nested
    return result


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the settings file {path} is not valid TOML: {error}") from error


def _one_sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "extra_forbidden":
        return f"there is no setting {'.'.join(map(str, first['loc']))}; there are {', '.join(_beside(first['loc']))}"
    return wrong_setting(error)


def _no_json(error: SettingsError) -> str:
    """The variable that holds a group of settings and cannot be read as one."""
    named = re.search(r'field "(\w+)"', str(error))
    variable = f"RODS_{named[1].upper()}" if named else "RODS_*"
    return f"the environment variable {variable} must hold a JSON object, or be set name by name, as {variable}__NAME"


def _beside(place: tuple[int | str, ...]) -> list[str]:
    """The settings that exist at the place where one was looked for."""
    model: type[BaseModel] = Settings
    for part in place[:-1]:
        inner = model.model_fields[str(part)].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return [".".join([*map(str, place[:-1]), name]) for name in model.model_fields]
