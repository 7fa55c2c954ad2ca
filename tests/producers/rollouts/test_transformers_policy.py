import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from producers.environments.workbench import language
from producers.environments.workbench.source import WorkbenchSource
from producers.environments.workbench.vocabulary import words
from producers.rollouts.attempt import AttemptResult
from producers.rollouts.errors import PolicyFolderError
from producers.rollouts.group import GroupSpec, run_groups
from producers.rollouts.policy import Completion, Prompt
from producers.rollouts.tokenizer import WordTokenizer
from producers.rollouts.transformers_policy import TransformersPolicy
from schemas.conversation import Message, Role

SOURCE = WorkbenchSource(seed=3, train=12, heldout=0)
TASKS = list(SOURCE.tasks("train"))


def write_model(folder: Path, seed: int = 1) -> LlamaForCausalLM:
    """A random model that ends messages now and then, so that rows finish at different steps."""
    tokenizer = WordTokenizer.of_words(words())
    tokenizer.save(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.3,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    write_model(path)
    return path


def make_policy(folder: Path, max_tokens: int = 12) -> TransformersPolicy:
    return TransformersPolicy(folder, join=language.join, calls_of=language.calls_of, max_tokens=max_tokens)


def make_prompt(number: int, temperature: float = 1.0) -> Prompt:
    task = TASKS[number % len(TASKS)]
    said = [Message(Role.USER, request) for request in task.turns[0].requests]
    return Prompt(f"attempt-{number}", task, 0, 0, said, (), 1000 + number, temperature)


def follow(prompt: Prompt, completion: Completion, results: str) -> Prompt:
    said = Message(Role.ASSISTANT, completion.text, completion.calls)
    return Prompt(
        prompt.attempt,
        prompt.task,
        prompt.turn,
        prompt.message + 1,
        [*prompt.messages, said, Message(Role.TOOL, results)],
        (),
        prompt.seed,
        prompt.temperature,
        (*prompt.token_ids, *completion.context_ids, *completion.sampled_ids),
    )


def conversations(policy: TransformersPolicy, count: int, rounds: int, temperature: float) -> list[list[Completion]]:
    prompts = [make_prompt(number, temperature) for number in range(count)]
    history: list[list[Completion]] = [[] for _ in prompts]
    for _ in range(rounds):
        completions = policy.complete(prompts)
        for said, completion in zip(history, completions, strict=True):
            said.append(completion)
        prompts = [follow(*pair, "done 20 'anna'") for pair in zip(prompts, completions, strict=True)]
    return history


def teacher_forced(model: LlamaForCausalLM, ids: Sequence[int], temperature: float) -> torch.Tensor:
    with torch.no_grad():
        scores = torch.log_softmax(model(torch.tensor([list(ids)])).logits[0, :-1] / (temperature or 1.0), -1)
    return scores[torch.arange(len(ids) - 1), torch.tensor(list(ids[1:]))]


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_recorded_logprobs_are_those_of_the_whole_conversation(
    folder: Path, tmp_path: Path, temperature: float
) -> None:
    model = write_model(tmp_path)
    for said in conversations(make_policy(folder), 9, 3, temperature):
        ids: list[int] = []
        recorded: list[float] = []
        for completion in said:
            ids += [*completion.context_ids, *completion.sampled_ids]
            recorded += [float("nan")] * len(completion.context_ids) + list(completion.logprobs)
        expected = teacher_forced(model, ids, temperature)
        actual = torch.tensor(recorded[1:])
        sampled = ~actual.isnan()
        assert sampled.any()
        assert torch.allclose(actual[sampled], expected[sampled], atol=1e-4)


@pytest.mark.slow
def test_an_answer_does_not_depend_on_the_batch(folder: Path) -> None:
    together = conversations(make_policy(folder), 10, 2, 1.0)
    policy = make_policy(folder)
    prompts = [make_prompt(number) for number in range(10)]
    Random(3).shuffle(prompts)
    alone = {prompt.attempt: policy.complete([prompt])[0] for prompt in prompts}
    for number, said in enumerate(together):
        assert alone[f"attempt-{number}"].sampled_ids == said[0].sampled_ids


def test_forgotten_keys_and_values_are_computed_again(folder: Path) -> None:
    first, second = make_policy(folder), make_policy(folder)
    prompts = [make_prompt(number) for number in range(6)]
    completions = first.complete(prompts)
    after = [follow(*pair, "done") for pair in zip(prompts, completions, strict=True)]
    first.finish([prompt.attempt for prompt in after[:3]])
    kept, fresh = first.complete(after), second.complete(after)
    assert [completion.sampled_ids for completion in kept] == [completion.sampled_ids for completion in fresh]


def test_equal_prompts_with_other_seeds_give_other_answers(folder: Path) -> None:
    task = TASKS[0]
    said = [Message(Role.USER, "read 'notes' .")]
    prompts = [Prompt(f"a{seed}", task, 0, 0, said, (), seed, 1.0) for seed in range(8)]
    answers = {completion.sampled_ids for completion in make_policy(folder).complete(prompts)}
    assert len(answers) > 4


def test_a_message_ends_with_the_end_token_or_is_truncated(folder: Path) -> None:
    policy = make_policy(folder, max_tokens=5)
    for completion in policy.complete([make_prompt(number) for number in range(12)]):
        assert len(completion.sampled_ids) == len(completion.logprobs) <= 5
        assert completion.truncated == (completion.sampled_ids[-1] != policy.tokenizer.end)


def run(policy: TransformersPolicy) -> list[AttemptResult]:
    specs = [GroupSpec(task.task, task, 4, 11) for task in TASKS]
    outcomes = {outcome.spec.group: outcome for outcome in run_groups(policy, SOURCE, specs)}
    return [attempt for spec in specs for attempt in outcomes[spec.group].attempts]


@pytest.mark.slow
def test_a_run_repeats_itself(folder: Path) -> None:
    first, second = run(make_policy(folder)), run(make_policy(folder))
    assert [attempt.token_ids for attempt in first] == [attempt.token_ids for attempt in second]
    assert all(attempt.failure is None for attempt in first)


def test_published_weights_become_current(folder: Path, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", seed=2)
    weights = tmp_path / "other" / "model.safetensors"
    policy = make_policy(folder)
    prompts = [make_prompt(number, 0.0) for number in range(4)]
    policy.complete(prompts)
    policy.load(3, str(weights), hashlib.sha256(weights.read_bytes()).hexdigest())
    assert policy.version == 3
    for completion in policy.complete(prompts):
        ids = [*completion.context_ids, *completion.sampled_ids]
        expected = teacher_forced(other, ids, 1.0)[-len(completion.sampled_ids) :]
        assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-4)


def test_weights_that_are_not_what_was_published_are_refused(folder: Path, tmp_path: Path) -> None:
    policy = make_policy(folder)
    pickled, foreign = tmp_path / "weights.pt", tmp_path / "foreign.safetensors"
    torch.save({"weight": torch.zeros(2)}, pickled)
    save_file({"weight": torch.zeros(2)}, foreign)
    for path in (pickled, foreign):
        with pytest.raises(PolicyFolderError):
            policy.load(1, str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(PolicyFolderError, match="sha256"):
        policy.load(1, str(foreign), "0" * 64)
    with pytest.raises(PolicyFolderError, match="not at"):
        policy.load(1, str(tmp_path / "absent"), "0" * 64)
    assert policy.version == 0


def test_a_missing_or_damaged_model_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PolicyFolderError, match="no model folder") as caught:
        make_policy(tmp_path / "absent")
    write_model(tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(PolicyFolderError, match="damaged"):
        make_policy(tmp_path / "damaged")
    assert "\n" not in str(caught.value)
