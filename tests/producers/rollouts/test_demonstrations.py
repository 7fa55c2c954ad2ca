from itertools import islice
from random import Random

from producers.environments.workbench.entities import NAMES
from producers.environments.workbench.source import WorkbenchSource
from producers.environments.workbench.vocabulary import words
from producers.rollouts.demonstrations import Teacher, demonstrations, messages_of, play, renamed
from producers.rollouts.tokenizer import UNKNOWN, WordTokenizer
from schemas.task import Turn

SOURCE = WorkbenchSource(seed=1, train=60, heldout=0)
TASKS = list(SOURCE.tasks("train"))
TOKENIZER = WordTokenizer.of_words(words())


def test_the_teacher_passes_every_turn_of_every_task() -> None:
    teacher = Teacher(TOKENIZER)
    for task in TASKS:
        assert play(SOURCE, teacher, task).turns_passed == task.turns_total


def test_renamed_tasks_still_pass_and_stay_in_the_closed_lists() -> None:
    teacher, rng = Teacher(TOKENIZER), Random(2)
    for task in TASKS:
        other = renamed(task, rng)
        result = play(SOURCE, teacher, other)
        assert result.turns_passed == task.turns_total
        assert UNKNOWN not in TOKENIZER.decode(result.token_ids)


def test_renaming_changes_names_and_numbers() -> None:
    rng = Random(4)
    pairs = [(task, renamed(task, rng)) for task in TASKS]
    assert all(task.initial_state != other.initial_state for task, other in pairs)
    digits = [
        ("".join(filter(str.isdigit, a.initial_state)), "".join(filter(str.isdigit, b.initial_state))) for a, b in pairs
    ]
    assert sum(left != right for left, right in digits) > len(TASKS) / 2


def test_the_mask_covers_calls_and_ends_and_nothing_else() -> None:
    for demonstration in islice(demonstrations(SOURCE, TASKS, TOKENIZER, seed=1), 20):
        pieces = TOKENIZER.decode(demonstration.token_ids)
        said = [piece for piece, mask in zip(pieces, demonstration.loss_mask, strict=True) if mask]
        assert said.count("<end>") == pieces.count("<assistant>") == pieces.count("<end>")
        assert not {"<assistant>", "<user>", "<tool>", "<tools>"} & set(said)


def test_demonstrations_follow_from_the_seed() -> None:
    first, second, other = (list(islice(demonstrations(SOURCE, TASKS, TOKENIZER, seed=s), 8)) for s in (1, 1, 2))
    assert first == second != other


def test_a_message_ends_after_a_look_up() -> None:
    turn = Turn((), ("delete(file='memo')", "balance()", "deposit(amount=3)", "cancel(event='yoga')"))
    assert messages_of(turn) == (turn.ground_truth[:2], turn.ground_truth[2:])
    assert messages_of(Turn((), ())) == ()


def test_closed_lists_share_no_name_so_that_a_renaming_is_one_mapping() -> None:
    names = [name for kind in NAMES.values() for name in kind]
    assert len(names) == len(set(names))
