import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from learner.engine import TorchEngine, TrainingSample, pack
from schemas.rules import LearnerRules


def tiny_model(seed: int = 1, hidden: int = 16) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=11,
            hidden_size=hidden,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            tie_word_embeddings=True,
            pad_token_id=0,
            eos_token_id=1,
        )
    )


def logprobs_of(model: LlamaForCausalLM, ids: tuple[int, ...]) -> list[float]:
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], -1)
    return [0.0, *scores[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].tolist()]


def sample(model: LlamaForCausalLM, ids: tuple[int, ...], advantage: float, context: int = 2) -> TrainingSample:
    mask = [index >= context for index in range(len(ids))]
    return TrainingSample(ids, logprobs_of(model, ids), mask, advantage)


def rules(**values: float) -> LearnerRules:
    return LearnerRules.model_validate({"learning_rate": 1e-2, "micro_batch_tokens": 256, **values})


def test_a_step_makes_the_better_attempt_likelier() -> None:
    model = tiny_model()
    good, bad = (2, 3, 4, 5, 1), (2, 3, 6, 7, 8, 1)
    before = sum(logprobs_of(model, good)[2:]), sum(logprobs_of(model, bad)[2:])
    metrics = TorchEngine(model, rules()).train_step([sample(model, good, 1.0), sample(model, bad, -1.0)])
    assert sum(logprobs_of(model, good)[2:]) > before[0]
    assert sum(logprobs_of(model, bad)[2:]) < before[1]
    assert (metrics.tokens, metrics.samples, metrics.response_length) == (7, 2, 3.5)
    assert metrics.gradient_norm > 0
    assert metrics.entropy > 0


def test_on_policy_the_loss_is_the_mean_of_minus_the_advantages() -> None:
    model = tiny_model()
    batch = [sample(model, (2, 3, 4, 5, 1), 1.0), sample(model, (2, 3, 6, 1), -0.5)]
    metrics = TorchEngine(model, rules()).train_step(batch)
    assert metrics.loss == pytest.approx((3 * -1.0 + 2 * 0.5) / 5, abs=1e-5)
    assert metrics.kl == pytest.approx(0.0, abs=1e-6)
    assert metrics.clip_share == 0.0


def test_micro_batches_and_order_do_not_change_the_update() -> None:
    whole, parts = tiny_model(), tiny_model()
    batch = [sample(whole, tuple([2] * length + [5, 1]), 0.1 * length - 0.5) for length in range(2, 60, 7)]
    one = TorchEngine(whole, rules(micro_batch_tokens=100_000)).train_step(batch)
    many = TorchEngine(parts, rules(micro_batch_tokens=256)).train_step(batch[::-1])
    assert len(list(pack(batch, 256, 0))) > 1
    assert one.gradient_norm == pytest.approx(many.gradient_norm, rel=1e-4)
    for left, right in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.allclose(left, right, atol=1e-4)


def test_padding_is_never_scored_and_the_budget_holds() -> None:
    model = tiny_model()
    batch = [sample(model, tuple([2] * length), 1.0) for length in (3, 60, 9, 30, 200)]
    micro_batches = list(pack(batch, 256, 0))
    assert all(micro.ids.numel() <= 256 for micro in micro_batches)
    assert sum(len(micro.rows) for micro in micro_batches) == sum(sum(item.loss_mask) for item in batch)
    assert all(micro.attention[micro.rows, micro.columns].all() for micro in micro_batches)


def test_a_batch_without_sampled_tokens_changes_nothing() -> None:
    model = tiny_model()
    before = [parameter.clone() for parameter in model.parameters()]
    metrics = TorchEngine(model, rules()).train_step([])
    assert metrics.tokens == 0
    assert all(torch.equal(left, right) for left, right in zip(before, model.parameters(), strict=True))


def test_a_learning_rate_of_zero_changes_nothing() -> None:
    model = tiny_model()
    before = [parameter.clone() for parameter in model.parameters()]
    TorchEngine(model, rules(learning_rate=0.0)).train_step([sample(model, (2, 3, 4, 1), 1.0)])
    assert all(torch.equal(left, right) for left, right in zip(before, model.parameters(), strict=True))


def test_several_updates_on_a_batch_meet_the_clip() -> None:
    model = tiny_model()
    batch = [sample(model, (2, 3, 4, 5, 1), 1.0), sample(model, (2, 3, 6, 7, 1), -1.0)]
    metrics = TorchEngine(model, rules(learning_rate=5e-2, updates_per_step=6)).train_step(batch)
    assert metrics.clip_share > 0


def test_the_reference_holds_the_policy() -> None:
    free, held = tiny_model(), tiny_model()
    batch = [sample(free, (2, 3, 4, 5, 1), 1.0)]
    loose, tight = TorchEngine(free, rules()), TorchEngine(held, rules(kl_coefficient=50.0), reference=tiny_model())
    for _ in range(10):
        loose.train_step(batch)
        tight.train_step(batch)
    assert sum(logprobs_of(free, (2, 3, 4, 5, 1))) > sum(logprobs_of(held, (2, 3, 4, 5, 1))) + 0.5


def test_a_kl_term_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="reference"):
        TorchEngine(tiny_model(), rules(kl_coefficient=0.1))


def test_a_sample_whose_parts_differ_in_length_is_refused() -> None:
    broken = TrainingSample((2, 3, 1), (0.0, 0.0), (False, False, True), 1.0)
    with pytest.raises(ValueError, match="one log-probability"):
        TorchEngine(tiny_model(), rules()).train_step([broken])
