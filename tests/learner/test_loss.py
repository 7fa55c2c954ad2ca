import math

import pytest
import torch

from learner.loss import clipped_policy_loss, importance_weights, k3, token_scores


def test_scores_are_log_softmax_at_the_temperature_and_entropy_in_nats() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [2.0, 0.0, -1.0, 0.5]])
    targets = torch.tensor([3, 0])
    scores = token_scores(logits, targets, 0.5)
    assert scores.entropy[0].item() == pytest.approx(math.log(4))
    assert torch.allclose(scores.logprobs, torch.log_softmax(logits / 0.5, -1)[torch.arange(2), targets])


def test_greedy_tokens_are_scored_at_temperature_one() -> None:
    logits = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    targets = logits.argmax(-1)
    assert torch.equal(token_scores(logits, targets, 0.0).logprobs, token_scores(logits, targets, 1.0).logprobs)


def test_at_ratio_one_the_gradient_is_minus_the_advantage() -> None:
    logprobs = torch.tensor([-1.0, -2.0], requires_grad=True)
    advantages = torch.tensor([1.5, -0.5])
    loss = clipped_policy_loss(logprobs, logprobs.detach(), advantages, 0.2, 0.28)
    loss.loss.sum().backward()  # type: ignore[no-untyped-call]
    assert logprobs.grad is not None
    assert torch.allclose(logprobs.grad, -advantages)
    assert not loss.clipped.any()


def test_the_clip_stops_what_has_moved_far_in_the_wanted_direction_only() -> None:
    old = torch.zeros(4)
    logprobs = torch.tensor([1.3, 0.7, 1.3, 0.7]).log().requires_grad_()
    advantages = torch.tensor([1.0, 1.0, -1.0, -1.0])
    loss = clipped_policy_loss(logprobs, old, advantages, 0.2, 0.28)
    loss.loss.sum().backward()  # type: ignore[no-untyped-call]
    assert loss.clipped.tolist() == [True, False, False, True]
    assert logprobs.grad is not None
    assert [bool(gradient) for gradient in logprobs.grad.tolist()] == [False, True, True, False]


def test_importance_weights_are_truncated_and_carry_no_gradient() -> None:
    trainer = torch.tensor([0.0, 1.0, -1.0], requires_grad=True)
    weights = importance_weights(trainer, torch.zeros(3), 2.0)
    assert weights.tolist() == pytest.approx([1.0, 2.0, math.exp(-1)])
    assert not weights.requires_grad


def test_k3_is_zero_only_at_the_reference_and_estimates_the_divergence() -> None:
    policy = torch.tensor([0.7, 0.2, 0.1]).log()
    reference = torch.tensor([0.5, 0.3, 0.2]).log()
    assert k3(policy, policy).tolist() == [0.0, 0.0, 0.0]
    assert (k3(policy, reference) >= 0).all()
    exact = (policy.exp() * (policy - reference)).sum().item()
    assert (policy.exp() * k3(policy, reference)).sum().item() == pytest.approx(exact, abs=1e-6)
