"""A step of TRL's own trainer with the example. Arguments: the URL and a task. Prints rewards, calls, and whether weights changed.

The model is made here, tiny and untrained. While it generates, its logits are those of the script, for the first of the two
rollouts; the second gives up at once. So there is an advantage, and the step has a gradient.
"""

# pyright: reportMissingImports=false
import json
import sys

import torch
from datasets import Dataset
from pdbox_environment import environment
from script import calls_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

END, BEGIN, PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"
url, task = sys.argv[1:]
SAID = [
    f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
    for name, arguments in calls_of(task)
]


def make_tokenizer(texts):
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": [BEGIN, END, PAD], "initial_alphabet": alphabet, "show_progress": False}
    raw.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=4000, **options))
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=END, pad_token=PAD, chat_template=qwen3_chat_template
    )


class Scripted(Qwen2ForCausalLM):
    def forward(self, input_ids, **options):
        out = super().forward(input_ids=input_ids, **options)
        if not torch.is_grad_enabled():
            for number, row in enumerate(input_ids.tolist()):
                out.logits[number, -1, next_token(row, gives_up=number > 0)] += 100.0
        return out


def next_token(row, gives_up):
    turns = tokenizer.decode(row).split(f"{BEGIN}assistant\n")[1:]
    text = SAID[len(turns) - 1] if len(turns) <= len(SAID) and not gives_up else "done"
    wanted = [*tokenizer.encode(text), tokenizer.eos_token_id]
    return wanted[min(len(tokenizer.encode(turns[-1])), len(wanted) - 1)]


made = environment(url)
tokenizer = make_tokenizer(
    [qwen3_chat_template, *SAID, *(tool.__doc__ or "" for tool in vars(made).values())]
)
shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
# Without a cache each step sees the whole text, from which it finds its place in the script.
model = Scripted(
    Qwen2Config(
        vocab_size=len(tokenizer),
        num_key_value_heads=1,
        max_position_embeddings=1 << 16,
        use_cache=False,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **shape,
    )
)
trainer = GRPOTrainer(
    model=model,
    args=GRPOConfig(
        output_dir="out",
        max_steps=1,
        learning_rate=0.1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8000,
        use_cpu=True,
        bf16=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": ""}], "task": task}] * 2),
    processing_class=tokenizer,
    environment_factory=made,
)
before = [one.detach().clone() for one in model.parameters()]
trainer.train()
(log,) = [one for one in trainer.state.log_history if "reward" in one]
moved = any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
print(
    json.dumps(
        {
            "reward": log["reward"],
            "deviation": log["reward_std"],
            "calls": log["tools/call_frequency"],
            "failures": log["tools/failure_frequency"],
            "moved": moved,
        }
    )
)
