"""A causal language model of `transformers` as a policy, in process and batched over attempts of any group.

    prompts -> ids of what the model has not seen -> keys and values of the attempt's earlier messages, from the store
            -> prefill (equal fresh prompts once) -> decode, one token per live row, finished rows dropped
            -> completions, and keys and values back to the store

Draws belong to the attempt (see `sampling`), so an answer depends on the weights, the conversation and the seed; batch
composition reaches it through rounding alone. `complete` blocks and is not thread-safe: run it in one thread.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from producers.rollouts.decoding import Row, decode_rows
from producers.rollouts.errors import PolicyFolderError
from producers.rollouts.grouped_attention import use_grouped_attention
from producers.rollouts.key_value_cache import Arena, CacheShape, Slab, SlabStore
from producers.rollouts.policy import Completion, Prompt
from producers.rollouts.sampling import uniforms
from producers.rollouts.tokenizer import WordTokenizer

CallsOf = Callable[[Sequence[str]], tuple[str, ...]]
Join = Callable[[Sequence[str]], str]


class TransformersPolicy:
    """The policy port over a local model folder (config.json, model.safetensors, tokenizer.json).

    join, calls_of: how the environment's language turns pieces into text and into calls. max_tokens: sampled tokens per
    assistant message, the end token included. rows: attempts decoded at once. Raises PolicyFolderError.
    """

    def __init__(
        self, folder: Path, *, join: Join, calls_of: CallsOf, max_tokens: int, version: int = 0, rows: int = 512
    ) -> None:
        self.tokenizer = WordTokenizer.load(folder)
        self.model = _load_model(folder)
        self._join, self._calls_of = join, calls_of
        self._max_tokens = max_tokens
        self._version = version
        self._rows = rows
        self._store = SlabStore()
        self._arena = Arena()
        self._shape = _shape_of(self.model.config)

    @property
    def version(self) -> int:
        return self._version

    def load(self, version: int, location: str, sha256: str) -> None:
        """Makes published safetensors weights current. What is verified is what is loaded. Raises PolicyFolderError."""
        try:
            data = Path(location).read_bytes()
        except OSError as error:
            raise PolicyFolderError(f"the weights of policy version {version} are not at {location}") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise PolicyFolderError(f"the weights at {location} do not have the sha256 of policy version {version}")
        try:
            tensors = load_tensors(data)
        except SafetensorError as error:
            raise PolicyFolderError(f"the weights at {location} are no safetensors file") from error
        _put_weights(self.model, tensors, location)
        self._version = version
        self._store.clear()

    @torch.inference_mode()
    def complete(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """One assistant message per prompt, in order."""
        completions: list[Completion] = []
        for start in range(0, len(prompts), self._rows):
            completions.extend(self._complete(prompts[start : start + self._rows]))
        return completions

    def finish(self, attempts: Sequence[str]) -> None:
        """Frees the keys and values of attempts that ended."""
        for attempt in attempts:
            self._store.drop(attempt)

    def _complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        contexts = [self.tokenizer.context(prompt.messages, prompt.token_ids) for prompt in prompts]
        rows = [self._row(prompt, context) for prompt, context in zip(prompts, contexts, strict=True)]
        decode_rows(self.model, self._arena, self._shape, rows, self._max_tokens, self.tokenizer.end)
        for prompt, row in zip(prompts, rows, strict=True):
            assert row.kept is not None
            self._store.put(prompt.attempt, Slab(tuple(row.all_ids[: row.kept.shape[3]]), row.kept))
        return [self._completion(row, context) for row, context in zip(rows, contexts, strict=True)]

    def _row(self, prompt: Prompt, context: Sequence[int]) -> Row:
        ids = [*prompt.token_ids, *context]
        numbers = uniforms(prompt.seed, prompt.turn, prompt.message, self._max_tokens)
        return Row(ids, self._store.get(prompt.attempt, ids), numbers, prompt.temperature)

    def _completion(self, row: Row, context: Sequence[int]) -> Completion:
        ended = row.sampled[-1] == self.tokenizer.end
        pieces = self.tokenizer.decode(row.sampled[:-1] if ended else row.sampled)
        return Completion(
            self._join(pieces),
            self._calls_of(pieces),
            tuple(context),
            tuple(row.sampled),
            tuple(row.logprobs),
            truncated=not ended,
        )


def _load_model(folder: Path) -> nn.Module:
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise PolicyFolderError(
                f"{folder} is no model folder: it has no {name}; name one made by rods learn warm-start"
            )
    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        with torch.random.fork_rng(devices=[]):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
        assert isinstance(model, nn.Module)
        _put_weights(model, load_tensors((folder / "model.safetensors").read_bytes()), str(folder))
    except Exception as error:
        raise PolicyFolderError(f"the model folder {folder} is damaged: {_first_line(error)}") from error
    use_grouped_attention(model)
    return model.eval().requires_grad_(False)


def _shape_of(config: Any) -> CacheShape:
    heads = int(config.num_attention_heads)
    width = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    return CacheShape(int(config.num_hidden_layers), int(getattr(config, "num_key_value_heads", None) or heads), width)


def _put_weights(model: nn.Module, tensors: dict[str, Tensor], location: str) -> None:
    state = model.state_dict()
    held = {state[name].data_ptr() for name in tensors if name in state}
    fits = all(name in state and state[name].shape == tensor.shape for name, tensor in tensors.items())
    if not fits or any(tensor.data_ptr() not in held for tensor in state.values()):
        raise PolicyFolderError(f"the weights at {location} belong to another model")
    with torch.no_grad():
        for name, tensor in tensors.items():
            state[name].copy_(tensor)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
