import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rods.reports import charts as colours
from rods.reports.charts import charts
from rods.reports.report import report_page, write_report, write_summary, write_whole
from rods.reports.summary import EpochSummary
from streams.warehouse import dashboard
from tests.rods.made_run import summary

HOSTILE = "<script>alert(1)</script>&\"' $x^$ {{ 7*7 }}"


class Tags(HTMLParser):
    """Collects what a page consists of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]


def test_the_page_shows_figures_charts_lineage_and_settings() -> None:
    page = report_page(summary(), {"rules": {"seed": 1}})
    assert "pool at the start: 0.2500 in epoch 1" in page
    assert "digest-2" in page
    assert "seeds selected" in page
    assert "&#34;seed&#34;: 1" in page
    assert Tags(page).tags.count("svg") == 8


def test_the_dashboard_has_the_reports_colours() -> None:
    page = (Path(dashboard.__file__).with_name("dashboard.html")).read_text()
    named = dict(re.findall(r"\b([A-Z]+) = \"(#[0-9a-f]{6})\"", page))
    assert named == {name: getattr(colours, name) for name in named}
    assert len(named) == 7


def test_tables_scroll_where_they_do_not_fit() -> None:
    page = report_page(summary(HOSTILE), {})
    assert page.count("<table>") == len(re.findall(r'<div class="scroll">\s*<table>', page)) == 3


def test_the_page_needs_nothing_beside_it_and_runs_nothing() -> None:
    tags = Tags(report_page(summary(HOSTILE), {"folder": HOSTILE}))
    assert not {"script", "link", "img", "iframe", "object"} & set(tags.tags)
    assert all(link.startswith("#") for link in tags.links)


def test_what_a_model_wrote_is_text_on_the_page() -> None:
    page = report_page(summary(HOSTILE), {"folder": HOSTILE})
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page


def test_equal_runs_give_equal_pages() -> None:
    assert report_page(summary(), {}) == report_page(summary(), {})


@pytest.mark.parametrize("rows", [(), summary().epochs[:1], summary(*[f"r{n}" for n in range(12)]).epochs])
def test_every_chart_is_well_formed_even_of_an_empty_run(rows: tuple[EpochSummary, ...]) -> None:
    drawn = charts(rows)
    assert len({chart.title for chart in drawn}) == 8
    assert all(ET.fromstring(chart.svg).tag.endswith("svg") for chart in drawn)


def test_many_reasons_are_summed_as_others() -> None:
    rejections = next(
        chart for chart in charts(summary(*[f"r{n}" for n in range(12)]).epochs) if "rejected" in chart.title
    )
    assert "others" in re.findall(r">([^<>]+)</text>", rejections.svg)


def test_files_appear_whole_and_leave_nothing_behind(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", summary(), {})
    write_summary(tmp_path / "summary.json", summary())
    write_summary(tmp_path / "summary.json", summary())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "summary.json"]
    assert json.loads((tmp_path / "summary.json").read_text()) == json.loads(json.dumps(summary().document()))


def test_a_write_that_fails_keeps_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.html").write_text("before")

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "report.html", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "before"
