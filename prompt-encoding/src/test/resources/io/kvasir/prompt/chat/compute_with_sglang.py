"""compute_with_sglang.py URL SEED COUNT: random chats, and the prompts that a real SGLang computes for them, on stdout.

The server's model is that of cli/src/test/real-engines/tiny_model.py with the template of messages.jsonl."""
import json
import pathlib
import random
import sys
import urllib.error
import urllib.request

url, draw, count = sys.argv[1], random.Random(int(sys.argv[2])), int(sys.argv[3])
TEXTS = ["what", "a block", "the router", "", "ok so", "two\nlines", "é 北", '{"a":1}']


def post(path, body):
    question = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(question) as answer:
            return json.load(answer)
    except urllib.error.HTTPError:
        return None


def content(role):
    if draw.random() < 0.55:
        return draw.choice(TEXTS)
    types = ["text", "text", "input_text"] if role == "user" else ["text"]
    return [{"type": draw.choice(types), "text": draw.choice(TEXTS)} for _ in range(draw.randint(1, 3))]


def message():
    role = draw.choice(["user", "user", "assistant", "assistant", "system", "tool", "developer", "call"])
    if role == "call":
        arguments = ['{"b":1,"a":"x"}', "{}", '{"a":[1,2.5,null]}']
        calls = [{"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": draw.choice(arguments)}} for i in range(draw.randint(1, 2))]
        return {"role": "assistant", "content": draw.choice([None, "", "x"]), "tool_calls": calls}
    out = {"role": role, "content": content(role)}
    if role == "tool":
        out["tool_call_id"] = "c0"
    if draw.random() < 0.15:
        out["name"] = "n"
    if role == "assistant" and draw.random() < 0.3:
        out["reasoning_content"] = "hm"
    return out


def tool():
    schema = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}
    function = {"name": draw.choice(["f", "g"]), "description": "d", "parameters": schema}
    for member in ("description", "parameters"):
        if draw.random() < 0.25:
            del function[member]
    if draw.random() < 0.3:
        function["strict"] = draw.choice([True, False, None])
    names = list(function)
    draw.shuffle(names)
    return {"type": "function", "function": {name: function[name] for name in names}}


def chat():
    out = {"messages": [message() for _ in range(draw.randint(1, 5))]}
    if draw.random() < 0.4:
        out["tools"] = [tool() for _ in range(draw.randint(1, 2))]
        if draw.random() < 0.4:
            out["tool_choice"] = draw.choice(["auto", "none", {"type": "function", "function": {"name": out["tools"][0]["function"]["name"]}}])
    if draw.random() < 0.2:
        out["continue_final_message"] = draw.choice([True, False])
    if draw.random() < 0.2:
        out["add_generation_prompt"] = False
    if draw.random() < 0.15:
        out["add_special_tokens"] = True
    if draw.random() < 0.2:
        out["chat_template_kwargs"] = {"foo": draw.choice(["x", 1, None, [1]])}
    if draw.random() < 0.2:
        out["reasoning_effort"] = draw.choice(["low", "none", "high"])
    return out


print(pathlib.Path(__file__).with_name("messages.jsonl").open().readline().strip())
for _ in range(count):
    line = {"request": chat()}
    answer = post("/v1/chat/completions", {"model": "tiny", "max_tokens": 1, "return_prompt_token_ids": True, **line["request"]})
    if answer:  # else it is refused
        ids = answer.get("prompt_token_ids") or answer["choices"][0]["prompt_token_ids"]
        line["text"] = post("/detokenize", {"model": "tiny", "tokens": ids, "skip_special_tokens": False})["text"]
    print(json.dumps(line, ensure_ascii=False))
