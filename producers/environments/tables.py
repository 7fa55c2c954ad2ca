"""Tables beside the code: TOML files of the package, read once and checked against a model; they hold no code."""

import json
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from producers.environments.errors import TableError
from producers.environments.jsonlines import Record, flaw

T = TypeVar("T", bound=Record)


def load(path: Path, kind: type[T]) -> T:
    """The table of a file. Raises TableError, one sentence that names the file and the entry, for any flaw."""
    try:
        return kind.model_validate_json(json.dumps(tomllib.loads(path.read_text("utf-8"))))
    except ValidationError as error:
        raise TableError(f"{path}: {flaw(error)}") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise TableError(f"{path} is not TOML of texts, numbers, lists and tables: {error}") from None
