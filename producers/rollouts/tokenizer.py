"""Words as tokens: the tokenizer of the workbench's policy, and how a conversation becomes ids.

A closed vocabulary of whole words keeps attempts short: a name with its quotes, a number, `pay(` and `person=` are one
token each, so that copying an argument is copying one token. A conversation is

    <tools> .. <user> request <assistant> calls <end> <tool> results <assistant> <end> <user> ..

Only `<end>` closes something the policy says, and it is sampled like any word. Text from outside cannot forge a role:
special tokens in it come out as `<unk>`, as does any word outside the vocabulary.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from producers.rollouts.errors import PolicyFolderError
from schemas.conversation import Message, Role

PAD, END, UNKNOWN = "<pad>", "<end>", "<unk>"
ROLE_TOKENS = {role: f"<{role.value}>" for role in Role}
SPECIAL = (PAD, END, UNKNOWN, *ROLE_TOKENS.values())
PIECES = r"[A-Za-z_]\w*[(=]|'[^'\s]*'|\d+|[A-Za-z_]\w*|[^\s,]"
"""The pieces of `producers.environments.workbench.language.split`, as a pattern for the tokenizer's file."""

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
_PIECE = re.compile(PIECES)


class WordTokenizer:
    """Ids of conversations and back. Saved as `tokenizer.json`, which `transformers` and vLLM read too."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.backend = tokenizer
        self._ids: dict[str, int] = tokenizer.get_vocab()
        self._words = {index: word for word, index in self._ids.items()}
        missing = [word for word in SPECIAL if word not in self._ids]
        if missing:
            raise PolicyFolderError(f"the tokenizer has no token {missing[0]}; use one made by rods learn warm-start")
        self.pad, self.end, self._unknown = (self._ids[word] for word in (PAD, END, UNKNOWN))
        self._roles = {role: self._ids[word] for role, word in ROLE_TOKENS.items()}

    @classmethod
    def of_words(cls, words: Iterable[str]) -> "WordTokenizer":
        """A tokenizer over the special tokens and these words, in this order."""
        vocabulary = {word: index for index, word in enumerate(dict.fromkeys((*SPECIAL, *words)))}
        tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
        tokenizer.pre_tokenizer = Split(Regex(PIECES), behavior="removed", invert=True)
        tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in SPECIAL])
        return cls(tokenizer)

    @classmethod
    def load(cls, folder: Path) -> "WordTokenizer":
        """The tokenizer of a model folder. Raises PolicyFolderError."""
        path = folder / TOKENIZER_FILE
        if not path.is_file():
            raise PolicyFolderError(f"{folder} is no model folder: it has no {TOKENIZER_FILE}")
        try:
            return cls(Tokenizer.from_str(path.read_text(encoding="utf-8")))
        except PolicyFolderError:
            raise
        except Exception as error:  # the library raises bare exceptions for damaged files
            raise PolicyFolderError(f"{path} is no readable tokenizer") from error

    def save(self, folder: Path) -> None:
        """Writes `tokenizer.json` and the small configuration that `transformers` looks for."""
        folder.mkdir(parents=True, exist_ok=True)
        self.backend.save(str(folder / TOKENIZER_FILE))
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": PAD,
            "eos_token": END,
            "unk_token": UNKNOWN,
        }
        (folder / CONFIG_FILE).write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def __len__(self) -> int:
        return len(self._ids)

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of a text. A special token written out in the text counts as an unknown word's pieces."""
        ids = self._ids
        return [ids.get(piece, self._unknown) for piece in _PIECE.findall(text)]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The pieces of ids; `<unk>` for an id that does not exist."""
        return [self._words.get(index, UNKNOWN) for index in ids]

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Ids of whole messages; an assistant message closes with `<end>`."""
        ids: list[int] = []
        for message in messages:
            ids.append(self._roles[message.role])
            for text in (*([message.content] if not message.calls else []), *message.calls):
                ids.extend(self.encode(text))
            if message.role is Role.ASSISTANT:
                ids.append(self.end)
        return ids

    def context(self, messages: Sequence[Message], token_ids: Sequence[int]) -> list[int]:
        """Ids to append to an attempt's ids so far, up to where the policy speaks.

        With no ids so far that is the whole conversation. Otherwise it is what follows the policy's last message, after
        an `<end>` where the token limit cut that message off.
        """
        fresh = list(messages)
        ids: list[int] = []
        if token_ids:
            last = max((index for index, message in enumerate(fresh) if message.role is Role.ASSISTANT), default=-1)
            fresh = fresh[last + 1 :]
            ids = [] if token_ids[-1] == self.end else [self.end]
        return [*ids, *self.render(fresh), self._roles[Role.ASSISTANT]]
