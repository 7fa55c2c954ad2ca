import json
from pathlib import Path

import pyarrow.parquet as pq

from streams.pool.materialise import pool_row, write_pool
from tests.streams.pool.build import closed, first_pool, group, rules, task

RULES = rules()


def test_a_pool_is_written_as_json_lines_and_parquet_with_one_row_a_member(tmp_path: Path) -> None:
    state = first_pool(RULES, "b", "a")
    assert state.materialized is not None
    lines = write_pool(tmp_path / "pools", state.materialized, state)
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["task"] for row in rows] == ["a", "b"]
    assert pq.read_table(lines.with_suffix(".parquet")).to_pylist() == rows
    assert {path.suffix for path in lines.parent.iterdir()} == {".jsonl", ".parquet"}


def test_the_name_says_epoch_generation_and_digest_and_what_is_there_is_left_alone(tmp_path: Path) -> None:
    state, decision = closed(first_pool(RULES, "a"), 1, RULES, group("a", 10))
    lines = write_pool(tmp_path, decision.materialized, state)
    assert lines.name == f"pool-000001-g0001-{decision.materialized.digest[:12]}.jsonl"
    before = lines.stat().st_mtime_ns
    assert write_pool(tmp_path, decision.materialized, state) == lines
    assert lines.stat().st_mtime_ns == before


def test_a_row_has_the_columns_that_trainers_read_and_the_whole_definition() -> None:
    row = pool_row(task("v", parent="a"))
    assert row["prompt"] == [{"role": "user", "content": "do"}]
    assert (row["data_source"], row["ability"]) == ("rods/workbench", "base")
    assert json.loads(row["reward_model"]["ground_truth"]) == [["f()"]]
    assert row["extra_info"] == {"index": "v", "parent": "a", "turns": 1}
    assert json.loads(row["info"])["initial_state"] == '{"content":"v"}'
