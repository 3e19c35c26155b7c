"""tiny_model.py DIR [LAYERS HIDDEN LENGTH]: writes a llama with random weights (2 layers, hidden size 128, 4,096 positions), a byte-level
BPE tokenizer and a chat template.

Its text is noise; what counts is that the server around it caches, announces and counts like any other.
"""
import json
import pathlib
import random
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM

SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>", "<pad>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = (
    "a block holds the keys and values of sixteen tokens and a router knows which worker holds it so that a prompt goes where its prefix lies "
    "unless that worker has more to do than the others when every worker is as busy the longest prefix wins and when none is known the least load"
).split()


def tokenizer():
    draw = random.Random(1337)
    lines = (" ".join(draw.choices(WORDS, k=draw.randint(3, 20))) + draw.choice(".,;:!?\n") for _ in range(5000))
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    )
    bpe.post_processor = processors.TemplateProcessing(single=SPECIAL[0] + " $A", special_tokens=[(SPECIAL[0], 0)])
    return bpe


def main(folder, layers=2, hidden=128, length=4096):
    folder.mkdir(parents=True, exist_ok=True)
    bpe = tokenizer()
    bpe.save(str(folder / "tokenizer.json"))
    names = {"bos_token": SPECIAL[0], "eos_token": SPECIAL[1], "pad_token": SPECIAL[4]}
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    added = {str(i): {"content": text, "special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False} for i, text in enumerate(SPECIAL)}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": length, "chat_template": TEMPLATE, "added_tokens_decoder": added, **names})
    )
    torch.manual_seed(1337)
    shape = LlamaConfig(
        vocab_size=bpe.get_vocab_size(), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=length, bos_token_id=0, eos_token_id=1, pad_token_id=4,
    )
    LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)


main(pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:]))
