import io

from rich.console import Console

from rods.reports.summary import Moment
from rods.reports.table import COLUMNS, LiveTable, Status, live_view, print_summary, printable, status_line
from tests.rods.made_run import summary

HOSTILE = "\x1b[2J\x07[red]evil[/red]\n" + "x" * 500


def console(terminal: bool = False) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=200, force_terminal=terminal, highlight=False, color_system=None), out


def test_the_last_table_shows_every_column_and_the_rises() -> None:
    screen, out = console()
    print_summary(summary(), screen)
    text = out.getvalue()
    assert all(column in text for column in COLUMNS)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert "1 0.250 0.500 50% 0/1/1/0 1 2 3 1 0 2+1 digest-1 17" in lines
    assert "rejected: duplicate 2 0" in lines
    assert "retired: burn_in 0 1" in lines
    assert "pool at the start: 0.2500 in epoch 1, 0.6250 in epoch 2, uplift +0.3750 ± 0.1250" in text
    assert "+3.0 standard errors (2 tasks, paired)" in text
    assert "alarm: epoch 2: starvation" in text


def test_what_a_model_wrote_reaches_no_terminal_as_a_command() -> None:
    screen, out = console(terminal=True)
    print_summary(summary(HOSTILE), screen)
    text = out.getvalue()
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "[red]evil[/red]" in text
    assert "x" * 60 not in text


def test_printable_keeps_words_and_shortens_the_rest() -> None:
    assert printable("café α") == "café α"
    assert len(printable("x" * 500)) == 48
    assert printable("a\nb\x1bc") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


def test_the_status_line_says_where_the_run_stands() -> None:
    line = status_line(Status(Moment(2, 7, 16, 4), restarts=1, phase="waits for seals")).plain
    assert line == "epoch 2, step 7; 12 of 16 groups in flight; 1 worker restarts; waits for seals"


def test_without_a_terminal_each_step_and_epoch_is_told_once_on_one_line() -> None:
    screen, out = console()
    rows, status = summary().epochs, Status(Moment(2, 2, 3, 1))
    with LiveTable(screen) as table:
        for _ in range(3):
            table.update(rows, status)
    lines = out.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("epoch 1; pool 0.250; held-out 0.500; flat 50%; m/b/h/none 0/1/1/0")
    assert "rejected by reason: 2 duplicate, 1 profile_distance" in lines[1]
    assert lines[3].startswith("epoch 2, step 2")
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_the_table_is_redrawn() -> None:
    screen, out = console(terminal=True)
    with LiveTable(screen) as table:
        table.update(summary().epochs, Status(Moment(2, 2, 3, 1)))
    assert "digest-2" in out.getvalue()
    assert "2 of 3 groups in flight" in out.getvalue()


def test_an_empty_run_has_a_table_too() -> None:
    screen, out = console()
    screen.print(live_view((), Status(Moment())))
    assert "epoch 0, step 0; 0 of 0 groups in flight" in out.getvalue()
