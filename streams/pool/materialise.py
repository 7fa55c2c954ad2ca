"""The pool on disk, for other trainers: one JSON line and one Parquet row per member.

Rows have the columns that verl, TRL and prime-rl read from a data set of prompts: `prompt` (a list of role and
content), `data_source`, `ability`, `reward_model` and `extra_info`; `info` repeats the definition as JSON. Names carry
the epoch, the generation and the digest; a file appears complete or not at all.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.pool import PoolMaterialized
from schemas.rules import canonical_json
from schemas.task import TaskDefinition
from streams.pool.state import PoolState


def pool_rows(materialized: PoolMaterialized, state: PoolState) -> Iterator[dict[str, Any]]:
    """A row per member, ordered by task id."""
    for task in materialized.members:
        yield pool_row(state.definitions[task])


def pool_row(definition: TaskDefinition) -> dict[str, Any]:
    """A task in the form trainers read."""
    first = definition.turns[0].requests if definition.turns else ()
    truth = [list(turn.ground_truth) for turn in definition.turns]
    info = canonical_json(asdict(definition))
    return {
        "task": definition.task,
        "data_source": f"rods/{definition.source}",
        "prompt": [{"role": "user", "content": request} for request in first],
        "ability": definition.category,
        "reward_model": {"style": "rule", "ground_truth": canonical_json(truth)},
        "extra_info": {"index": definition.task, "parent": definition.parent or "", "turns": len(definition.turns)},
        "info": info,
    }


def write_pool(folder: Path, materialized: PoolMaterialized, state: PoolState) -> Path:
    """Writes ``pool-<epoch>-g<generation>-<digest>`` as .jsonl and .parquet; returns the path of the .jsonl.

    What is there already is left alone: the name says what it holds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"pool-{materialized.epoch:06d}-g{materialized.generation:04d}-{materialized.digest[:12]}"
    lines, table = folder / f"{stem}.jsonl", folder / f"{stem}.parquet"
    if lines.exists() and table.exists():
        return lines
    rows = list(pool_rows(materialized, state))
    scratch = folder / f".{stem}.partial"
    scratch.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows), encoding="utf-8")
    scratch.replace(lines)
    pq.write_table(pa.Table.from_pylist(rows), scratch)
    scratch.replace(table)
    return lines
