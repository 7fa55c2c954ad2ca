"""What the dashboard shows: one list of (title, SQL, kind of chart), for the built-in page and for other dashboards.

The one parameter is ``{prefix:String}``, the run's topic prefix. Charts take the columns in order: BARS and LINES x,
series, value; TABLE any. `STATUS` says which run it is and how far.
"""

from enum import StrEnum
from typing import NamedTuple


class Chart(StrEnum):
    BARS = "bars"
    LINES = "lines"
    TABLE = "table"


class Panel(NamedTuple):
    """needs: what a run may do without, so that the panel stays empty; empty: nothing."""

    title: str
    sql: str
    chart: Chart
    needs: str = ""


EVALUATION = "evaluation"
STATUS = """
    SELECT argMax(run_id, offset) AS run, maxIf(epoch, kind = 'EpochOpened') AS opened,
        maxIf(epoch, kind = 'EpochClosed') AS closed, maxIf(step, kind = 'StepOpened') AS step,
        argMaxIf(JSONExtractString(body, 'rules'), offset, kind = 'EpochOpened') AS rules
    FROM epochs FINAL WHERE topic = {prefix:String} || 'epochs' HAVING count() > 0
"""


PANELS: tuple[Panel, ...] = (
    Panel(
        "Zones per epoch (measured train groups)",
        """
        SELECT epoch, toString(zone) AS zone, count() AS groups
        FROM measurements FINAL
        WHERE topic = {prefix:String} || 'measurements' AND purpose = 'train'
        GROUP BY epoch, zone ORDER BY epoch, zone
        """,
        Chart.BARS,
    ),
    Panel(
        "Mean progress per step (train groups)",
        """
        SELECT step, 'progress' AS series, avg(mean) AS progress
        FROM measurements FINAL
        WHERE topic = {prefix:String} || 'measurements' AND purpose = 'train' AND mean IS NOT NULL
        GROUP BY step ORDER BY step
        """,
        Chart.LINES,
    ),
    Panel(
        "Evaluations: mean progress by epoch",
        """
        SELECT epoch, task_set || ' at ' || toString(temperature) AS series, avg(passed / turns) AS progress
        FROM (
            SELECT epoch, task_set, temperature,
                JSONExtractInt(result, 'turns_passed') AS passed,
                JSONExtractInt(result, 'live') * JSONExtractInt(result, 'turns_total') AS turns
            FROM epochs FINAL
            ARRAY JOIN JSONExtractArrayRaw(body, 'results') AS result
            WHERE topic = {prefix:String} || 'epochs' AND kind = 'PolicyEvaluated'
        )
        WHERE turns > 0 GROUP BY epoch, series ORDER BY epoch, series
        """,
        Chart.LINES,
        EVALUATION,
    ),
    Panel(
        "Pool size and queue",
        """
        SELECT epoch, series, size FROM (
            SELECT epoch, 'members' AS series, members_count AS size FROM pool FINAL
            WHERE topic = {prefix:String} || 'pool' AND kind = 'PoolMaterialized'
            UNION ALL
            SELECT epoch, 'queue' AS series, queue_count AS size FROM pool FINAL
            WHERE topic = {prefix:String} || 'pool' AND kind = 'PoolMaterialized'
        ) ORDER BY epoch, series
        """,
        Chart.LINES,
    ),
    Panel(
        "Groups without variance, share per epoch",
        """
        SELECT epoch, 'no variance' AS series, countIf(variance = 0) / count() AS share
        FROM measurements FINAL
        WHERE topic = {prefix:String} || 'measurements' AND purpose = 'train' AND live > 0
        GROUP BY epoch ORDER BY epoch
        """,
        Chart.LINES,
    ),
    Panel(
        "Synthesis: variants verified, and attempts rejected by reason",
        """
        SELECT epoch, series, total FROM (
            SELECT epoch, 'verified' AS series, count() AS total FROM pool FINAL
            WHERE topic = {prefix:String} || 'pool' AND kind = 'VariantVerified' GROUP BY epoch
            UNION ALL
            SELECT epoch, toString(reason) AS series, count() AS total FROM synthesis FINAL
            WHERE topic = {prefix:String} || 'synthesis' AND kind = 'VariantRejected' GROUP BY epoch, series
        ) ORDER BY epoch, series
        """,
        Chart.BARS,
    ),
    Panel(
        "Injected, and retired by rule",
        """
        SELECT epoch, if(kind = 'TaskInjected', 'injected', 'retired: ' || ifNull(toString(rule), '')) AS series,
            count() AS tasks
        FROM pool FINAL
        WHERE topic = {prefix:String} || 'pool' AND kind IN ('TaskInjected', 'TaskRetired')
        GROUP BY epoch, series ORDER BY epoch, series
        """,
        Chart.BARS,
    ),
    Panel(
        "Latest alarms",
        """
        SELECT epoch, step, alarmraised_kind AS alarm, JSONExtractString(body, 'detail') AS detail
        FROM epochs FINAL
        WHERE topic = {prefix:String} || 'epochs' AND kind = 'AlarmRaised'
        ORDER BY offset DESC LIMIT 10
        """,
        Chart.TABLE,
    ),
)
