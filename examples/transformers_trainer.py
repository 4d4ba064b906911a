"""A small language model trained by Transformers' Trainer, recorded by one callback.

    python examples/transformers_trainer.py --logdir runs
    tensorboard --logdir runs

A step is one optimizer step with the batches it accumulates. Tokens are recorded because
the trainer counts them; evaluation is a phase of its own. As a context manager, the
callback also records an exception that ends the training.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from memboard.integrations.transformers import MemBoardCallback

VOCABULARY = 128
LENGTH = 64


class RandomTexts(Dataset[dict[str, torch.Tensor]]):
    """Texts without meaning."""

    def __init__(self, num_texts: int) -> None:
        random = torch.Generator().manual_seed(0)
        self._tokens = torch.randint(VOCABULARY, (num_texts, LENGTH), generator=random)

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._tokens[index], "labels": self._tokens[index]}


def train(logdir: Path, num_steps: int) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
    )
    arguments = TrainingArguments(
        output_dir=str(logdir / "tiny_llama"),
        max_steps=num_steps,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy="steps",
        eval_steps=max(1, num_steps // 2),
        include_num_input_tokens_seen="all",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    with MemBoardCallback(logdir / "tiny_llama") as callback:
        Trainer(
            model=LlamaForCausalLM(config),
            args=arguments,
            train_dataset=RandomTexts(512),
            eval_dataset=RandomTexts(32),
            callbacks=[callback],
        ).train()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    train(arguments.logdir, arguments.steps)


if __name__ == "__main__":
    main()
