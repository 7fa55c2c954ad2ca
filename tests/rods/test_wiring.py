from pathlib import Path

from rods.settings import Settings
from rods.wiring import SERVICES, warehouse_dsn, worker_specs


def test_every_service_has_its_workers_and_the_learner_alone_may_finish(tmp_path: Path) -> None:
    settings = Settings(folder=str(tmp_path), rollout_workers=3, synthesis_workers=2)
    specs = worker_specs(settings, tmp_path / "settings.json")
    assert {spec.name.split("-")[0] for spec in specs} == set(SERVICES)
    assert [spec.name for spec in specs if spec.name.startswith("rollouts")] == [
        "rollouts-1",
        "rollouts-2",
        "rollouts-3",
    ]
    assert [spec.name for spec in specs if spec.may_finish] == ["learner"]
    assert len({spec.log_file for spec in specs}) == len(specs)


def test_what_others_write_to_stops_last(tmp_path: Path) -> None:
    order = {spec.name: spec.stop_order for spec in worker_specs(Settings(folder=str(tmp_path)), tmp_path / "s")}
    assert order["learner"] < order["rollouts"] == order["synthesis"] < order["streams"]
    assert order["streams"] < order["archive"] == order["warehouse"]


def test_the_embedded_warehouse_lies_in_the_run_folder(tmp_path: Path) -> None:
    assert warehouse_dsn(Settings(folder=str(tmp_path))) == f"chdb://{tmp_path.resolve() / 'warehouse'}"
    assert warehouse_dsn(Settings(warehouse="clickhouse://host/db")) == "clickhouse://host/db"
