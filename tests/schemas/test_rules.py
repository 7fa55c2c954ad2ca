import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.rules import LearnerRules, MeasureRules, PoolRules, RolloutRules, Rules, canonical_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_the_default_rules_have_this_canonical_text() -> None:
    assert Rules().canonical() == (
        '{"curriculum":"rods","epochs":5,"learner":{"clip_high":0.28,"clip_low":0.2,"evaluate_every":1,'
        '"evaluate_k":4,"evaluate_tasks":0,'
        '"importance_cap":2.0,"kl_coefficient":0.0,"learning_rate":1e-06,"max_gradient_norm":1.0,"max_staleness":1,'
        '"micro_batch_tokens":16384,"steps_in_flight":1,"updates_per_step":1},"measure":{"alpha_high":"0.85",'
        '"alpha_low":"0.2","min_variance":"0","window":1},"pool":{"burn_in":"0.2","drift_high":"0.95",'
        '"drift_low":"0.2","inject_share":"0.2","p_max":400,"patience":1,"probes_per_epoch":1,'
        '"protect_originals":true,"retire":true},"pool_tasks":0,"rollout":{"deadline_seconds":120.0,"k":16,'
        '"max_assistant_messages":8,"max_calls_per_turn":20,"max_tokens":64,"tasks_per_step":32,"temperature":1.0},'
        '"seed":1,"select":{"cooldown_steps":0,"quota":2,"rank_by":"phi"},"source":"workbench",'
        '"synthesis":{"lag_steps":0,"max_attempts":3,"profile_distance":"0.35","refinements":1,"replans":3,'
        '"settle_seconds":120.0,"variants_per_seed":2}}'
    )


@given(st.decimals(0, Decimal("0.5"), places=4), st.integers(0, 3))
def test_equal_rules_give_equal_text_however_the_decimal_was_written(value: Decimal, zeros: int) -> None:
    longer = Decimal(f"{value}{'0' * zeros}")
    one, other = (Rules(measure=MeasureRules(alpha_low=written)) for written in (value, longer))
    assert one == other
    assert one.canonical() == other.canonical()


@given(
    st.builds(Rules, seed=st.integers(0, 2**63 - 1), curriculum=st.sampled_from(["rods", "static", "random"])),
    st.builds(PoolRules, inject_share=st.decimals(0, 1, places=3), patience=st.integers(1, 64)),
    st.builds(LearnerRules, learning_rate=st.floats(0, 1)),
)
def test_canonical_text_parses_to_the_rules_it_was_written_from(
    rules: Rules, pool: PoolRules, learner: LearnerRules
) -> None:
    whole = rules.model_copy(update={"pool": pool, "learner": learner})
    assert Rules.parse(whole.canonical()) == whole
    assert Rules.parse(whole.canonical()).canonical() == whole.canonical()


@given(JSON)
def test_canonical_json_is_ascii_and_says_the_same(value: object) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical_json({"b": 1, "a": {"d": 2, "c": 3}}) == canonical_json({"a": {"c": 3, "d": 2}, "b": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_canonical_json_has_no_word_for_what_is_not_a_number(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


@pytest.mark.parametrize(
    "text", ['{"alpha": 1}', '{"seed": -1}', '{"epochs": 0}', "[]", "nonsense", '{"curriculum": "x"}']
)
def test_rules_refuse_what_they_do_not_know(text: str) -> None:
    with pytest.raises(ValidationError):
        Rules.parse(text)


def test_thresholds_out_of_order_are_refused() -> None:
    with pytest.raises(ValidationError, match="alpha_low must not exceed alpha_high"):
        MeasureRules(alpha_low=Decimal("0.9"))


def test_an_endless_deadline_is_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        RolloutRules(deadline_seconds=float("inf"))
