"""The policy model: a small Llama configuration of this project, and models from local folders.

Nothing here reaches a network or runs code from a model folder. Weights are safetensors in one file, and all of them
must be there; a folder with pickled weights only is refused.
"""

from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from learner.checkpoint import load_weights
from learner.errors import ModelFolderError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INITIAL_DEVIATION = 0.05
"""Standard deviation of initial weights. With the customary 0.02 a model this small starts to copy much later."""


def small_config(vocabulary: int, pad: int, end: int, positions: int = 1024) -> LlamaConfig:
    """About 1.2 million parameters: enough for tool calls over a closed vocabulary, light enough for two CPU cores.

    Two key-value heads for four query heads halve the cache, whose traffic bounds the sampling rate on a CPU.
    """
    return LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        initializer_range=INITIAL_DEVIATION,
        tie_word_embeddings=True,
        pad_token_id=pad,
        bos_token_id=None,
        eos_token_id=end,
        attention_dropout=0.0,
        use_cache=False,
    )


def fresh_model(config: LlamaConfig, seed: int) -> LlamaForCausalLM:
    """A model in float32 with initial weights that follow from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def load_model(folder: Path) -> nn.Module:
    """The causal language model of a local folder, in float32.

    Raises ModelFolderError where the folder lacks a configuration or safetensors weights, or they do not fit together.
    """
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        if not (folder / name).is_file():
            raise ModelFolderError(
                f"{folder} is no model folder: it has no {name}; name one made by rods learn warm-start"
            )
    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        with torch.random.fork_rng(devices=[]):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
        assert isinstance(model, nn.Module)
        load_weights(model, folder / WEIGHTS_FILE, None)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelFolderError(f"the model folder {folder} is damaged: {reason}") from error
    return model
