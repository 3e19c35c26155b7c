"""Trains the two tokenizers of the tests (PyPI tokenizers)."""
import glob, json, random, sys, sysconfig, os
from tokenizers import Tokenizer, models, trainers, pre_tokenizers, decoders, processors, normalizers, Regex, AddedToken
out = sys.argv[1]
random.seed(7)
std = sysconfig.get_paths()["stdlib"]
corpus = []
for f in sorted(glob.glob(os.path.join(std, "*.py")))[:90]:
    corpus.append(open(f, encoding="utf-8", errors="ignore").read()[:20000])
corpus += [
  "Ünïcödé größer façade naïve coöperate Straße Привет мир, как дела? Это текст на русском языке. " * 30,
  "今日は良い天気ですね。東京は日本の首都です。我们喜欢学习新的语言。人工智能正在改变世界。" * 30,
  "안녕하세요 세계 مرحبا بالعالم שלום עולם नमस्ते दुनिया สวัสดีชาวโลก " * 30,
  "😀😃😄🎉🚀❤️👩‍👩‍👧‍👦🇩🇪 emoji 🤖🤖 " * 30,
  " ".join(str(random.randrange(10 ** random.randrange(1, 9))) for _ in range(4000)),
  "\n\n\n    \t\t  \r\n   x = 1\n\n" * 50,
]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
t = Tokenizer(models.BPE(ignore_merges=True))
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
t.decoder = decoders.ByteLevel()
t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=4000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", t.token_to_id("<|begin_of_text|>"))])])
t.save(out + "/llama3-style.json", pretty=False)
Q = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
t = Tokenizer(models.BPE())
t.normalizer = normalizers.NFC()
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(Regex(Q), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
t.decoder = decoders.ByteLevel()
t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1200, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
t.add_special_tokens([AddedToken("<|im_start|>", special=True, normalized=False), AddedToken("<|im_end|>", special=True, normalized=False)])
t.add_tokens([AddedToken("<tool_call>", special=False, normalized=False), AddedToken("é\u0301clair", special=False, normalized=True), AddedToken("<mask>", lstrip=True, special=False, normalized=True), AddedToken("<right>", rstrip=True, special=False, normalized=False), AddedToken("word", single_word=True, special=False, normalized=True), AddedToken("        ", special=False, normalized=True), AddedToken("    ", special=False, normalized=True)])
t.save(out + "/qwen-style.json", pretty=False)
