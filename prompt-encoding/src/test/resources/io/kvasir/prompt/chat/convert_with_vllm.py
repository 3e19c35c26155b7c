"""Writes messages.jsonl and responses.jsonl of the chat tests with vLLM's own code (0.32.0).

    python convert_with_vllm.py SEED COUNT

in the folder of this script. Random requests of the Messages and the Responses API go through
vLLM's request validation, its conversion to a chat, template rendering and message parsing, without
an engine. A line without `text` is a request that vLLM refuses.
"""

import json
import pathlib
import random
import sys
import types

from transformers import AutoTokenizer
from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.utils import construct_input_messages, construct_tool_dicts
from vllm.renderers import hf
from vllm.renderers.chat_utils import parse_chat_messages
from vllm.renderers.params import merge_kwargs

from render_with_vllm import CONFIG

TEMPLATE = (
    "{{ messages | tojson }}{{ (tools or []) | tojson }}|{{ reasoning_effort }}|{{ enable_thinking }}|"
    "{{ foo }}|{{ add_generation_prompt }}"
)
FOLDER = pathlib.Path(__file__).parent
rng = random.Random(int(sys.argv[1]))
WORDS = 'the router sends a request to é worker that holds \n its "prefix" <b> and 😀 waits'.split(
    " "
)


def words():
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 6)))


def some():
    return words() or "x"


def chance(x):
    return rng.random() < x


def schema():
    s = {}
    if chance(0.7):
        s["type"] = "object"
    s["properties"] = {
        k: {"type": rng.choice(["string", "number"])}
        for k in rng.sample(["city", "unit", "n"], rng.randrange(0, 3))
    }
    if chance(0.3):
        s["required"] = list(s["properties"])
    if chance(0.2):
        s["$schema"] = "http://json-schema.org/draft-07/schema#"
    return s


def arguments():
    return {
        k: rng.choice([1, 1.5, "Oslo", True, None, [1, 2], {"a": "b"}, "é"])
        for k in rng.sample(["city", "unit", "n"], rng.randrange(0, 3))
    }


def messages_body():
    ids = [0]

    def nid():
        ids[0] += 1
        return "toolu_%d" % ids[0]

    msgs = []
    calls = []

    def tb():
        b = {"type": "text", "text": words()}
        if chance(0.2):
            b["cache_control"] = {"type": "ephemeral"}
        return b

    for i in range(rng.randrange(1, 6)):
        role = "user" if i % 2 == 0 else "assistant"
        if chance(0.1):
            role = "system"
        if role == "system":
            c = some() if chance(0.5) else [tb() for _ in range(rng.randrange(1, 3))]
            if chance(0.2):
                c = "x-anthropic-billing-header: a\nmore"
        elif chance(0.35):
            c = words()
        elif role == "user":
            c = []
            for k in calls:
                b = {"type": "tool_result", "tool_use_id": k}
                z = rng.random()
                if z < 0.4:
                    b["content"] = words()
                elif z < 0.8:
                    b["content"] = [
                        {"type": "text", "text": words()} for _ in range(rng.randrange(0, 3))
                    ]
                elif z < 0.85:
                    b["content"] = [{"type": "tool_reference", "tool_name": "w"}]
                if chance(0.2):
                    b["is_error"] = chance(0.5)
                c.append(b)
            calls = []
            c += [tb() for _ in range(rng.randrange(0, 3))]
            if not c:
                c = [tb()]
            if chance(0.2):
                rng.shuffle(c)
        else:
            c = []
            if chance(0.3):
                c.append({"type": "thinking", "thinking": words(), "signature": "s"})
            if chance(0.1):
                c.append({"type": "redacted_thinking", "data": "AA"})
            c += [tb() for _ in range(rng.randrange(0, 3))]
            for _ in range(rng.randrange(0, 3)):
                k = nid()
                calls.append(k)
                c.append(
                    {
                        "type": "tool_use",
                        "id": k,
                        "name": rng.choice(["weather", "search"]),
                        "input": arguments(),
                    }
                )
            if not c:
                c = [tb()]
        msgs.append({"role": role, "content": c})
    q = {"model": "tiny", "max_tokens": 4000 if chance(0.5) else 100, "messages": msgs}
    if chance(0.5):
        q["system"] = words() if chance(0.5) else [tb() for _ in range(rng.randrange(1, 4))]
    if chance(0.1):
        q["system"] = [
            {"type": "text", "text": "x-anthropic-billing-header: v=1"},
            {"type": "text", "text": "sys"},
        ]
    if chance(0.1):
        q["system"] = "x-anthropic-billing-header: v=1\nsys"
    if chance(0.4):
        q["tools"] = []
        for nm in rng.sample(["weather", "search", "run"], rng.randrange(0, 4)):
            t = {"name": nm, "input_schema": schema()}
            if chance(0.6):
                t["description"] = words()
            if chance(0.2):
                t["strict"] = chance(0.5)
            if chance(0.1):
                t["defer_loading"] = chance(0.5)
            if chance(0.2):
                t["cache_control"] = {"type": "ephemeral"}
            if chance(0.2):
                t["type"] = "custom"
            q["tools"].append(t)
        if chance(0.4):
            q["tool_choice"] = rng.choice(
                [
                    {"type": "auto"},
                    {"type": "any"},
                    {"type": "none"},
                    {"type": "auto", "disable_parallel_tool_use": True},
                ]
            )
    if chance(0.2):
        q["thinking"] = rng.choice(
            [{"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}]
        )
    if chance(0.2):
        q["output_config"] = {"effort": rng.choice(["low", "medium", "high", "max"])}
    if chance(0.1):
        q["chat_template_kwargs"] = {"enable_thinking": chance(0.5)}
    if chance(0.1):
        q["metadata"] = {"user_id": "u"}
    return q


def responses_body():
    ids = [0]

    def nid(x):
        ids[0] += 1
        return "%s_%d" % (x, ids[0])

    if chance(0.25):
        inpt = words()
    else:
        inpt = []
        calls = []
        for i in range(rng.randrange(1, 8)):
            z = rng.random()
            if z < 0.4:
                role = rng.choice(["user", "user", "user", "system", "developer"])
                c = (
                    words()
                    if chance(0.5)
                    else [
                        {"type": "input_text", "text": words()} for _ in range(rng.randrange(1, 3))
                    ]
                )
                m = {"role": role, "content": c}
                if chance(0.5):
                    m["type"] = "message"
                if chance(0.1):
                    m["status"] = "completed"
                inpt.append(m)
            elif z < 0.6:
                k = rng.random()
                if k < 0.4:
                    m = {"role": "assistant", "content": words()}
                elif k < 0.8:
                    m = {
                        "type": "message",
                        "role": "assistant",
                        "content": [
                            {"type": "output_text", "text": words()}
                            for _ in range(rng.randrange(1, 3))
                        ],
                    }
                    if chance(0.7):
                        m["content"][0]["annotations"] = []
                    if chance(0.5):
                        m["id"] = nid("msg")
                    if chance(0.5):
                        m["status"] = rng.choice(
                            ["completed", "completed", "in_progress", "incomplete"]
                        )
                else:
                    m = {"role": "assistant", "content": [{"type": "output_text", "text": words()}]}
                inpt.append(m)
            elif z < 0.75:
                k = nid("call")
                calls.append(k)
                m = {
                    "type": "function_call",
                    "call_id": k,
                    "name": rng.choice(["weather", "search"]),
                    "arguments": rng.choice([json.dumps(arguments()), "", "{bad", "[1]"]),
                }
                if chance(0.4):
                    m["id"] = nid("fc")
                if chance(0.3):
                    m["status"] = "completed"
                inpt.append(m)
            elif z < 0.87:
                m = {"type": "reasoning", "summary": []}
                if chance(0.5):
                    m["id"] = nid("rs")
                if chance(0.5):
                    m["summary"] = [{"type": "summary_text", "text": words()}]
                if chance(0.6):
                    m["content"] = [
                        {"type": "reasoning_text", "text": words()}
                        for _ in range(rng.randrange(1, 3))
                    ]
                if chance(0.1):
                    m["encrypted_content"] = None
                inpt.append(m)
            else:
                m = {
                    "type": "function_call_output",
                    "call_id": calls.pop() if calls else nid("call"),
                    "output": words() if chance(0.8) else [{"type": "input_text", "text": words()}],
                }
                inpt.append(m)
    q = {"model": "tiny", "input": inpt}
    if chance(0.4):
        q["instructions"] = words()
    if chance(0.4):
        q["tools"] = []
        for nm in rng.sample(["weather", "search", "run"], rng.randrange(0, 4)):
            t = {"type": "function", "name": nm, "parameters": schema()}
            if chance(0.6):
                t["description"] = words()
            if chance(0.5):
                t["strict"] = rng.choice([True, False, None])
            q["tools"].append(t)
        if chance(0.3):
            q["tool_choice"] = rng.choice(["auto", "none", "required"])
    if chance(0.3):
        q["reasoning"] = {"effort": rng.choice(["none", "minimal", "low", "medium", "high"])}
    if chance(0.1):
        q["chat_template_kwargs"] = {"enable_thinking": chance(0.5), "foo": 1}
    if chance(0.3):
        q["max_output_tokens"] = rng.choice([5, 100])
    if chance(0.1):
        q["truncation"] = rng.choice(["auto", "disabled"])
    if chance(0.2):
        q["store"] = chance(0.5)
    return q


def text(request, messages, tools, model_tokens):
    params = request.build_chat_params(TEMPLATE, "auto").with_defaults(
        merge_kwargs(None, {"tools": tools, "tokenize": False})
    )
    content_format = hf.resolve_chat_template_content_format(
        chat_template=TEMPLATE,
        tools=params.chat_template_kwargs.get("tools"),
        given_format="auto",
        tokenizer=model_tokens,
        model_config=CONFIG,
    )
    conversation, _, _ = parse_chat_messages(messages, CONFIG, content_format=content_format)
    return hf.safe_apply_chat_template(
        CONFIG, model_tokens, conversation, **params.get_apply_chat_template_kwargs()
    )


def messages_text(body, model_tokens):
    request = AnthropicServingMessages.to_chat_completion_request(
        AnthropicMessagesRequest.model_validate(body),
        merge_inline_system=False,
        disabled_thinking_effort="none",
    )
    tools = None if request.tools is None else [tool.model_dump() for tool in request.tools]
    return text(request, request.messages, tools, model_tokens)


def responses_text(body, model_tokens):
    request = ResponsesRequest.model_validate(body)
    tools = construct_tool_dicts(request.tools, request.tool_choice)
    messages = construct_input_messages(
        request_instructions=request.instructions, request_input=request.input
    )
    return text(request, messages, tools, model_tokens)


def main():
    model_tokens = AutoTokenizer.from_pretrained(FOLDER.parent / "tokenizer" / "tiny")
    for api, made, rendered in (
        ("messages", messages_body, messages_text),
        ("responses", responses_body, responses_text),
    ):
        with open(FOLDER / (api + ".jsonl"), "w", encoding="utf-8") as out:
            out.write(json.dumps({"template": TEMPLATE}) + "\n")
            for _ in range(int(sys.argv[2])):
                line = {"request": made()}
                try:
                    line["text"] = rendered(json.loads(json.dumps(line["request"])), model_tokens)
                except Exception as e:  # noqa: BLE001
                    line["error"] = type(e).__name__
                    print(api, type(e).__name__, str(e)[:300].replace("\n", " "), file=sys.stderr)
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
